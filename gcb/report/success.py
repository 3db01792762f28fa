"""Success rates for the report: an overview, the comparison with the paper's Table 1, and all rates."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gcb.envs.spec import MODES
from gcb.report.paired import best_and_ties
from gcb.report.paper import COLUMNS, TABLE_1, table_1_cell, table_1_row
from gcb.report.run_groups import RunGroup
from gcb.report.table import MODE_NAMES, Cell, Column, span
from gcb.report.text_tables import NONE
from gcb.utils.statistics import CRITERIA, Criterion


class Mark(NamedTuple):
    """A success rate with its 95 % interval, and the paper's for comparison."""

    label: str
    column: Column
    colour: str
    mean: float
    low: float
    high: float
    paper: float | None


class PaperRow(NamedTuple):
    """A row of Table 1."""

    method: str
    variant: str
    cells: list[tuple[Cell | None, str, bool]]
    """Our result, the paper's, and whether ours is the best or a tie with it, for each of the paper's columns."""


def overview(groups: Sequence[RunGroup]) -> list[Mark]:
    """Return every group's success in every mode it was evaluated in, side by side what can be compared."""
    marks = []
    for group in sorted(groups, key=lambda group: table_1_row(group.method)):
        for mode in MODES:
            if cell := group.cell(mode):
                label, column = f"{group.label}, {MODE_NAMES[mode]}", _column(group, mode)
                marks.append(Mark(label, column, group.colour, cell.mean, *_interval(cell), _paper_mean(group, mode)))
    return sorted(marks, key=lambda mark: (*mark.column[:2], MODES.index(mark.column[2])))


def paper_rows(groups: Sequence[RunGroup]) -> list[PaperRow]:
    """Return the rows of Table 1 with our results next to the paper's, then the methods that are not in the paper."""
    ours = _by_variant(groups)
    known = [(name, [row for row in ours if table_1_row(row[0].method) == i] or [[]]) for i, name in enumerate(TABLE_1)]
    other = [(row[0].method, [row]) for row in ours if table_1_row(row[0].method) == len(TABLE_1)]
    best = {column: _best(groups, column) for column in COLUMNS}
    return [_paper_row(name, row, best) for name, rows in (*known, *other) for row in rows]


def success_table(groups: Sequence[RunGroup]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return headings and rows: label, mode, task, success by each criterion that was measured, seeds × episodes."""
    criteria: list[Criterion] = [
        criterion
        for criterion in CRITERIA
        if any(group.cell(mode, criterion=criterion) for group in groups for mode in MODES)
    ]
    rows = []
    for group in groups:
        for mode in MODES:
            tasks = sorted({task for record in group.records for task in record.tasks(mode)})
            for task in (None, *(tasks if len(tasks) > 1 else ())):
                if any_step := group.cell(mode, task):
                    name = (group.label, MODE_NAMES[mode], task or "all tasks")
                    rates = (_success(group, mode, task, criterion) for criterion in criteria)
                    episodes = span({rate.trials for rate in any_step.rates})
                    rows.append((*name, *rates, f"{len(any_step.rates)} × {episodes}"))
    headings = ("agent", "task given by", "task", *(CRITERIA[criterion] for criterion in criteria), "seeds × episodes")
    return headings, rows


def stale_evaluations(groups: Sequence[RunGroup]) -> list[str]:
    """Return a warning for each run that has been trained further since its evaluation."""
    warnings = []
    for record in (record for group in groups for record in group.records):
        step = record.checkpoint.step if record.checkpoint else None
        evaluated = sorted({result.get("step") for result in record.results.values()} - {None, step})
        if step is not None and evaluated:
            steps = " and ".join(f"{step:,}" for step in evaluated)
            warnings.append(f"{record.name} was evaluated at step {steps}, but is now at step {step:,}.")
    return warnings


def _success(group: RunGroup, mode: str, task: str | None, criterion: Criterion) -> str:
    """Return a success rate as text, or a dash if it was not measured for all seeds that were evaluated."""
    cell, evaluated = group.cell(mode, task, criterion=criterion), group.cell(mode, task)
    return str(cell) if cell and evaluated and len(cell.rates) == len(evaluated.rates) else NONE


def _interval(cell: Cell) -> tuple[float, float]:
    """Return the interval over episodes, widened to the one over seeds if there are several.

    Seeds that agree by chance, such as two at 0, have no interval of their own.
    """
    low, high = cell.pooled.interval
    half = cell.seed_interval or 0.0
    return max(0.0, min(low, cell.mean - half)), min(1.0, max(high, cell.mean + half))


def _column(group: RunGroup, mode: str) -> Column:
    return group.first.env, group.first.video, mode


def _paper_mean(group: RunGroup, mode: str) -> float | None:
    row, column = table_1_row(group.method), _column(group, mode)
    if row == len(TABLE_1) or column not in COLUMNS:
        return None
    result = list(TABLE_1.values())[row][COLUMNS.index(column)]
    return None if result is None else result[0]


def _by_variant(groups: Sequence[RunGroup]) -> list[list[RunGroup]]:
    """Collect groups of the same method and variant in different environments into rows."""
    rows: dict[tuple[str, int], list[RunGroup]] = {}
    for group in groups:
        number = 0
        while any(_column(other, "") == _column(group, "") for other in rows.get((group.name, number), [])):
            number += 1
        rows.setdefault((group.name, number), []).append(group)
    return list(rows.values())


def _best(groups: Sequence[RunGroup], column: Column) -> set[str]:
    """Return the labels of the best groups of a column, if there are several."""
    rivals = [group for group in groups if _column(group, column[2]) == column and group.cell(column[2])]
    return {group.label for group in best_and_ties(rivals, column[2])} if len(rivals) > 1 else set()


def _paper_row(name: str, row: Sequence[RunGroup], best: Mapping[Column, set[str]]) -> PaperRow:
    variant = ", ".join(dict.fromkeys(group.variant for group in row if group.variant))
    cells = []
    for column in COLUMNS:
        ours = (group for group in row if _column(group, column[2]) == column and group.cell(column[2]))
        group = next(ours, None)
        cell = group.cell(column[2]) if group else None
        cells.append((cell, table_1_cell(name, column) or "", bool(group and group.label in best[column])))
    return PaperRow(name, variant, cells)
