"""`gcb compare`."""

import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import rich.table
from rich.console import Console
from rich.markup import escape
from tyro.conf import Positional, arg

from gcb.envs.spec import Mode
from gcb.errors import GCBError
from gcb.report.paired import DEFAULT_REFERENCE, Comparison, compare
from gcb.report.paired_table import DIFFERENCE, caption, csv_text, markdown, table_headings, table_rows
from gcb.utils.files import explain_os_errors, write_atomically
from gcb.utils.statistics import Criterion

LOG_WIDTH = 160
"""Width of a table that is not printed to a terminal."""
SUFFIXES = (".md", ".csv")


@dataclass
class Compare:
    """Compare one method, the reference, with every other method and variant in the same evaluation episodes.

    Shows the success of each, and the reference's minus the other's with a 95 % interval over episodes. In every
    episode success is averaged over training seeds first: methods need not have the same number of seeds. The interval
    does not cover the variation between training seeds.
    """

    runs: Annotated[Positional[tuple[Path, ...]], arg(metavar="DIR [DIR ...]")]
    """Runs, or directories of runs such as DIR/runs of a sweep."""
    reference: str = DEFAULT_REFERENCE
    """The method to compare the others with; "method (variant)", as in tables, if there are several of it."""
    modes: tuple[Mode, ...] | None = None
    """Only these ways of giving the task; None for all in which both methods were evaluated."""
    criterion: Criterion = "any_step"
    """Count success at any step, at the end, or when the agent declares the task done."""
    out: Path | None = None
    """Write the table to this file, Markdown (.md) or CSV (.csv), instead of printing it."""

    def run(self) -> None:
        if not self.runs:
            raise GCBError("no run is given; accepted: runs, or directories of runs such as DIR/runs of a sweep.")
        if self.out and self.out.suffix not in SUFFIXES:
            raise GCBError(f"out is {str(self.out)!r}; accepted: a file that ends in {' or '.join(SUFFIXES)}.")
        comparison = self.comparison()
        console = Console(width=None if sys.stdout.isatty() else LOG_WIDTH)
        if self.out is None:
            console.print(comparison_table(comparison, self.command()))
        else:
            self._write(self.out, comparison)
        for note in comparison.notes:
            console.print(escape(f"note: {note}"), soft_wrap=True, highlight=False)
        if self.out is not None:
            console.print(escape(f"table: {self.out}"), soft_wrap=True)

    def comparison(self) -> Comparison:
        """Read the runs and compare them; raise an error if nothing can be compared."""
        # These import torch, which takes seconds.
        from gcb.report.run_groups import find_runs, group_by_env, read_runs
        from gcb.report.success import stale_evaluations

        groups = group_by_env(read_runs(find_runs(self.runs)))
        comparison = compare(groups, self.reference, modes=self.modes, criterion=self.criterion)
        if not comparison.rows:
            reasons = "; ".join(comparison.notes) or "no other run was evaluated in the same mode"
            raise GCBError(f"nothing can be compared with {comparison.reference}: {reasons}.")
        warnings = (warning.rstrip(".") for warning in stale_evaluations(groups))
        return replace(comparison, notes=(*comparison.notes, *warnings))

    def command(self) -> str:
        """Return the command that makes this table."""
        words = ["gcb", "compare", *map(str, self.runs)]
        words += ["--reference", self.reference] if self.reference != DEFAULT_REFERENCE else []
        words += ["--modes", *self.modes] if self.modes else []
        words += ["--criterion", self.criterion] if self.criterion != "any_step" else []
        return shlex.join([*words, "--out", str(self.out)] if self.out else words)

    def _write(self, path: Path, comparison: Comparison) -> None:
        text = csv_text(comparison) if path.suffix == ".csv" else markdown(comparison, self.command())
        with explain_os_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, text.encode())


def comparison_table(comparison: Comparison, command: str) -> rich.table.Table:
    """Return the table with its caption, for the terminal."""
    text = " ".join([*caption(comparison), f"Made by: {command}"])
    table = rich.table.Table(caption=escape(text), caption_justify="left")
    for name in table_headings(comparison):
        table.add_column(escape(name), overflow="fold", no_wrap=name == DIFFERENCE)
    for row in table_rows(comparison):
        table.add_row(*map(escape, row))
    return table
