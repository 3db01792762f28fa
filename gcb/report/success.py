"""Success rates for the report: an overview, the comparison with the paper's Table 1, and all rates."""

from collections.abc import Sequence
from typing import NamedTuple

from gcb.envs.spec import MODES
from gcb.report.paper import COLUMNS, TABLE_1, table_1_cell, table_1_row
from gcb.report.run_groups import RunGroup, learned_settings
from gcb.report.table import MODE_NAMES, Cell, Column
from gcb.report.text_tables import NONE
from gcb.utils.statistics import CRITERIA, Criterion


class Mark(NamedTuple):
    """A success rate with its 95 % interval, and the paper's for comparison."""

    label: str
    colour: str
    mean: float
    low: float
    high: float
    paper: float | None


class PaperRow(NamedTuple):
    """A row of Table 1."""

    method: str
    variant: str
    cells: list[tuple[Cell | None, str]]
    """Our result and the paper's, for each of the paper's columns."""


def overview(groups: Sequence[RunGroup]) -> list[Mark]:
    """Return every group's success in every mode it was evaluated in."""
    marks = []
    for group in groups:
        for mode in MODES:
            if cell := group.cell(mode):
                bounds = _interval(cell)
                label = f"{group.label}, {MODE_NAMES[mode]}"
                marks.append(Mark(label, group.colour, cell.mean, *bounds, _paper_mean(group, mode)))
    return marks


def paper_rows(groups: Sequence[RunGroup]) -> list[PaperRow]:
    """Return the rows of Table 1 with our results beside the paper's, then our methods that the paper does not have."""
    ours = _by_settings(groups)
    known = [(name, [row for row in ours if table_1_row(row[0].method) == i] or [[]]) for i, name in enumerate(TABLE_1)]
    other = [(row[0].method, [row]) for row in ours if table_1_row(row[0].method) == len(TABLE_1)]
    return [_paper_row(name, row) for name, rows in (*known, *other) for row in rows]


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
                    rows.append((*name, *rates, f"{len(any_step.rates)} × {any_step.rates[0].trials:,}"))
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
    """Return the interval over seeds if there are several, else over episodes, clipped to [0, 1]."""
    if cell.seed_interval is None:
        return cell.pooled.interval
    return max(0.0, cell.mean - cell.seed_interval), min(1.0, cell.mean + cell.seed_interval)


def _column(group: RunGroup, mode: str) -> Column:
    return group.first.env, group.first.video, mode


def _paper_mean(group: RunGroup, mode: str) -> float | None:
    row, column = table_1_row(group.method), _column(group, mode)
    if row == len(TABLE_1) or column not in COLUMNS:
        return None
    result = list(TABLE_1.values())[row][COLUMNS.index(column)]
    return None if result is None else result[0]


def _by_settings(groups: Sequence[RunGroup]) -> list[list[RunGroup]]:
    """Collect groups of the same method and settings in different environments into rows."""
    rows: dict[tuple[str, int], list[RunGroup]] = {}
    for group in groups:
        settings, number = learned_settings(group.first), 0
        while any(_column(other, "") == _column(group, "") for other in rows.get((settings, number), [])):
            number += 1
        rows.setdefault((settings, number), []).append(group)
    return list(rows.values())


def _paper_row(name: str, row: Sequence[RunGroup]) -> PaperRow:
    variant = ", ".join(dict.fromkeys(group.variant for group in row if group.variant))
    cells = []
    for column in COLUMNS:
        ours = (group.cell(column[2]) for group in row if _column(group, column[2]) == column)
        cells.append((next(filter(None, ours), None), table_1_cell(name, column) or ""))
    return PaperRow(name, variant, cells)
