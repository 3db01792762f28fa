"""The parts of a report that show runs: curves, figures, videos, settings, and where everything comes from."""

import os
import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import yaml

import gcb
from gcb.analysis.analyse import FIGURES, read_figure
from gcb.report.chart import Curve, curves, legend
from gcb.report.html import Html, data_uri, join, table, tag, void
from gcb.report.run_groups import Entry, Group, differing
from gcb.report.text_tables import TextTable, analysis_tables
from gcb.runs.run_dir import VIDEOS
from gcb.utils.dataclass_io import to_dict
from gcb.utils.progress import duration

CURVES = {
    "Success on the way": {"eval_goal": "success by goal image", "eval_strict": "success by example"},
    "Losses": {
        "representation_loss": "representation",
        "actor_loss": "policy",
        "critic_loss": "critic Q",
        "value_loss": "value V",
    },
    "Representation": {
        "phi_feature_std": "spread of φ",
        "psi_feature_std": "spread of ψ",
        "phi_rank": "effective rank of φ",
        "psi_unexplained": "share of φ that ψ's arithmetic leaves unexplained",
    },
}
FIGURE_WORDS = {
    "neighbours": "Tasks (s, g) and their nearest neighbours in φ, from other episodes; drawn at random by the seed.",
    "map": "t-SNE of φ, coloured by the critic's value; tasks drawn at random by the seed.",
    "values": "Distances of pairs of tasks in φ against the difference of their values.",
    "arithmetic": "s, the example s_a and g_a, the frame of a fresh test set that is nearest to the inferred goal, and "
    "the true goal; scenes drawn at random by the seed, failures included.",
}
VIDEO_WORDS = {"goal": "Told by a goal image.", "strict": "Told by an example.", "loose": "Told by a loose example."}
LARGEST_VIDEO = 8_000_000
"""Bytes; a page with larger ones would be slow to open."""
PACKAGES = ("torch", "numpy", "gymnasium", "pybullet", "matplotlib", "scikit-learn")


def training(groups: Sequence[Group]) -> Html:
    """Curves of every group, seeds as a mean with its interval."""
    parts: list[Html] = []
    for title, names in CURVES.items():
        charts = [curves(words, list(_curves(groups, name))) for name, words in names.items()]
        if any(charts):
            parts += [tag("h3", title), tag("div", *charts, class_="charts")]
    if not parts:
        return tag("p", "There are no metrics yet.", class_="empty")
    bands = any(len(group.entries) > 1 for group in groups)
    note = "Over training steps. " + (
        "Bands are 95 % t-intervals of the mean over seeds." if bands else "One seed each."
    )
    return join([legend([group.label for group in groups]), *parts, tag("p", note, class_="note")])


def insight(groups: Sequence[Group]) -> Html:
    """Figures and numbers of each group's first analysed run."""
    parts = []
    for number, group in enumerate(groups):
        entry = next((one for one in group.entries if one.numbers), None)
        if entry is None:
            command = tag("code", f"gcb analyse {group.first.run.path}")
            parts.append(tag("p", f"{group.label} is not analysed yet: ", command, class_="empty"))
        else:
            parts.append(_fold(group.label, _analysis(entry), number == 0))
    return join(parts)


def videos(groups: Sequence[Group]) -> Html:
    """Videos of each group's first run that has any."""
    parts = []
    for number, group in enumerate(groups):
        for entry in group.entries:
            found = [_video(path) for path in sorted((entry.run.path / VIDEOS).glob("*.mp4"))]
            found += [_gif(path) for path in sorted((entry.run.path / VIDEOS).glob("*.gif"))]
            if found:
                parts.append(_fold(group.label, tag("div", *found, class_="videos"), number == 0))
                break
    return join(parts) if parts else tag("p", "There are no videos yet.", class_="empty")


def settings(groups: Sequence[Group]) -> Html:
    """Where the groups differ, and every setting of each."""
    entries = [group.first for group in groups]
    parts = []
    if names := differing(entries):
        lines = [(name, *(_value(entry.settings.get(name)) for entry in entries)) for name in names]
        parts.append(table(("setting", *(group.label for group in groups)), lines))
    for group in groups:
        text = yaml.safe_dump(to_dict(group.first.run.config), sort_keys=False, allow_unicode=True)
        parts.append(_fold(f"all settings of {group.label}", tag("pre", text), False))
    return join(parts)


def provenance(groups: Sequence[Group], command: str, when: str) -> Html:
    """Runs, data, versions, machine, and the command."""
    lines = [_origin(entry) for group in groups for entry in group.entries]
    columns = ("run", "method", "seed", "steps", "training time", "data", "gcb")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    here = [
        ("made by", tag("code", command)),
        ("at", when),
        ("gcb", gcb.__version__),
        ("python", f"{platform.python_implementation()} {platform.python_version()}"),
        ("packages", ", ".join(f"{name} {_version(name)}" for name in PACKAGES)),
        ("machine", f"{platform.system()} {platform.machine()}, {cores} cores"),
    ]
    return join([table(columns, lines), tag("dl", *(join([tag("dt", name), tag("dd", text)]) for name, text in here))])


def _curves(groups: Sequence[Group], name: str) -> Iterator[Curve]:
    for number, group in enumerate(groups):
        found = group.curve(name)
        if found is None or not len(found[0]):
            continue
        steps, mean, half = found
        low, high = (None, None) if half is None else (mean - half, mean + half)
        yield Curve(group.label, number, steps, mean, low, high)


def _analysis(entry: Entry) -> Html:
    """The figures of one analysis, each with its numbers."""
    tables = {one.figure: one for one in analysis_tables(entry.numbers)}
    parts: list[Html] = []
    for name in FIGURES:
        content, reason = read_figure(entry.run.path, name), entry.numbers.get("skipped", {}).get(name)
        if content is not None:
            image = void("img", src=data_uri(content, "image/png"), alt=FIGURE_WORDS[name])
            parts.append(tag("figure", image, tag("figcaption", FIGURE_WORDS[name]), class_="plate"))
        if name in tables:
            parts.append(_text_table(tables[name]))
        if reason:
            parts.append(tag("p", f"Left out: {name} ({reason}).", class_="empty"))
    about = entry.numbers.get("about", {})
    origin = f"{entry.name} at step {about.get('step', '?')}, seed of the analysis {about.get('seed', '?')}"
    return join([*parts, tag("p", f"{origin}.", class_="note")])


def _text_table(one: TextTable) -> Html:
    return join([tag("h4", one.title), table(one.columns, one.rows), tag("p", one.note, class_="note")])


def _video(path: Path) -> Html:
    words = VIDEO_WORDS.get(path.stem, path.stem)
    if path.stat().st_size > LARGEST_VIDEO:
        size = path.stat().st_size / 1e6
        return tag("p", f"{words}: {path} is too large for a page ({size:.0f} MB).", class_="empty")
    settings = {"controls": "", "loop": "", "muted": "", "playsinline": "", "preload": "auto"}
    video = tag("video", src=data_uri(path.read_bytes(), "video/mp4"), aria_label=words, **settings)
    return tag("figure", video, tag("figcaption", words))


def _gif(path: Path) -> Html:
    words = VIDEO_WORDS.get(path.stem, path.stem)
    if path.stat().st_size > LARGEST_VIDEO:
        return tag("p", f"{words}: {path} is too large for a page.", class_="empty")
    image = void("img", src=data_uri(path.read_bytes(), "image/gif"), alt=words)
    return tag("figure", image, tag("figcaption", words))


def _fold(title: str, content: Html, is_open: bool) -> Html:
    return tag("details", tag("summary", title), content, open="" if is_open else None)


def _origin(entry: Entry) -> tuple[str, ...]:
    checkpoint, data = entry.checkpoint, entry.data
    steps = "none yet" if checkpoint is None else f"{checkpoint.step:,} of {entry.run.config.steps:,}"
    time = "" if checkpoint is None else duration(checkpoint.seconds)
    record = entry.run.dataset
    parts = [str(data.get("env") or record.path or "own data"), f"{record.transitions:,} transitions"]
    parts += ["video"] if entry.video else []
    parts += [f"seed {data['seed']}"] if "seed" in data else []
    parts.append(f"SHA-256 {record.fingerprint[:12]}")
    made = entry.run.gcb_version
    return (entry.name, entry.run.config.method, str(entry.seed), steps, time, ", ".join(parts), made)


def _value(value: object) -> str:
    return "–" if value is None else str(value)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"
