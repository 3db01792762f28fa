"""Make a Markdown table from results.csv: methods × (environment, video distractors, evaluation mode)."""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from gcb.envs.spec import ENV_IDS
from gcb.errors import GCBError
from gcb.report.paper import table_1_cell, table_1_row
from gcb.report.rows import ALL, NA, Row
from gcb.utils.statistics import CRITERIA, Criterion, Rate

Column = tuple[str, bool, str]
ENV_NAMES = {env_id: name for name, env_id in ENV_IDS.items()}
MODE_NAMES = {"goal": "goal image", "strict": "strict analogy", "loose": "loose analogy", "free": "free analogy"}


@dataclass(frozen=True)
class Cell:
    """One method in one column: a success rate for each seed."""

    rates: tuple[Rate, ...]

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return fmean(rate.value for rate in self.rates)  # the same on every version of Python, unlike sum()

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
            return NA
        low, high = self.pooled.interval
        over_seeds = "" if self.seed_interval is None else f" ± {self.seed_interval:.3f}"
        return f"{self.mean:.3f}{over_seeds} [{low:.3f}, {high:.3f}]"


def make_table(
    rows: Sequence[Row], command: str, *, criterion: Criterion = "any_step", task: str = ALL, paper: bool = False
) -> str:
    """Return the table with a caption that explains the numbers and names the command that made it."""
    chosen = [row for row in rows if row.task == task or not row.episodes]
    if not any(row.episodes for row in chosen):
        tasks = sorted({row.task for row in rows if row.episodes})
        raise GCBError(f"task is {task!r}, but the results have no such task; accepted: {', '.join(tasks) or 'none'}.")
    if not any(row.episodes and row.rate(criterion) is not None for row in chosen):
        raise GCBError(f"criterion is {criterion!r}, but the results lack it; `gcb eval` measures it.")
    _check_comparable(chosen)
    columns = sorted({_column(row) for row in chosen}, key=_column_order)
    lines = [markdown_line(["method", *map(_heading, columns)]), markdown_line(["---"] * (1 + len(columns)))]
    for (method, variant), entries in _by_method(chosen):
        cells = [_cell(entries, column, criterion) for column in columns]
        lines.append(markdown_line([method_name(method, variant), *cells]))
        if paper and not variant:
            paper_cells = [table_1_cell(method, column) for column in columns]
            if any(paper_cells):
                lines.append(markdown_line(["*paper*", *(f"*{text}*" if text else "" for text in paper_cells)]))
    return "\n".join([*lines, "", _caption(chosen, command, criterion, task, paper)]) + "\n"


def method_name(method: str, variant: str) -> str:
    """Return the name of a method and its variant in tables."""
    return f"{method} ({variant})" if variant else method


def env_name(env: str, video: bool) -> str:
    """Return the name of an environment in tables."""
    return f"{env} + video" if video else env


def _column(row: Row) -> Column:
    return row.env, row.video, row.mode


def _column_order(column: Column) -> tuple:
    """Goal images first, and Drawer first, as in the paper."""
    env, video, mode = column
    modes = list(MODE_NAMES)
    return modes.index(mode) if mode in modes else len(modes), mode, env != "drawer", env, video


def _heading(column: Column) -> str:
    env, video, mode = column
    return f"{env_name(env, video)}, {MODE_NAMES.get(mode, mode)}"


def _by_method(rows: Iterable[Row]) -> list[tuple[tuple[str, str], list[Row]]]:
    """Group rows by method and variant, in the order of the paper's table, then by name."""

    def key(row: Row) -> tuple[int, str, str]:
        return table_1_row(row.method), row.method, row.variant

    return [(place[1:], list(group)) for place, group in groupby(sorted(rows, key=key), key)]


def _cell(rows: Iterable[Row], column: Column, criterion: Criterion) -> str:
    rates = (row.rate(criterion) for row in rows if _column(row) == column)
    known = tuple(rate for rate in rates if rate is not None)
    return str(Cell(known)) if known else "–"


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


def _caption(rows: Sequence[Row], command: str, criterion: Criterion, task: str, paper: bool) -> str:
    """Describe the numbers so that the table can be read on its own."""
    played = [row for row in rows if row.episodes and row.rate(criterion) is not None]
    seeds: dict[tuple, set[int]] = {}
    for row in played:
        seeds.setdefault((row.method, row.variant, _column(row)), set()).add(row.seed)
    seed_counts = {len(group) for group in seeds.values()}
    what = f"Success {CRITERIA[criterion]}{'' if task == ALL else f', task {task}'}"
    first = (
        f"{what}: the mean over seeds, with the 95 % Wilson interval of all episodes pooled in brackets: the "
        "uncertainty about these particular agents."
    )
    if max(seed_counts) > 1:
        first += " ± is the 95 % t-interval of the mean over seeds: the uncertainty about training again."
    else:
        first += " One seed says nothing about the variation between seeds."
    unknown = any(row.rate(criterion) is None for row in rows)
    lines = [f"{first} NA: the method does not support analogies. –: not run{', or not measured' if unknown else ''}."]
    if criterion == "declared":
        lines.append("If the agent never declares the task done, it is judged at the end of the episode.")
    if paper:
        lines.append("*paper*: Table 1 of the paper, mean ± standard error over 5 seeds, on its own scenes and budget.")
    temperatures = ", ".join(f"{number:g}" for number in sorted({row.eval_temperature for row in played}))
    lines.append(
        f"Seeds: {span(seed_counts)}; episodes per seed: {span({row.episodes for row in played})}; "
        f"evaluation seed: {span({row.eval_seed for row in played})}; evaluation temperature: {temperatures}; "
        f"training steps: {span({row.steps for row in played})}; "
        f"gcb {', '.join(sorted({row.gcb_version for row in played}))}."
    )
    lines.append(f"Made by `{command}`.")
    return "\n\n".join(lines)


def span(numbers: Collection[int]) -> str:
    """Return the smallest and the largest number, or the only one."""
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def markdown_line(cells: Iterable[str]) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(cells)} |"
