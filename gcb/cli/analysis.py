"""`gcb analyse` and `gcb report`: composition only."""

import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from tyro.conf import Positional

from gcb.errors import GCBError

WIDTH_OF_LOGS = 140


@dataclass
class Analyse:
    """Look into a run's representation: neighbours, map, analogy arithmetic; writes RUN/analysis."""

    run_folder: Positional[Path]
    """Folder of the run."""
    data: Path | None = None
    """Dataset to take tasks from; by default the one that the run was trained on."""
    samples: int = 1000
    """Tasks whose neighbours are looked up, each of another episode."""
    pool: int = 4000
    """Tasks among which they are looked up."""
    scenes: int = 500
    """Fresh scenes for the arithmetic; its test set is three frames of each."""
    points: int = 1500
    """Tasks on the map."""
    rows: int = 8
    """Tasks and scenes shown in a figure, drawn by the seed."""
    seed: int = 0
    """Which tasks and scenes."""
    workers: int = 2
    """Processes that make the fresh scenes; one per core is best."""
    clips: Path | None = None
    """Folder of clips for video distractors, if the dataset's were own ones and lie elsewhere now."""

    def run(self) -> None:
        from gcb.analysis.analyse import ANALYSIS_DIR, AnalysisSize, analyse

        size = AnalysisSize(self.samples, self.pool, self.scenes, self.points, self.rows)
        options = {"video": str(self.clips)} if self.clips else None
        numbers = analyse(self.run_folder, self.data, size=size, seed=self.seed, workers=self.workers, options=options)
        console = Console(width=None if sys.stdout.isatty() else WIDTH_OF_LOGS)
        for table in number_tables(numbers):
            console.print(table)
        for name, reason in numbers["skipped"].items():
            console.print(escape(f"left out: {name} ({reason})"), soft_wrap=True)
        console.print(escape(f"figures and numbers: {self.run_folder / ANALYSIS_DIR}"), soft_wrap=True)


@dataclass
class Report:
    """Write one HTML file about one run or many: curves, success, figures, videos, settings. It needs no network."""

    runs: Positional[tuple[Path, ...]]
    """Folders of runs; those that differ only in their seed are shown as one."""
    out: Path = field(default_factory=lambda: Path("report.html"))
    """The file."""
    title: str = "Goal-conditioned bisimulation"
    """Its title."""

    def run(self) -> None:
        from gcb.report.report import write_report

        if not self.runs:
            raise GCBError("no run is given; accepted: one or more folders that `gcb train --out` has written.")
        write_report(self.runs, self.out, title=self.title, command=self.command())
        Console().print(escape(f"report: {self.out} ({self.out.stat().st_size / 1e6:.1f} MB)"), soft_wrap=True)

    def command(self) -> str:
        """The command that makes this report."""
        words = ["gcb", "report", *map(str, self.runs), "--out", str(self.out)]
        return shlex.join(words if self.title == Report.title else [*words, "--title", self.title])


def number_tables(numbers: Mapping[str, Any]) -> Iterator[Table]:
    """The numbers of an analysis, as tables."""
    from gcb.report.text_tables import analysis_tables

    for one in analysis_tables(numbers):
        table = Table(title=one.title, title_justify="left", caption=one.note, caption_justify="left")
        for number, name in enumerate(one.columns):
            table.add_column(name, no_wrap=number > 0)
        for row in one.rows:
            table.add_row(*map(escape, row))
        yield table
