"""`gcb analyse`, `gcb reconstruct` and `gcb report`."""

import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from tyro.conf import Positional, arg

from gcb.agent.agent import load
from gcb.analysis.analyse import ANALYSIS_DIR, AnalysisSize, analyse
from gcb.analysis.reconstructions import reconstruction_sheet
from gcb.cli import RunDir
from gcb.data import open_dataset
from gcb.errors import GCBError
from gcb.report.report import write_report
from gcb.report.text_tables import analysis_tables

LOG_WIDTH = 140
"""Width of tables that are not printed to a terminal."""


@dataclass
class Analyse:
    """Analyse a run's representation: neighbours, map, analogy arithmetic. Writes RUN/analysis."""

    run_dir: RunDir
    """Directory of the run."""
    data: Path | None = None
    """Directory of the dataset to sample tasks from; None for the one the run was trained on."""
    size: Annotated[AnalysisSize, arg(name="")] = field(default_factory=AnalysisSize)
    seed: int = 0
    """Seed that selects tasks and scenes."""
    workers: int = 2
    """Number of processes that generate scenes; one per core is fastest."""
    clips: Path | None = None
    """Directory of video files for distractors, if those of the dataset have moved."""

    def run(self) -> None:
        options = {"video": str(self.clips)} if self.clips else None
        numbers = analyse(
            self.run_dir, self.data, size=self.size, seed=self.seed, workers=self.workers, options=options
        )
        console = Console(width=None if sys.stdout.isatty() else LOG_WIDTH)
        for table in rich_tables(numbers):
            console.print(table)
        for name, reason in numbers["skipped"].items():
            console.print(escape(f"skipped: {name} ({reason})"), soft_wrap=True)
        console.print(escape(f"figures and numbers: {self.run_dir / ANALYSIS_DIR}"), soft_wrap=True)


@dataclass
class Reconstruct:
    """Write an image of frames, their reconstructions and samples of an autoencoder (vae or cc_vae)."""

    run_dir: RunDir
    """Directory of a run of vae or cc_vae."""
    data: Path
    """Directory of the dataset to take frames from."""
    out: Path
    """The image, a .png file."""
    rows: int = 8
    """Number of frames."""
    seed: int = 0
    """Seed that selects frames and samples."""

    def run(self) -> None:
        reconstruction_sheet(load(self.run_dir), open_dataset(self.data), self.out, rows=self.rows, seed=self.seed)
        Console().print(f"image: {self.out}", soft_wrap=True)


@dataclass
class Report:
    """Write an HTML report about one or more runs: curves, success, figures, videos, settings; a single file."""

    runs: Annotated[Positional[tuple[Path, ...]], arg(metavar="RUN [RUN ...]")]
    """Directories of runs. Runs that differ only in their seed are shown together."""
    out: Path = field(default_factory=lambda: Path("report.html"))
    """The HTML file."""
    title: str = "Goal-conditioned bisimulation"
    """Title of the report."""

    def run(self) -> None:
        if not self.runs:
            raise GCBError("no run is given; accepted: one or more directories written by `gcb train --out`.")
        write_report(self.runs, self.out, title=self.title, command=self.command())
        Console().print(escape(f"report: {self.out} ({self.out.stat().st_size / 1e6:.1f} MB)"), soft_wrap=True)

    def command(self) -> str:
        """Return the command line that writes this report."""
        words = ["gcb", "report", *map(str, self.runs), "--out", str(self.out)]
        return shlex.join(words if self.title == Report.title else [*words, "--title", self.title])


def rich_tables(numbers: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the tables of an analysis, for the terminal."""
    for text_table in analysis_tables(numbers):
        table = Table(title=text_table.title, title_justify="left", caption=text_table.note, caption_justify="left")
        for index, name in enumerate(text_table.columns):
            table.add_column(name, no_wrap=index > 0)
        for row in text_table.rows:
            table.add_row(*map(escape, row))
        yield table
