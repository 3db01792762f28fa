"""A Markdown table of what results.csv holds: methods × (world, video, mode)."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from gcb.errors import GCBError
from gcb.report.paper import in_paper, place_of
from gcb.report.rows import ALL, Row
from gcb.utils.statistics import Rate

Column = tuple[str, bool, str]
MODE_WORDS = {"goal": "goal", "strict": "analogy", "loose": "loose analogy"}


@dataclass(frozen=True)
class Cell:
    """One method in one column: a rate for each seed."""

    rates: tuple[Rate, ...]

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return sum(rate.value for rate in self.rates) / len(self.rates)

    @property
    def pooled(self) -> Rate:
        """All episodes of all seeds as one sample."""
        return Rate(sum(rate.successes for rate in self.rates), sum(rate.trials for rate in self.rates))

    @property
    def over_seeds(self) -> float | None:
        """Half the width of the 95 % t-interval of the mean over seeds; None with one seed."""
        count = len(self.rates)
        if count < 2:
            return None
        from scipy.special import stdtrit

        variance = sum((rate.value - self.mean) ** 2 for rate in self.rates) / (count - 1)
        return float(stdtrit(count - 1, 0.975)) * math.sqrt(variance / count)

    def __str__(self) -> str:
        if not self.pooled.trials:
            return "NA"
        low, high = self.pooled.interval
        spread = "" if self.over_seeds is None else f" ± {self.over_seeds:.3f}"
        return f"{self.mean:.3f}{spread} [{low:.3f}, {high:.3f}]"


def make_table(rows: Sequence[Row], command: str, *, at_end: bool = False, task: str = ALL, paper: bool = False) -> str:
    """The table with its caption: what the numbers are, what they stand on, and the command that made it."""
    chosen = [row for row in rows if row.task == task or not row.episodes]
    if not any(row.episodes for row in chosen):
        tasks = sorted({row.task for row in rows if row.episodes})
        raise GCBError(f"there are no results of the task {task!r}; there are {', '.join(tasks) or 'none at all'}.")
    _check_alike(chosen)
    columns = sorted({_column(row) for row in chosen}, key=lambda one: (one[2] != "goal", one[2], _world_order(one)))
    lines = [_line(["method", *map(_heading, columns)]), _line(["---"] * (1 + len(columns)))]
    for (method, variant), entries in _by_method(chosen):
        cells = [_cell(entries, column, at_end) for column in columns]
        lines.append(_line([f"{method} ({variant})" if variant else method, *cells]))
        if paper and not variant:
            theirs = [in_paper(method, column) for column in columns]
            if any(theirs):
                lines.append(_line(["*paper*", *(f"*{text}*" if text else "" for text in theirs)]))
    return "\n".join([*lines, "", *_caption(chosen, command, at_end, task, paper)]) + "\n"


def _column(row: Row) -> Column:
    return row.env, row.video, row.mode


def _world_order(column: Column) -> tuple[bool, str, bool]:
    """As in the paper: Drawer first."""
    return column[0] != "drawer", column[0], column[1]


def _heading(column: Column) -> str:
    env, video, mode = column
    return f"{env}{' + video' if video else ''}, by {MODE_WORDS.get(mode, mode)}"


def _by_method(rows: Iterable[Row]) -> list[tuple[tuple[str, str], list[Row]]]:
    """Methods in the order of the paper's table, then the others by name; variants behind their method."""

    def key(row: Row) -> tuple[int, str, str]:
        return place_of(row.method), row.method, row.variant

    return [(place[1:], list(group)) for place, group in groupby(sorted(rows, key=key), key)]


def _cell(rows: Iterable[Row], column: Column, at_end: bool) -> str:
    rates = tuple(row.rate(at_end=at_end) for row in rows if _column(row) == column)
    return str(Cell(rates)) if rates else "–"


def _check_alike(rows: Iterable[Row]) -> None:
    """Seeds of different settings or datasets, or differently evaluated, have no mean."""
    for name in ("config", "dataset", "eval_seed", "eval_temperature"):
        seen: dict[tuple, str] = {}
        for row in rows:
            where = (row.method, row.variant, *_column(row))
            if seen.setdefault(where, getattr(row, name)) != getattr(row, name):
                raise GCBError(
                    f"the seeds of {row.method} {row.variant} in {row.env} differ in their {name}: "
                    f"{seen[where]} and {getattr(row, name)}. Make a table of each, or name them as variants."
                )


def _caption(rows: Sequence[Row], command: str, at_end: bool, task: str, paper: bool) -> list[str]:
    """What the numbers are and what they stand on, so that the table can be read alone."""
    played = [row for row in rows if row.episodes]
    seeds = {len({row.seed for row in group}) for group in _groups(played)}
    what = f"Success {'at the end' if at_end else 'at any step'} of an episode{'' if task == ALL else f', task {task}'}"
    lines = [
        f"{what}: the mean over seeds, and in brackets the 95 % Wilson interval "
        "of all episodes pooled, which says how well the rate of these very agents is known."
    ]
    if max(seeds) > 1:
        lines[0] += " ± is the 95 % t-interval of the mean over seeds: how much agents of other seeds may differ."
    else:
        lines[0] += " With one seed nothing is known of how much agents of other seeds differ."
    lines[0] += " NA: the method has no answer to an analogy. –: not run."
    if paper:
        lines.append(
            "*paper*: its Table 1, mean ± standard error over 5 seeds, from its own scenes and training budget."
        )
    lines.append(
        f"Seeds: {_span(seeds)}; episodes of each: {_span({row.episodes for row in played})}; "
        f"evaluation seed: {_span({row.eval_seed for row in played})}; "
        f"share of the policy's spread: {_listed({row.eval_temperature for row in played})}; "
        f"training steps: {_span({row.steps for row in played})}; gcb {', '.join(sorted({row.gcb for row in played}))}."
    )
    lines.append(f"Made by `{command}`.")
    return ["\n\n".join(lines)]


def _groups(rows: Iterable[Row]) -> list[list[Row]]:
    def key(row: Row) -> tuple:
        return row.method, row.variant, _column(row)

    return [list(group) for _, group in groupby(sorted(rows, key=key), key)]


def _span(numbers: set[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _listed(numbers: set[float]) -> str:
    return ", ".join(f"{number:g}" for number in sorted(numbers))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
