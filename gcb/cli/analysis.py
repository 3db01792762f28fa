"""`gcb analyse`, `gcb reconstruct` and `gcb report`."""

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from gcb.analysis.size import AnalysisSize
from gcb.cli import Json, RunDir, Seed
from gcb.cli.arguments import Within
from gcb.cli.output import print_json, print_table, say
from gcb.errors import GCBError


@dataclass
class Analyse:
    """Analyse a run's representation: neighbours, map, analogy arithmetic. Writes RUN/analysis."""

    run_dir: RunDir
    """Directory of the run."""
    data: Path | None = None
    """Directory of the dataset to sample tasks from; none for the one the run was trained on."""
    size: Annotated[AnalysisSize, arg(name="")] = field(default_factory=AnalysisSize)
    seed: Seed = 0
    """Seed that selects tasks and scenes."""
    workers: int = 2
    """Number of processes that generate scenes; one per core is fastest."""
    clips: Path | None = None
    """Directory of video files for distractors, if those of the dataset have moved."""
    json: Json = False

    def run(self) -> None:
        from gcb.analysis.analyse import ANALYSIS_DIR, analyse
        from gcb.report.text_tables import analysis_tables

        options = {"video": str(self.clips)} if self.clips else None
        numbers = analyse(
            self.run_dir, self.data, size=self.size, seed=self.seed, workers=self.workers, options=options
        )
        if self.json:
            print_json(numbers)
        else:
            for table in analysis_tables(numbers):
                print_table(
                    table.columns, table.rows, title=table.title, caption=table.note, fixed=tuple(table.columns[1:])
                )
            for name, reason in numbers["skipped"].items():
                say(f"skipped: {name} ({reason})")
        say(f"figures and numbers: {self.run_dir / ANALYSIS_DIR}", error=self.json)


@dataclass
class Reconstruct:
    """Write an image of frames, their reconstructions and samples of an autoencoder (vae or cc_vae)."""

    run_dir: RunDir
    """Directory of a run of vae or cc_vae."""
    data: Path
    """Directory of the dataset to take frames from."""
    out: Path
    """The image, a .png file."""
    rows: Annotated[int, Within("[1, 1000]")] = 8
    """Number of frames."""
    seed: Seed = 0
    """Seed that selects frames and samples."""

    def run(self) -> None:
        from gcb.agent.agent import load
        from gcb.analysis.reconstructions import reconstruction_sheet
        from gcb.data import open_dataset

        reconstruction_sheet(load(self.run_dir), open_dataset(self.data), self.out, rows=self.rows, seed=self.seed)
        say(f"image: {self.out}")


@dataclass
class Report:
    """Write an HTML report about one or more runs: curves, success, figures, videos, settings; a single file."""

    runs: Annotated[Positional[tuple[Path, ...]], arg(metavar="DIR [DIR ...]")]
    """Runs, or directories of runs, such as that of a sweep. Runs that differ only in their seed are one agent."""
    out: Path = field(default_factory=lambda: Path("report.html"))
    """The HTML file."""
    title: str = "Goal-conditioned bisimulation"
    """Title of the report."""

    def run(self) -> None:
        from gcb.report.report import write_report

        if not self.runs:
            raise GCBError("no run is given; accepted: runs, or directories of runs, such as that of a sweep.")
        write_report(self.runs, self.out, title=self.title, command=self.command())
        say(f"report: {self.out} ({self.out.stat().st_size / 1e6:.1f} MB)")

    def command(self) -> str:
        """Return the command line that writes this report."""
        words = ["gcb", "report", *map(str, self.runs), "--out", str(self.out)]
        return shlex.join(words if self.title == Report.title else [*words, "--title", self.title])
