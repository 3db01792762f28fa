"""Make a Markdown table from results.csv: methods × (environment, video distractors, evaluation mode)."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from gcb.errors import GCBError
from gcb.report.paper import table_1_cell, table_1_row
from gcb.report.rows import ALL, Row
from gcb.utils.statistics import Rate

Column = tuple[str, bool, str]
MODE_NAMES = {"goal": "goal image", "strict": "strict analogy", "loose": "loose analogy"}


@dataclass(frozen=True)
class Cell:
    """One method in one column: a success rate for each seed."""

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
    def seed_interval(self) -> float | None:
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
        over_seeds = "" if self.seed_interval is None else f" ± {self.seed_interval:.3f}"
        return f"{self.mean:.3f}{over_seeds} [{low:.3f}, {high:.3f}]"


def make_table(rows: Sequence[Row], command: str, *, at_end: bool = False, task: str = ALL, paper: bool = False) -> str:
    """Return the table with a caption that says what the numbers are and which command made it."""
    chosen = [row for row in rows if row.task == task or not row.episodes]
    if not any(row.episodes for row in chosen):
        tasks = sorted({row.task for row in rows if row.episodes})
        raise GCBError(f"task is {task!r}, but the results have no such task; accepted: {', '.join(tasks) or 'none'}.")
    _check_comparable(chosen)
    columns = sorted({_column(row) for row in chosen}, key=_column_order)
    lines = [_line(["method", *map(_heading, columns)]), _line(["---"] * (1 + len(columns)))]
    for (method, variant), entries in _by_method(chosen):
        cells = [_cell(entries, column, at_end) for column in columns]
        lines.append(_line([f"{method} ({variant})" if variant else method, *cells]))
        if paper and not variant:
            paper_cells = [table_1_cell(method, column) for column in columns]
            if any(paper_cells):
                lines.append(_line(["*paper*", *(f"*{text}*" if text else "" for text in paper_cells)]))
    return "\n".join([*lines, "", _caption(chosen, command, at_end, task, paper)]) + "\n"


def _column(row: Row) -> Column:
    return row.env, row.video, row.mode


def _column_order(column: Column) -> tuple:
    """Goal images first, and Drawer first, as in the paper."""
    env, video, mode = column
    return mode != "goal", mode, env != "drawer", env, video


def _heading(column: Column) -> str:
    env, video, mode = column
    return f"{env}{' + video' if video else ''}, {MODE_NAMES.get(mode, mode)}"


def _by_method(rows: Iterable[Row]) -> list[tuple[tuple[str, str], list[Row]]]:
    """Group rows by method and variant, in the order of the paper's table, then by name."""

    def key(row: Row) -> tuple[int, str, str]:
        return table_1_row(row.method), row.method, row.variant

    return [(place[1:], list(group)) for place, group in groupby(sorted(rows, key=key), key)]


def _cell(rows: Iterable[Row], column: Column, at_end: bool) -> str:
    rates = tuple(row.rate(at_end=at_end) for row in rows if _column(row) == column)
    return str(Cell(rates)) if rates else "–"


def _check_comparable(rows: Iterable[Row]) -> None:
    """Refuse to average seeds with different configurations, datasets or evaluations."""
    for name in ("config_hash", "dataset_hash", "eval_seed", "eval_temperature"):
        seen: dict[tuple, str] = {}
        for row in rows:
            where = (row.method, row.variant, *_column(row))
            if seen.setdefault(where, getattr(row, name)) != getattr(row, name):
                raise GCBError(
                    f"{name} differs between the seeds of {' '.join(filter(None, where[:2]))} in {row.env}: "
                    f"{seen[where]} and {getattr(row, name)}. Make one table of each, or use variants."
                )


def _caption(rows: Sequence[Row], command: str, at_end: bool, task: str, paper: bool) -> str:
    """Describe the numbers so that the table can be read on its own."""
    played = [row for row in rows if row.episodes]
    seeds: dict[tuple, set[int]] = {}
    for row in played:
        seeds.setdefault((row.method, row.variant, _column(row)), set()).add(row.seed)
    seed_counts = {len(group) for group in seeds.values()}
    what = f"Success {'at the end' if at_end else 'at any step'} of an episode{'' if task == ALL else f', task {task}'}"
    first = (
        f"{what}: the mean over seeds, with the 95 % Wilson interval of all episodes pooled in brackets: the "
        "uncertainty about these particular agents."
    )
    if max(seed_counts) > 1:
        first += " ± is the 95 % t-interval of the mean over seeds: the uncertainty about training again."
    else:
        first += " One seed says nothing about the variation between seeds."
    lines = [f"{first} NA: the method does not support analogies. –: not run."]
    if paper:
        lines.append("*paper*: Table 1 of the paper, mean ± standard error over 5 seeds, on its own scenes and budget.")
    temperatures = ", ".join(f"{number:g}" for number in sorted({row.eval_temperature for row in played}))
    lines.append(
        f"Seeds: {_span(seed_counts)}; episodes per seed: {_span({row.episodes for row in played})}; "
        f"evaluation seed: {_span({row.eval_seed for row in played})}; evaluation temperature: {temperatures}; "
        f"training steps: {_span({row.steps for row in played})}; "
        f"gcb {', '.join(sorted({row.gcb_version for row in played}))}."
    )
    lines.append(f"Made by `{command}`.")
    return "\n\n".join(lines)


def _span(numbers: set[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
