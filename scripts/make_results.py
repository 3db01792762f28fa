"""Make the tables of README.md and docs/ and the CSV files of results/ from the records in results/archive.

    python -m scripts.archive_runs SWEEP results/archive     # add the finished runs of a sweep to the records
    python -m scripts.make_results                           # make all tables and files again

A table stands in its Markdown file between `<!-- results: NAME -->` and `<!-- end of results -->`.
"""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from gcb.envs.spec import DEFAULT_MODES
from gcb.report.paired import best_and_ties, compare
from gcb.report.paper import COLUMNS, table_1_cell, table_1_row
from gcb.report.rows import Row, read_rows, write_rows
from gcb.report.run_groups import ENV_TITLES, RunGroup, find_runs, group_by_env, read_runs
from gcb.report.table import MODE_NAMES, markdown_line, span
from gcb.runs.ablations import ABLATIONS
from gcb.utils.files import write_atomically
from gcb.utils.statistics import Criterion

ROOT = Path(__file__).parent.parent
ARCHIVE = ROOT / "results" / "archive"
UNSEEN = ROOT / "results" / "unseen_shapes.csv"
PAGES = ("README.md", "docs/method.md", "docs/results.md")
FRAGMENT = re.compile(r"(<!-- results: (\w+) -->\n).*?(<!-- end of results -->)", re.DOTALL)
TABLE_1 = (*COLUMNS, ("button_drawer", False, "free"))
"""The columns of the paper's Table 1, and free analogies."""

Column = tuple[str, bool, str]
"""Environment, video distractors, evaluation mode."""


class Results:
    """The archived runs, grouped by method and variant, and the tables made of them."""

    def __init__(self, archive: Path = ARCHIVE) -> None:
        self.archive = archive
        self.groups = group_by_env(read_runs(find_runs([archive / "runs"])))

    @cached_property
    def rows(self) -> list[Row]:
        return read_rows([self.archive / "results.csv"])

    def fragments(self) -> dict[str, str]:
        """Return every table by name."""
        makers: dict[str, Callable[[], str]] = {
            "summary": self.summary,
            "table1": self.table_1,
            "criteria": self.criteria,
            "repeat": self.repeat,
            "beyond": self.beyond,
            "comparison": self.comparison,
            "components": lambda: self.ablations("components"),
            "components_declared": lambda: self.ablations("components", "declared"),
            "partners": lambda: self.ablations("partners"),
        }
        return {name: make() for name, make in makers.items()}

    # ---- tables ----------------------------------------------------------------------------------------------------

    def summary(self) -> str:
        """Return GCB and the reference policies: a line for each environment."""
        envs = [(env, video) for video in (False, True) for env in ENV_TITLES]
        lines = []
        for env, video in envs:
            ours = [self._text(self._group("gcb", env, video), mode) for mode in DEFAULT_MODES]
            others = [self._text(self._group(name, env, video), "goal") for name in ("gcbc", "goal_agnostic_bc")]
            paper = [table_1_cell("gcb", (env, video, mode)) for mode in ("goal", "strict")]
            seeds = self._seeds(env, video)
            lines.append([_env_title(env, video), seeds, *ours, *others, ", ".join(_short(text) for text in paper)])
        headings = [f"GCB, {MODE_NAMES[mode]}" for mode in DEFAULT_MODES]
        return _table(["", "seeds", *headings, "goal-conditioned BC", "goal-agnostic BC", "the paper's GCB"], lines)

    def table_1(self) -> str:
        """Return Table 1 with the paper's numbers. The best of each column and those that tie with it are bold."""
        best, lines = {column: self._best(column) for column in TABLE_1}, []
        for method in self._methods():
            cells = []
            for column in TABLE_1:
                text = self._text(self._group(method, *column[:2]), column[2])
                cells.append(f"**{text}**" if method in best[column] else text)
            lines.append([method, *cells])
            paper = [table_1_cell(method, column) for column in TABLE_1]
            if any(paper):
                lines.append(["*paper*", *(f"*{_short(text)}*" if text else "" for text in paper)])
        return _table(["method", *(_heading(column) for column in TABLE_1)], lines)

    def criteria(self) -> str:
        """Return GCB's success by each criterion."""
        lines = []
        for env, video in [(env, video) for video in (False, True) for env in ENV_TITLES]:
            group = self._group("gcb", env, video)
            for mode in DEFAULT_MODES if group else ():
                criteria: tuple[Criterion, ...] = ("any_step", "at_end", "declared")
                cells = [self._text(group, mode, criterion) for criterion in criteria]
                if set(cells) != {"–"}:
                    lines.append([f"{_env_title(env, video)}, {MODE_NAMES[mode]}", *cells])
        return _table(["GCB", "at any step", "at the end", "when declared done"], lines)

    def comparison(self) -> str:
        """Return every method on Button and Drawer, with paired differences from GCB."""
        groups = [group for method in self._methods() if (group := self._group(method, "button_drawer", False))]
        labels = {group.name: [group.method, str(len(group.records))] for group in groups}
        return self._table_of_differences(["method", "seeds"], labels, groups)

    def ablations(self, figure: str, criterion: Criterion = "any_step") -> str:
        """Return unchanged GCB and its ablations of a figure, with paired differences from unchanged GCB."""
        groups = {group.variant: group for group in self.groups if _place(group) == ("gcb", "button_drawer", False)}
        shown = [ablation for ablation in ABLATIONS.values() if ablation.figure == figure and ablation.name in groups]
        if "" not in groups or not shown:
            return "Not measured yet.\n"
        names = {"": ["GCB", ""], **{ablation.name: [f"`{ablation.name}`", ablation.description] for ablation in shown}}
        labels = {groups[name].name: [*label, str(len(groups[name].records))] for name, label in names.items()}
        return self._table_of_differences(["", "change", "seeds"], labels, [groups[name] for name in names], criterion)

    def _table_of_differences(
        self,
        headings: list[str],
        labels: dict[str, list[str]],
        groups: Sequence[RunGroup],
        criterion: Criterion = "any_step",
    ) -> str:
        """Return a line for each group by name; differences from the first one are bold if they are significant."""
        reference, *others = groups
        rows = compare(groups, reference.name, criterion=criterion).rows
        differences = {(row.method, row.variant, row.mode): row.difference for row in rows}
        lines = [[*labels[reference.name], *(self._text(reference, mode, criterion) for mode in DEFAULT_MODES)]]
        for group in others:
            cells = []
            for mode in DEFAULT_MODES:
                text = self._text(group, mode, criterion)
                if (difference := differences.get((group.method, group.variant, mode))) is not None:
                    text = f"{text} ({_signed(-difference.value)})"
                    text = text if difference.interval[0] <= 0 <= difference.interval[1] else f"**{text}**"
                cells.append(text)
            lines.append([*labels[group.name], *cells])
        return _table([*headings, *(MODE_NAMES[mode] for mode in DEFAULT_MODES)], lines)

    def beyond(self) -> str:
        """Return GCB on Button and Drawer in settings that the paper does not have."""
        group, lines = self._group("gcb", "button_drawer", False), []
        if group and group.cell("loose"):
            lines.append(["loose analogy: same task, other openings and targets", self._text(group, "loose"), "–"])
        if UNSEEN.exists():
            with UNSEEN.open(newline="", encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    change, low, high = (_signed(float(row[name])) for name in ("difference", "low", "high"))
                    what = f"distractor shapes that no training scene has, {MODE_NAMES[row['mode']]}"
                    lines.append([what, _number(float(row["unseen"])), f"{change} [{low}, {high}]"])
        return _table(["", "success", "difference from the usual shapes"], lines) if lines else "Not measured yet.\n"

    def repeat(self) -> str:
        """Return the command that repeats each cell of Table 1."""
        lines = []
        for method in self._methods():
            for env, video in dict.fromkeys(column[:2] for column in TABLE_1):
                if (group := self._group(method, env, video)) is None:
                    continue
                cells = {mode: cell for mode in DEFAULT_MODES if (cell := group.cell(mode))}
                episodes = max(rate.trials for cell in cells.values() for rate in cell.rates)
                command = f"gcb sweep --methods {method} --envs {env}{' --video on' if video else ''}"
                command += f" --seeds {len(group.records)} --episodes {episodes} --modes {' '.join(cells)}"
                lines.append([method, _env_title(env, video), f"`{command}`"])
        return _table(["method", "environment", "command"], lines)

    # ---- files -----------------------------------------------------------------------------------------------------

    def csv_files(self) -> dict[str, list[Row]]:
        """Return the rows of each file: Table 1 and every figure of ablations that has runs."""
        files = {"table1": [row for row in self.rows if not row.variant]}
        for figure in dict.fromkeys(ablation.figure for ablation in ABLATIONS.values()):
            names = {name for name, ablation in ABLATIONS.items() if ablation.figure == figure}
            rows = [row for row in self.rows if row.variant in names]
            envs = {(row.env, row.video) for row in rows}
            unchanged = [row for row in files["table1"] if row.method == "gcb" and (row.env, row.video) in envs]
            if rows:
                files[figure] = [*unchanged, *rows]
        return files

    # ---- parts -----------------------------------------------------------------------------------------------------

    def _group(self, method: str, env: str, video: bool) -> RunGroup | None:
        """Return the seeds of a method without changes."""
        found = (group for group in self.groups if _place(group) == (method, env, video) and not group.variant)
        return next(found, None)

    def _seeds(self, env: str, video: bool) -> str:
        """Return how many training seeds the reference methods have in an environment."""
        groups = [self._group(method, env, video) for method in ("gcb", "gcbc", "goal_agnostic_bc")]
        return span(counts) if (counts := {len(group.records) for group in groups if group}) else "–"

    def _methods(self) -> list[str]:
        """Return the methods that have runs without changes, in the order of the paper's table."""
        methods = {group.method for group in self.groups if not group.variant}
        return sorted(methods, key=lambda method: (table_1_row(method), method))

    def _text(self, group: RunGroup | None, mode: str, criterion: Criterion = "any_step") -> str:
        if group is None:
            return "–"
        cell = group.cell(mode, criterion=criterion)
        if cell is None:
            return "NA" if mode != "goal" and not _supports_analogy(group.method) else "–"
        low, high = cell.pooled.interval
        return f"{_number(cell.mean)} [{_number(low)}, {_number(high)}]"

    def _best(self, column: Column) -> set[str]:
        """Return the best of several methods of a column, and those whose paired difference from it includes 0."""
        env, video, mode = column
        groups = [group for method in self._methods() if (group := self._group(method, env, video))]
        return {group.method for group in best_and_ties(groups, mode)} if len(groups) > 1 else set()


def updated(text: str, fragments: dict[str, str]) -> str:
    """Return a page with its tables replaced."""
    return FRAGMENT.sub(lambda found: f"{found[1]}{fragments[found[2]]}{found[3]}", text)


def pages(fragments: dict[str, str], root: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """Yield every page with tables, and its new text."""
    for path in (root / name for name in PAGES):
        yield path, updated(path.read_text(encoding="utf-8"), fragments)


def _place(group: RunGroup) -> tuple[str, str, bool]:
    return group.method, group.first.env, group.first.video


def _supports_analogy(method: str) -> bool:
    from gcb.methods import method_named

    return method_named(method).supports_analogy


def _env_title(env: str, video: bool) -> str:
    return ENV_TITLES[env] + (" with video" if video else "")


def _heading(column: Column) -> str:
    env, video, mode = column
    return f"{_env_title(env, video)}, {MODE_NAMES[mode]}"


def _number(value: float) -> str:
    """Return two decimals without a leading zero: .87."""
    return f"{value:.2f}".removeprefix("0")


def _signed(value: float) -> str:
    return f"{'-' if round(value, 2) < 0 else '+'}{_number(abs(value))}"


def _short(text: str | None) -> str:
    """Return a cell of the paper's table in two decimals: .44 ± .03."""
    return "–" if text is None else re.sub(r"\d\.\d+", lambda found: _number(float(found[0])), text)


def _table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(map(markdown_line, [headings, ["---"] * len(headings), *lines])) + "\n"


if __name__ == "__main__":
    results = Results()
    for path, text in pages(results.fragments()):
        write_atomically(path, text.encode())
    for name, rows in results.csv_files().items():
        write_rows(ROOT / "results" / f"{name}.csv", rows)
    print(f"{len(results.groups)} groups of runs, {span({len(group.records) for group in results.groups})} seeds each")
