"""What runs have to tell: their settings, curves, successes, figures and videos, with seeds of one setting together."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gcb.analysis.analyse import read_numbers
from gcb.envs.spec import ENV_IDS
from gcb.errors import GCBError
from gcb.report.table import Cell
from gcb.runs.run_dir import Checkpoint, Run, read_results
from gcb.training.loggers import read_metrics
from gcb.utils.dataclass_io import to_dict
from gcb.utils.statistics import Rate

ENV_NAMES = {env_id: name for name, env_id in ENV_IDS.items()}
WORLD_WORDS = {"drawer": "Drawer", "button_drawer": "Button and Drawer"}
MODES = ("goal", "strict", "loose")
HOW_IT_RUNS = {
    *("seed", "device", "threads", "preload", "compile", "tensorboard", "wandb", "log_every", "checkpoint_every"),
}
"""Settings in which runs of one kind may differ: they decide how a run goes, not what is learned."""
MOST_IN_LABEL = 3
"""Settings that a label names; if more differ, the run's name says less and is shorter."""


@dataclass(frozen=True, eq=False)
class Entry:
    """One run."""

    run: Run
    checkpoint: Checkpoint | None
    results: Mapping[str, Any]
    """By mode, as in eval.json."""
    metrics: Sequence[Mapping[str, Any]]
    numbers: Mapping[str, Any]
    """Of its analysis; empty if there is none."""

    @property
    def seed(self) -> int:
        return self.run.config.seed

    @property
    def name(self) -> str:
        return self.run.path.resolve().name

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Every setting by its full name."""
        return dict(_flat(to_dict(self.run.config)))

    @property
    def data(self) -> Mapping[str, Any]:
        """How its dataset was collected."""
        return self.run.dataset.config

    @property
    def env(self) -> str:
        """The world's short name; of others their own, or where the data lay."""
        env = self.data.get("env") or ""
        return ENV_NAMES.get(env, env) or Path(self.run.dataset.path or "own data").name

    @property
    def video(self) -> bool:
        """Whether there were video distractors."""
        return bool((self.data.get("options") or {}).get("video"))

    def rate(self, mode: str, task: str | None = None, *, at_end: bool = False) -> Rate | None:
        """Its success in a mode, at one task or at all; None if it was not evaluated so."""
        result = self.results.get(mode)
        if result is None:
            return None
        try:
            rates = result["all"] if task is None else result["tasks"].get(task)
            part = None if rates is None else rates["at_end" if at_end else "any_step"]
            return None if part is None else Rate(int(part["successes"]), int(part["of"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise GCBError(f"{self.run.path / 'eval.json'}: {mode} is damaged ({error!r})") from error

    def tasks(self, mode: str) -> list[str]:
        """The tasks that were told apart when it was evaluated."""
        return sorted((self.results.get(mode) or {}).get("tasks") or ())


@dataclass(frozen=True, eq=False)
class Group:
    """Runs that differ only in their seed."""

    entries: tuple[Entry, ...]
    label: str
    """Tells it from all other groups."""
    variant: str = ""
    """Tells it from groups of the same method with other settings; empty if there are none."""

    @property
    def first(self) -> Entry:
        return self.entries[0]

    @property
    def method(self) -> str:
        return self.first.run.config.method

    @property
    def place(self) -> str:
        """Its world, in words."""
        env = WORLD_WORDS.get(self.first.env, self.first.env)
        return f"{env} + video" if self.first.video else env

    def cell(self, mode: str, task: str | None = None, *, at_end: bool = False) -> Cell | None:
        """The success of all seeds; None if none was evaluated so."""
        rates = (entry.rate(mode, task, at_end=at_end) for entry in self.entries)
        found = tuple(rate for rate in rates if rate is not None and rate.trials)
        return Cell(found) if found else None

    def curve(self, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None] | None:
        """Steps, mean over seeds, and half the width of its 95 % t-interval if there are several seeds.

        Steps that some seed does not have are left out.
        """
        seeds = [{row["step"]: row[name] for row in one.metrics if row.get(name) is not None} for one in self.entries]
        seeds = [values for values in seeds if values]
        if not seeds:
            return None
        steps = sorted(set.intersection(*(set(values) for values in seeds)))
        table = np.array([[float(values[step]) for step in steps] for values in seeds])
        if len(seeds) < 2 or not steps:
            return np.array(steps), table.mean(axis=0), None
        from scipy.stats import t

        half = t.ppf(0.975, len(seeds) - 1) * table.std(axis=0, ddof=1) / np.sqrt(len(seeds))
        return np.array(steps), table.mean(axis=0), half


def read_runs(folders: Sequence[str | os.PathLike[str]]) -> list[Entry]:
    """Every run, once; an error names the folder that is none."""
    entries = {}
    for folder in folders:
        run = Run(folder)
        path = run.path
        entries[path.resolve()] = Entry(
            run, run.checkpoint(), read_results(path), read_metrics(path), read_numbers(path)
        )
    return list(entries.values())


def grouped(entries: Sequence[Entry]) -> list[Group]:
    """Runs by what was learned from which data, in the order given; labels tell them apart."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(_key(entry), []).append(entry)
    members = [tuple(sorted(group, key=lambda one: one.seed)) for group in groups.values()]
    variants = [_variant(group[0], [other[0] for other in members]) for group in members]
    labels = _labels(members, variants)
    return [Group(*parts) for parts in zip(members, labels, variants, strict=True)]


def differing(entries: Sequence[Entry]) -> list[str]:
    """The settings in which runs differ, apart from how they run."""
    names = dict.fromkeys(name for entry in entries for name in entry.settings)
    kept = [name for name in names if name not in HOW_IT_RUNS]
    return [name for name in kept if len({repr(entry.settings.get(name)) for entry in entries}) > 1]


def learned_settings(entry: Entry) -> str:
    """Every setting that decides what is learned, as one text to compare."""
    return repr(sorted((name, value) for name, value in entry.settings.items() if name not in HOW_IT_RUNS))


def _key(entry: Entry) -> str:
    return repr((learned_settings(entry), entry.run.dataset.fingerprint))


def _variant(one: Entry, all_of_them: Sequence[Entry]) -> str:
    """The settings that tell a run from others of its method, or its name if they are many."""
    names = differing([other for other in all_of_them if other.run.config.method == one.run.config.method])
    if len(names) > MOST_IN_LABEL:
        return one.name
    return ", ".join(f"{name.removeprefix('method_config.')} {one.settings.get(name)}" for name in names)


def _labels(members: Sequence[tuple[Entry, ...]], variants: Sequence[str]) -> list[str]:
    """Method, world if there are several, and variant; the run's name where that leaves two alike."""
    several_worlds = len({(group[0].env, group[0].video) for group in members}) > 1
    labels = []
    for group, variant in zip(members, variants, strict=True):
        place = Group(group, "").place if several_worlds else ""
        labels.append(", ".join(part for part in (group[0].run.config.method, place, variant) if part))
    doubles = {label for label in labels if labels.count(label) > 1}
    names = [group[0].name for group in members]
    return [f"{label} ({name})" if label in doubles else label for label, name in zip(labels, names, strict=True)]


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, part in value.items():
        if isinstance(part, Mapping):
            yield from _flat(part, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", part
