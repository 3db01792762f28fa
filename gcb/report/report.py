"""`gcb report`: one self-contained HTML file about one or more runs.

The page needs no network, and its content security policy forbids it; it has no scripts. The template escapes
everything that is inserted.
"""

import base64
import os
import platform
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import jinja2
import yaml

import gcb
from gcb.analysis.analyse import ANALYSIS_DIR, FIGURES, NUMBERS, read_figure
from gcb.data.output_dir import installed_version
from gcb.envs.spec import DEFAULT_MODES
from gcb.errors import GCBError, utf8
from gcb.report import success
from gcb.report.charts import curve_chart
from gcb.report.paired import compare, default_reference
from gcb.report.paired_table import caption, table_headings, table_rows
from gcb.report.run_groups import (
    RunGroup,
    RunRecord,
    differing_settings,
    find_runs,
    group_by_env,
    group_runs,
    read_runs,
)
from gcb.report.table import MODE_NAMES
from gcb.report.text_tables import NONE, analysis_tables
from gcb.runs.evaluations import read_evaluations
from gcb.runs.run_dir import VIDEOS
from gcb.utils.dataclass_io import to_dict
from gcb.utils.files import write_output
from gcb.utils.progress import duration

CURVES = {
    "Success during training": {f"eval_{mode}": MODE_NAMES[mode] for mode in DEFAULT_MODES},
    "Losses": {
        "representation_loss": "representation",
        "actor_loss": "policy",
        "critic_loss": "critic Q",
        "value_loss": "value V",
    },
    "Representation": {
        "phi_feature_std": "standard deviation of φ",
        "psi_feature_std": "standard deviation of ψ",
        "phi_rank": "effective rank of φ",
        "psi_unexplained": "share of φ not explained by ψ's arithmetic",
    },
}
FIGURE_CAPTIONS = {
    "neighbours": "Tasks (s, g) and their nearest neighbours in φ, from other episodes; random tasks.",
    "map": "t-SNE of φ, coloured by the critic's value, or by task if the agent comes without one; random tasks.",
    "values": "Distance between pairs of tasks in φ against the difference in their values.",
    "arithmetic": "A state, an example before and after, the frame of a fresh test set that is nearest to the inferred "
    "goal, and the true goal; random scenes, failures included.",
}
MEDIA_TYPES = {".mp4": "video/mp4", ".gif": "image/gif"}
MAX_VIDEO_BYTES = 8_000_000
"""Larger videos would make the page slow to open."""
PACKAGES = ("torch", "numpy", "gymnasium", "pybullet", "matplotlib", "scikit-learn")


def write_report(
    runs: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    title: str = "Goal-conditioned bisimulation",
    command: str = "",
    when: datetime | None = None,
) -> Path:
    """Write a report of these runs, or directories of runs, to the file `out`.

    Runs that differ only in their seed are shown as one group.
    """
    if not runs:
        raise GCBError("a report needs at least one run.")
    groups, path = group_runs(read_runs(find_runs(runs))), Path(out)
    page = render(groups, title, command, when or datetime.now().astimezone())
    write_output(path, utf8(page))
    return path


def render(groups: Sequence[RunGroup], title: str, command: str, when: datetime) -> str:
    """Return the page."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["data_uri"] = _data_uri
    success_columns, success_rows = success.success_table(groups)
    return environment.get_template("report.html").render(
        title=title,
        groups=groups,
        overview=success.overview(groups),
        success_columns=success_columns,
        success_rows=success_rows,
        warnings=success.stale_evaluations(groups),
        paired=_paired(groups),
        paper_rows=success.paper_rows(groups),
        analyses=[_analysis(group) for group in groups],
        videos=[(group.label, files) for group in groups if (files := _videos(group))],
        charts=_charts(groups),
        setting_rows=_setting_rows(groups),
        settings=[(group.label, _yaml(group.first)) for group in groups],
        run_rows=[_provenance(group, record) for group in groups for record in group.records],
        evaluation_rows=[row for group in groups for record in group.records for row in _evaluations(record)],
        facts=_facts(command, when),
    )


def _paired(groups: Sequence[RunGroup]) -> dict[str, Any] | None:
    """Return the table of paired differences with its caption and notes; None if there is only one method."""
    if len({group.method for group in groups}) < 2:
        return None
    by_env = group_by_env([record for group in groups for record in group.records])
    comparison = compare(by_env, default_reference(by_env))
    return {
        "reference": comparison.reference,
        "columns": table_headings(comparison),
        "rows": table_rows(comparison),
        "caption": caption(comparison) if comparison.rows else [],
        "notes": comparison.notes,
    }


def _analysis(group: RunGroup) -> dict[str, Any]:
    """Return figures, tables and skipped parts of the group's first analysed run; no parts if there is none."""
    record = next((record for record in group.records if record.numbers), None)
    if record is None:
        return {"label": group.label, "parts": [], "path": group.first.run.path}
    try:
        tables = {table.figure: table for table in analysis_tables(record.numbers)}
        reasons = {name: record.numbers["skipped"].get(name) for name in FIGURES}
        step, seed = (int(record.numbers["about"][name]) for name in ("step", "seed"))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        path = record.run.path / ANALYSIS_DIR / NUMBERS
        raise GCBError(f"{path} is damaged ({error!r}); `gcb analyse` writes it again") from error
    parts = [
        {
            "name": name,
            "image": read_figure(record.run.path, name),
            "caption": FIGURE_CAPTIONS[name],
            "table": tables.get(name),
            "skipped": reasons[name],
        }
        for name in FIGURES
    ]
    source = f"{record.name} at step {step}; analysis seed {seed}"
    return {"label": group.label, "parts": parts, "source": source}


def _videos(group: RunGroup) -> list[dict[str, Any]]:
    """Return the videos of the group's first run that has any."""
    for record in group.records:
        paths = sorted(path for path in (record.run.path / VIDEOS).glob("*") if path.suffix in MEDIA_TYPES)
        if paths:
            return [_video(path) for path in paths]
    return []


def _video(path: Path) -> dict[str, Any]:
    size = path.stat().st_size
    return {
        "caption": MODE_NAMES.get(path.stem, path.stem).capitalize(),
        "type": MEDIA_TYPES[path.suffix],
        "content": path.read_bytes() if size <= MAX_VIDEO_BYTES else None,
        "path": path,
        "megabytes": size / 1e6,
    }


def _charts(groups: Sequence[RunGroup]) -> dict[str, list[tuple[str, bytes]]]:
    """Return the charts of each section that has any, as (title, SVG)."""
    sections = {
        section: [(title, svg) for metric, title in metrics.items() if (svg := curve_chart(groups, metric))]
        for section, metrics in CURVES.items()
    }
    return {section: charts for section, charts in sections.items() if charts}


def _setting_rows(groups: Sequence[RunGroup]) -> list[tuple[str, ...]]:
    """Return the settings in which the groups differ, with the value of each group."""
    records = [group.first for group in groups]
    values = {name: [record.settings.get(name) for record in records] for name in differing_settings(records)}
    return [(name, *(NONE if value is None else str(value) for value in row)) for name, row in values.items()]


def _yaml(record: RunRecord) -> str:
    return yaml.safe_dump(to_dict(record.run.config), sort_keys=False, allow_unicode=True)


def _provenance(group: RunGroup, record: RunRecord) -> tuple[str, ...]:
    """Return name, agent, seed, steps, training time, data and gcb version of a run."""
    checkpoint, config, dataset = record.checkpoint, record.run.config, record.run.dataset
    steps = "none yet" if checkpoint is None else f"{checkpoint.step:,} of {config.steps:,}"
    time = "" if checkpoint is None else duration(checkpoint.seconds)
    source = [str(record.data_config.get("env") or dataset.path or "own data")]
    source += [f"{dataset.transitions:,} transitions"] + (["video distractors"] if record.video else [])
    source += [f"seed {record.data_config['seed']}"] if "seed" in record.data_config else []
    source += [f"SHA-256 {dataset.fingerprint[:12]}"]
    return (record.name, group.label, str(record.seed), steps, time, ", ".join(source), record.run.gcb_version)


def _evaluations(record: RunRecord) -> list[tuple[str, ...]]:
    """Return a row for every evaluation of a run, those that are shown first."""
    columns = ("seed", "episodes", "step", "eval_temperature", "date")
    return [
        (
            record.name,
            str(MODE_NAMES.get(entry["mode"], entry["mode"])),
            *(str(entry.get(name, NONE)) for name in columns),
        )
        for entry in read_evaluations(record.run.path)
    ]


def _facts(command: str, when: datetime) -> dict[str, str]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "command": command,
        "date": when.strftime("%Y-%m-%d %H:%M %Z"),
        "gcb": gcb.__version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": ", ".join(f"{name} {installed_version(name) or 'not installed'}" for name in PACKAGES),
        "machine": f"{platform.system()} {platform.machine()}, {cores} cores",
    }


def _data_uri(content: bytes, media_type: str) -> str:
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"
