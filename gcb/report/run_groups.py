"""Runs with their results, grouped so that runs that differ only in their seed are one group."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gcb.analysis.analyse import read_numbers
from gcb.errors import GCBError
from gcb.report.rows import parse_run_name
from gcb.report.table import ENV_NAMES, Cell, method_name
from gcb.runs.evaluations import read_results
from gcb.runs.find import find_run
from gcb.runs.run_dir import RECORD, Checkpoint, Run
from gcb.training.loggers import read_metrics
from gcb.utils.dataclass_io import to_dict
from gcb.utils.statistics import Criterion, Rate

ENV_TITLES = {"drawer": "Drawer", "button_drawer": "Button and Drawer"}
EXECUTION_SETTINGS = {
    *("seed", "device", "threads", "preload", "compile", "tensorboard", "wandb", "log_every", "checkpoint_every"),
}
"""Settings in which runs of one group may differ: they affect how a run is executed, not what it learns."""
MAX_SETTINGS_IN_LABEL = 3
"""If more settings differ, the run's name distinguishes a group."""
COLOURS = ("#2f7fc1", "#c9611a", "#1f9478", "#9a66cc", "#d0507e", "#8f8a2e")
"""Colours of the groups, repeated if there are more; each has a contrast above 3:1 with light and dark pages."""


@dataclass(frozen=True, eq=False)
class RunRecord:
    """One run and its results."""

    run: Run
    checkpoint: Checkpoint | None
    results: Mapping[str, Any]
    """By evaluation mode, as in eval.json."""
    metrics: Sequence[Mapping[str, Any]]
    numbers: Mapping[str, Any]
    """The numbers of its analysis; empty if there is none."""

    @property
    def seed(self) -> int:
        return self.run.config.seed

    @property
    def name(self) -> str:
        return self.run.path.resolve().name

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Every setting by its full name, and the number of steps after which the run was extended, if it was."""
        extended = {"extended_from": self.run.extended_from[-1]} if self.run.extended_from else {}
        return {**dict(_flatten(to_dict(self.run.config))), **extended}

    @property
    def data_config(self) -> Mapping[str, Any]:
        """The configuration that its dataset was collected with."""
        return self.run.dataset.config

    @property
    def env(self) -> str:
        """The short name of a built-in environment, another environment's id, or the name of the dataset."""
        env = self.data_config.get("env") or ""
        return ENV_NAMES.get(env, env) or Path(self.run.dataset.path or "own data").name

    @property
    def video(self) -> bool:
        """Whether the dataset has video distractors."""
        return bool((self.data_config.get("options") or {}).get("video"))

    @property
    def env_title(self) -> str:
        return ENV_TITLES.get(self.env, self.env) + (" + video" if self.video else "")

    def rate(self, mode: str, task: str | None = None, *, criterion: Criterion = "any_step") -> Rate | None:
        """Return the success rate in a mode, in one task or in all; None if it was not measured."""
        result = self.results.get(mode)
        if result is None:
            return None
        try:
            rates = result["all"] if task is None else result["tasks"].get(task)
            if rates is None or (criterion == "declared" and criterion not in rates):  # older evaluations lack it
                return None
            return Rate(int(rates[criterion]["successes"]), int(rates[criterion]["of"]))
        except (KeyError, TypeError, ValueError, AttributeError, GCBError) as error:
            raise GCBError(f"{self.run.path / 'eval.json'}: {mode} is damaged ({error!r})") from error

    def tasks(self, mode: str) -> list[str]:
        """Return the tasks that the evaluation distinguishes."""
        return sorted((self.results.get(mode) or {}).get("tasks") or ())


@dataclass(frozen=True, eq=False)
class RunGroup:
    """Runs that differ only in their seed."""

    records: tuple[RunRecord, ...]
    label: str
    """Distinguishes it from all other groups."""
    variant: str
    """Distinguishes it from groups of the same method with other settings; empty if there are none."""
    colour: str

    @property
    def first(self) -> RunRecord:
        return self.records[0]

    @property
    def method(self) -> str:
        return self.first.run.config.method

    @property
    def name(self) -> str:
        """The method, with the variant if there is one."""
        return method_name(self.method, self.variant)

    def cell(self, mode: str, task: str | None = None, *, criterion: Criterion = "any_step") -> Cell | None:
        """Return the success rates of all seeds; None if none was measured."""
        rates = (record.rate(mode, task, criterion=criterion) for record in self.records)
        evaluated = tuple(rate for rate in rates if rate is not None and rate.trials)
        return Cell(evaluated) if evaluated else None

    @property
    def run_names(self) -> str:
        """The names of its runs, in the order of their seeds."""
        return ", ".join(record.name for record in self.records)

    def curve(self, metric: str) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray] | None] | None:
        """Return steps, mean over seeds, and the ends of its 95 % t-interval if there are several seeds.

        The interval ends where the metric does: success at 0 and 1, other metrics at 0 unless one is negative. Only
        steps that every seed has are included. None if no seed has the metric.
        """
        logged = ((row for row in record.metrics if row.get(metric) is not None) for record in self.records)
        seeds = [values for rows in logged if (values := {row["step"]: float(row[metric]) for row in rows})]
        if not seeds:
            return None
        steps = sorted(set.intersection(*(set(values) for values in seeds)))
        table = np.array([[values[step] for step in steps] for values in seeds])
        if len(seeds) < 2 or not steps:
            return np.array(steps), table.mean(axis=0), None
        from scipy.stats import t

        mean, half = table.mean(axis=0), t.ppf(0.975, len(seeds) - 1) * table.std(axis=0, ddof=1) / np.sqrt(len(seeds))
        low, high = 0.0 if (table >= 0).all() else -np.inf, 1.0 if metric.startswith("eval_") else np.inf
        return np.array(steps), mean, (np.maximum(mean - half, low), np.minimum(mean + half, high))


def find_runs(paths: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Return the runs among these directories, directly inside them and in sweeps, and agents by their name."""
    found: list[Path] = []
    for path in map(find_run, paths):
        inside = sorted(record.parent for pattern in ("*", "runs/*") for record in path.glob(f"{pattern}/{RECORD}"))
        runs = [path] if (path / RECORD).is_file() else inside
        if not runs:
            raise GCBError(f"{path} has no runs; accepted: a run, or a directory of runs, such as that of a sweep")
        found += runs
    return found


def read_runs(paths: Sequence[str | os.PathLike[str]]) -> list[RunRecord]:
    """Read every run, by path or by name, once each."""
    runs = {run.path.resolve(): run for run in map(Run, paths)}
    return [
        RunRecord(run, run.checkpoint(), read_results(run.path), read_metrics(run.path), read_numbers(run.path))
        for run in runs.values()
    ]


def group_runs(records: Sequence[RunRecord]) -> list[RunGroup]:
    """Group runs by settings and dataset, each group with a label of its own.

    Methods are in the order given in each environment, and the unchanged method precedes its variants.
    """
    by_key: dict[str, list[RunRecord]] = {}
    for record in records:
        key = repr((learned_settings(record), record.run.dataset.fingerprint))
        by_key.setdefault(key, []).append(record)
    members = [tuple(sorted(group, key=lambda record: record.seed)) for group in by_key.values()]
    variants = _variants([group[0] for group in members])
    places = [_place(group[0]) for group in members]
    named = sorted(
        zip(members, variants, strict=True), key=lambda pair: (places.index(_place(pair[0][0])), pair[1] != "")
    )
    labels = _labels([(group[0], variant) for group, variant in named])
    return [
        RunGroup(group, label, variant, COLOURS[number % len(COLOURS)])
        for number, ((group, variant), label) in enumerate(zip(named, labels, strict=True))
    ]


def group_by_env(records: Sequence[RunRecord]) -> list[RunGroup]:
    """Group the runs of each environment on their own."""
    by_env: dict[tuple[str, bool], list[RunRecord]] = {}
    for record in records:
        by_env.setdefault((record.env, record.video), []).append(record)
    return [group for members in by_env.values() for group in group_runs(members)]


def differing_settings(records: Sequence[RunRecord]) -> list[str]:
    """Return the names of settings that affect what is learned and in which runs differ."""
    names = dict.fromkeys(name for record in records for name in record.settings if name not in EXECUTION_SETTINGS)
    return [name for name in names if len({repr(record.settings.get(name)) for record in records}) > 1]


def learned_settings(record: RunRecord) -> str:
    """Return every setting that affects what is learned, as a text to compare."""
    return repr(sorted((name, value) for name, value in record.settings.items() if name not in EXECUTION_SETTINGS))


def _variants(records: Sequence[RunRecord]) -> list[str]:
    """Return what distinguishes each run from the others of its method and environment; empty if there are none.

    That is its variant in a sweep or, where it is not unique, the settings that differ, its name, or its path.
    """

    def variant(record: RunRecord) -> str:
        place = [other for other in records if _place(other) == _place(record)]
        names = differing_settings(place)
        choices = [[_sweep_variant(each) for each in place], [each.name for each in place]]
        if len(names) <= MAX_SETTINGS_IN_LABEL:
            choices.insert(1, [_settings_in_words(each, names) for each in place])
        own = place.index(record)
        unique = (choice[own] for choice in choices if choice[own] is not None and choice.count(choice[own]) == 1)
        return next(unique, str(record.run.path))

    return [variant(record) for record in records]


def _sweep_variant(record: RunRecord) -> str | None:
    """Return the variant in the run's name if it is a sweep's."""
    parts = parse_run_name(record.name, record.run.config.method, record.seed)
    return None if parts is None else parts[2]


def _settings_in_words(record: RunRecord, names: Sequence[str]) -> str:
    return ", ".join(f"{name.removeprefix('method_config.')} {record.settings.get(name)}" for name in names)


def _labels(named: Sequence[tuple[RunRecord, str]]) -> list[str]:
    """Return method, environment if there are several, and variant."""
    several = len({record.env_title for record, _ in named}) > 1
    parts = ((record.run.config.method, record.env_title if several else "", variant) for record, variant in named)
    return [", ".join(filter(None, part)) for part in parts]


def _place(record: RunRecord) -> tuple[str, str]:
    return record.run.config.method, record.env_title


def _flatten(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, part in value.items():
        if isinstance(part, Mapping):
            yield from _flatten(part, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", part
