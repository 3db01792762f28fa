"""Paired differences of success: a reference against every other method, in the same evaluation episodes.

Two evaluations are paired if they have the same environment record, evaluation seed and `eval_temperature`: episode i
is then the same scene with the same task for both. In every episode success is averaged over a method's training seeds
first, so that two methods need not have the same seeds, nor the same number of them. The interval of a difference is
over episodes: it does not cover the variation between training seeds (`gcb.utils.statistics.paired_difference`).

This module does not import torch.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from gcb.envs.spec import MODES
from gcb.errors import GCBError, suggestion
from gcb.report.paper import table_1_row
from gcb.report.table import ENV_NAMES, MODE_NAMES, env_name
from gcb.utils.statistics import CRITERIA, Criterion, Estimate, Rate, paired_difference

if TYPE_CHECKING:
    from gcb.report.run_groups import RunGroup, RunRecord

DEFAULT_REFERENCE = "gcb"
OUTCOME_FIELDS: dict[Criterion, int] = {"any_step": 1, "at_end": 2, "declared": 4}
"""Index of each criterion in an outcome of eval.json: task, reached at, at the end, declared at, when declared."""


@dataclass(frozen=True)
class Evaluation:
    """What determines the episodes of an evaluation: evaluations that are equal can be paired."""

    env_record: str
    """The environment's record in eval.json, as JSON with sorted keys."""
    seed: int
    eval_temperature: float

    @property
    def env(self) -> str:
        """The environment's id, or its short name if it is built in."""
        env: str = json.loads(self.env_record)["env"]
        return ENV_NAMES.get(env, env)

    @property
    def options(self) -> Mapping[str, Any]:
        return json.loads(self.env_record)["options"]

    @property
    def video(self) -> bool:
        """Whether there are video distractors."""
        return bool(self.options.get("video"))

    def __str__(self) -> str:
        options = (f", {name} {value}" for name, value in self.options.items() if value is not None)
        return f"evaluation seed {self.seed}, temperature {self.eval_temperature:g}{''.join(options)}"


class Episodes(NamedTuple):
    """The evaluation episodes of one run in one mode, in order."""

    evaluation: Evaluation
    tasks: list[str]
    successes: list[bool]
    step: int | None
    """Training steps of the agent."""
    gcb_version: str


@dataclass(frozen=True)
class PairedRow:
    """The reference and one other method in the same episodes."""

    evaluation: Evaluation
    trained_on: str
    """The environment or dataset of training; empty if it is the environment of the evaluation."""
    mode: str
    method: str
    variant: str
    success: float
    """The method's success: the mean over seeds and the paired episodes."""
    reference_success: float
    difference: Estimate
    """The reference's success minus the method's."""
    seeds: int
    """Training seeds of the method."""
    reference_seeds: int
    steps: frozenset[int]
    """Training steps of all agents."""
    gcb_versions: frozenset[str]
    """Versions of gcb that evaluated them."""

    @property
    def result(self) -> Literal["ahead", "behind", "tie"]:
        """Whether the reference is ahead or behind; a tie if the interval includes 0."""
        low, high = self.difference.interval
        return "ahead" if low > 0 else "behind" if high < 0 else "tie"

    @property
    def env_title(self) -> str:
        """The environment of the evaluation, and what the agents were trained on if that is something else."""
        trained_on = f" (trained on {self.trained_on})" if self.trained_on else ""
        return env_name(self.evaluation.env, self.evaluation.video) + trained_on

    @property
    def order(self) -> tuple:
        """Rows are sorted by environment, mode, and method in the order of the paper's table."""
        env = (self.evaluation.env != "drawer", self.evaluation.env, self.evaluation.video, self.trained_on)
        method = (table_1_row(self.method), self.method, self.variant)
        return *env, MODES.index(self.mode), *method, str(self.evaluation)


@dataclass(frozen=True)
class Comparison:
    """All rows, and notes about runs that were left out."""

    reference: str
    criterion: Criterion
    rows: tuple[PairedRow, ...]
    notes: tuple[str, ...]


def compare(
    groups: Sequence["RunGroup"],
    reference: str = DEFAULT_REFERENCE,
    *,
    modes: Sequence[str] | None = None,
    criterion: Criterion = "any_step",
) -> Comparison:
    """Compare the reference with every other group of the same environment, in the modes that both were evaluated in.

    `groups` are those of `run_groups.group_by_env`. `reference` is a method, or a method (variant) if there are several
    of the method. `modes` restricts the modes. Runs that cannot be paired are left out, with a note.
    """
    if not any(reference in (group.name, group.method) for group in groups):
        names = dict.fromkeys(group.name for group in groups)
        raise GCBError(f"there is no run of the reference {reference!r}; {suggestion(reference, names)}")
    pairing, rows, found = _Pairing(criterion), [], set()
    for members in _by_env(groups):
        first = pairing.choose_reference(members, reference)
        if first is None:
            continue
        found.add(first.name)
        others = [group for group in members if group is not first]
        for mode in (mode for mode in MODES if not modes or mode in modes):
            rows += pairing.rows(first, others, mode, required=bool(modes))
    name = found.pop() if len(found) == 1 else reference
    return Comparison(name, criterion, tuple(sorted(rows, key=lambda row: row.order)), _note_texts(pairing.notes))


def best_and_ties(groups: Sequence["RunGroup"], mode: str) -> list["RunGroup"]:
    """Return the best of these groups of one environment in a mode, and those that tie with it."""
    means = {index: cell.mean for index, group in enumerate(groups) if (cell := group.cell(mode))}
    if not means:
        return []
    best, pairing = groups[max(means, key=lambda index: means[index])], _Pairing("any_step")
    others = [group for group in groups if group is not best]
    ties = [
        other
        for other in others
        if any(row.result == "tie" for row in pairing.rows(best, [other], mode, required=False))
    ]
    return [best, *ties]


def default_reference(groups: Sequence["RunGroup"]) -> str:
    """Return gcb if it is among the groups, else the first variant of it, else the first group."""
    names = [group.name for group in groups]
    variants = [group.name for group in groups if group.method == DEFAULT_REFERENCE]
    return DEFAULT_REFERENCE if DEFAULT_REFERENCE in names else (variants or names)[0]


def read_episodes(record: "RunRecord", mode: str, criterion: Criterion) -> Episodes | None:
    """Return the episodes of a run in a mode; None if it was not evaluated in it, or not by this criterion."""
    rate = record.rate(mode, criterion=criterion)
    if rate is None:
        return None
    result, place = record.results[mode], OUTCOME_FIELDS[criterion]
    is_success: Callable[[Any], bool] = (lambda value: value is not None) if criterion == "any_step" else bool
    try:
        tasks = [str(outcome[0]) for outcome in result["outcomes"]]
        successes = [is_success(outcome[place]) for outcome in result["outcomes"]]
        env_record = {**result["env"], "env": str(result["env"]["env"]), "options": dict(result["env"]["options"])}
        step = None if result["step"] is None else int(result["step"])
        seed, temperature = int(result["seed"]), float(result["eval_temperature"])
        if rate != Rate(sum(successes), len(successes)):
            raise ValueError("its outcomes do not add up to its rates")
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise GCBError(f"{record.run.path / 'eval.json'}: {mode} is damaged ({error!r})") from error
    evaluation = Evaluation(json.dumps(env_record, sort_keys=True), seed, temperature)
    return Episodes(evaluation, tasks, successes, step, str(result.get("gcb")))


class _Note(NamedTuple):
    """A note for the reader about a method or a run, in an environment and mode if they are given."""

    name: str
    text: str
    env: str = ""
    mode: str = ""


@dataclass
class _Pairing:
    """Pairs groups, and collects notes on what it leaves out."""

    criterion: Criterion
    notes: list[_Note] = field(default_factory=list)

    def choose_reference(self, groups: Sequence["RunGroup"], reference: str) -> "RunGroup | None":
        """Return the group of this name, else the only one of this method; None if there is none or more than one."""
        exact = [group for group in groups if group.name == reference]
        found = exact or [group for group in groups if group.method == reference]
        if len(found) == 1:
            return found[0]
        several = ", ".join(group.name for group in found)
        reason = f"several runs are {reference}: {several}" if found else f"there is no run of {reference}"
        others = [group for group in groups if group not in found]
        self.notes += [_Note(group.name, f"not compared, as {reason}", _trained_on(group)) for group in others]
        return None

    def rows(
        self, reference: "RunGroup", others: Sequence["RunGroup"], mode: str, *, required: bool
    ) -> Iterator[PairedRow]:
        """Yield a row for each other group that was evaluated in the same episodes as the reference.

        With `required`, there is a note even if the reference was not evaluated in this mode at all.
        """
        ours, paired = self._seeds(reference, mode), set()
        where = (_trained_on(reference), mode)
        for other in others:
            for evaluation, theirs in self._seeds(other, mode).items():
                if evaluation in ours:
                    paired.add(evaluation)
                    count, text = _common_episodes([*ours[evaluation], *theirs])
                    self.notes += [_Note(other.name, text, *where)] if text else []
                    if count:
                        self._note_datasets(reference, other)
                        yield _row(other, mode, count, ours[evaluation], theirs)
                elif ours or required:
                    reason = f"{reference.name} was not evaluated in the same episodes ({evaluation.env}, {evaluation})"
                    self.notes.append(_Note(other.name, f"not compared, as {reason}", *where))
        for evaluation in (evaluation for evaluation in ours if paired and evaluation not in paired):
            reason = f"nothing else was evaluated with {evaluation}"
            self.notes.append(_Note(reference.name, f"left out, as {reason}", *where))

    def _seeds(self, group: "RunGroup", mode: str) -> dict[Evaluation, list[Episodes]]:
        """Return the episodes of every training seed, by evaluation."""
        found: dict[Evaluation, dict[int, Episodes]] = {}
        for record in group.records:
            episodes = read_episodes(record, mode, self.criterion)
            if episodes is None:
                if mode in record.results:
                    text = f"left out, as success {CRITERIA[self.criterion]} was not measured"
                    self.notes.append(_Note(record.name, text, mode=mode))
            elif record.seed in (seeds := found.setdefault(episodes.evaluation, {})):
                text = "left out, as an earlier run has the same method, settings and seed"
                self.notes.append(_Note(str(record.run.path), text))
            else:
                seeds[record.seed] = episodes
        return {evaluation: list(seeds.values()) for evaluation, seeds in found.items()}

    def _note_datasets(self, reference: "RunGroup", other: "RunGroup") -> None:
        if other.first.run.dataset.fingerprint != reference.first.run.dataset.fingerprint:
            text = f"trained on another dataset than {reference.name}"
            self.notes.append(_Note(other.name, text, _trained_on(other)))


def _common_episodes(runs: Sequence[Episodes]) -> tuple[int, str]:
    """Return how many episodes, counted from the first, are the same for all runs, and a note if not all are."""
    lengths = {len(run.successes) for run in runs}
    count = min(lengths)
    if any(run.tasks[:count] != runs[0].tasks[:count] for run in runs):
        return 0, "not compared, as the tasks in the episodes differ; evaluate the runs again"
    if count < 2:
        return 0, "not compared, as an interval needs at least 2 episodes"
    if len(lengths) == 1:
        return count, ""
    return count, f"only the first {count:,} of {max(lengths):,} episodes are compared, as some runs have no more"


def _row(other: "RunGroup", mode: str, count: int, ours: Sequence[Episodes], theirs: Sequence[Episodes]) -> PairedRow:
    """Return the comparison of the reference's runs with those of another group in the first `count` episodes."""
    first, second = (np.array([run.successes[:count] for run in runs], float) for runs in (ours, theirs))
    evaluation, trained_on = theirs[0].evaluation, _trained_on(other)
    return PairedRow(
        evaluation=evaluation,
        trained_on="" if trained_on == env_name(evaluation.env, evaluation.video) else trained_on,
        mode=mode,
        method=other.method,
        variant=other.variant,
        success=float(second.mean()),
        reference_success=float(first.mean()),
        difference=paired_difference(first, second),
        seeds=len(theirs),
        reference_seeds=len(ours),
        steps=frozenset(run.step for run in (*ours, *theirs) if run.step is not None),
        gcb_versions=frozenset(run.gcb_version for run in (*ours, *theirs)),
    )


def _by_env(groups: Sequence["RunGroup"]) -> list[list["RunGroup"]]:
    """Split groups by the environment of their dataset."""
    found: dict[str, list[RunGroup]] = {}
    for group in groups:
        found.setdefault(_trained_on(group), []).append(group)
    return list(found.values())


def _trained_on(group: "RunGroup") -> str:
    return env_name(group.first.env, group.first.video)


def _note_texts(notes: Sequence[_Note]) -> tuple[str, ...]:
    """Return one line for all names, and all modes, that a text applies to in an environment."""
    modes: dict[tuple[str, str, str], list[str]] = {}
    for note in notes:
        modes.setdefault((note.text, note.env, note.name), []).append(MODE_NAMES.get(note.mode, ""))
    names: dict[tuple[str, str, str], list[str]] = {}
    for (text, env, name), applicable in modes.items():
        names.setdefault((text, env, ", ".join(filter(None, dict.fromkeys(applicable)))), []).append(name)
    return tuple(
        f"{', '.join(applicable)}{f' in {env}' if env else ''}{f' by {by}' if by else ''}: {text}"
        for (text, env, by), applicable in names.items()
    )
