"""The parts of a report that say how well agents do: at a glance, beside the paper's Table 1, and in full."""

from collections.abc import Sequence

from gcb.report.chart import Mark, marks
from gcb.report.html import Html, join, table, tag
from gcb.report.paper import COLUMNS, TABLE_1, table_1_cell, table_1_row
from gcb.report.run_groups import MODES, Group, learned_settings
from gcb.report.table import Cell

TOLD = {"goal": "by goal image", "strict": "by example", "loose": "by loose example"}
PAPER_COLUMNS = ("Drawer", "Drawer + VD", "BD", "BD + VD", "Analogy", "Analogy + VD")


def glance(groups: Sequence[Group]) -> Html:
    """Every success as a dot on its interval, the paper's number beside it."""
    rows = []
    for number, group in enumerate(groups):
        for mode in MODES:
            cell = group.cell(mode)
            if cell is not None:
                text = f"{100 * cell.mean:.0f} %"
                label = f"{group.label}, {TOLD[mode]}"
                rows.append(Mark(label, number, cell.mean, interval(cell), text, _paper_mean(group, mode)))
    if not rows:
        return tag("p", "None of these runs is evaluated yet: ", tag("code", "gcb eval RUN"), class_="empty")
    return marks("Success at any step of the episode, with 95 % intervals; ◇ the paper's", rows)


def table_1(groups: Sequence[Group]) -> Html:
    """The paper's Table 1 with ours beside it."""
    ours = _settings(groups)
    lines = []
    for place, name in enumerate(TABLE_1):
        theirs = [table_1_cell(name, column) or "" for column in COLUMNS]
        for row in [row for row in ours if table_1_row(row[0].method) == place] or [[]]:
            cells = [_beside(row, column, text) for column, text in zip(COLUMNS, theirs, strict=True)]
            lines.append((_titled(name, row), *cells))
    for row in ours:
        if table_1_row(row[0].method) == len(TABLE_1):
            lines.append((_titled(row[0].method, row), *(_beside(row, column, "") for column in COLUMNS)))
    note = (
        "Above ours, below in italics the paper's (mean ± standard error over 5 seeds). Ours: the mean over seeds, ± "
        "the 95 % t-interval of that mean where there are several seeds, in brackets the 95 % Wilson interval of all "
        "episodes together; success at any step, actions of the final policy. VD: video distractors; BD: Button and "
        "Drawer; Analogy: Button and Drawer, told by an example pair only. NA: the method has no answer; –: not run."
    )
    return join([table(("Method", *PAPER_COLUMNS), lines, class_="paper-table"), tag("p", note, class_="note")])


def success(groups: Sequence[Group]) -> Html:
    """Success by run, way of telling and task: at any step and at the end."""
    lines = []
    for group in groups:
        label = group.label
        for mode in MODES:
            told = TOLD[mode]
            tasks = sorted({task for entry in group.entries for task in entry.tasks(mode)})
            for task in (None, *(tasks if len(tasks) > 1 else ())):
                anywhere, at_end = group.cell(mode, task), group.cell(mode, task, at_end=True)
                if anywhere is None or at_end is None:
                    continue
                episodes = f"{len(anywhere.rates)} × {anywhere.rates[0].trials:,}"
                lines.append((label, told, task or "all tasks", str(anywhere), str(at_end), episodes))
                label = told = ""  # said once for the rows that follow
    if not lines:
        return Html("")
    columns = ("agent", "told", "task", "at any step", "at the end", "seeds × episodes")
    note = "In brackets 95 % Wilson intervals; ± is the 95 % t-interval over seeds. “At the end” asks the agent also "
    note += "to leave what it has done as it is. Episodes are of evaluation seeds, which no dataset uses."
    return join([table(columns, lines), tag("p", note, class_="note"), *_stale(groups)])


def interval(cell: Cell) -> tuple[float, float]:
    """Over seeds if there are several, else over episodes; never outside of 0 and 1."""
    if cell.seed_interval is None:
        return cell.pooled.interval
    return max(0.0, cell.mean - cell.seed_interval), min(1.0, cell.mean + cell.seed_interval)


def _stale(groups: Sequence[Group]) -> list[Html]:
    """Evaluations of a run that has been trained further since."""
    notes = []
    for entry in (entry for group in groups for entry in group.entries):
        now = entry.checkpoint.step if entry.checkpoint else None
        steps = {result.get("step") for result in entry.results.values()} - {None, now}
        if now is not None and steps:
            then = " and ".join(f"{step:,}" for step in sorted(steps))
            text = f"{entry.name} was evaluated at step {then}; it has come to step {now:,} since."
            notes.append(tag("p", text, class_="warning"))
    return notes


def _column(group: Group, mode: str) -> tuple[str, bool, str]:
    return group.first.env, group.first.video, mode


def _paper_mean(group: Group, mode: str) -> float | None:
    place, column = table_1_row(group.method), _column(group, mode)
    if place == len(TABLE_1) or column not in COLUMNS:
        return None
    numbers = list(TABLE_1.values())[place][COLUMNS.index(column)]
    return None if numbers is None else numbers[0]


def _settings(groups: Sequence[Group]) -> list[list[Group]]:
    """Groups of one method and setting in one row, whatever their worlds; each world once in a row."""
    rows: dict[tuple[str, int], list[Group]] = {}
    for group in groups:
        settings, number = learned_settings(group.first), 0
        while any(_column(other, "") == _column(group, "") for other in rows.get((settings, number), [])):
            number += 1
        rows.setdefault((settings, number), []).append(group)
    return list(rows.values())


def _titled(name: str, row: Sequence[Group]) -> Html:
    """A method's name, and what tells this row from others of it."""
    variants = ", ".join(dict.fromkeys(group.variant for group in row if group.variant))
    return join([name, " ", tag("small", variants)] if variants else [name])


def _beside(row: Sequence[Group], column: tuple[str, bool, str], theirs: str) -> Html:
    """One cell: ours above the paper's."""
    cells = [group.cell(column[2]) for group in row if _column(group, column[2]) == column]
    cell = next((cell for cell in cells if cell is not None), None)
    above = tag("strong", cell) if cell is not None else tag("span", "–", class_="none")
    return join([above, tag("em", theirs)] if theirs else [above])
