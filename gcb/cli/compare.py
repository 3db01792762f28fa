"""`gcb compare`."""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from gcb.cli import Json
from gcb.cli.output import print_json, print_table, say
from gcb.envs.spec import Mode
from gcb.errors import GCBError, utf8
from gcb.report.paired import DEFAULT_REFERENCE
from gcb.utils.files import write_output
from gcb.utils.statistics import Criterion

if TYPE_CHECKING:
    from gcb.report.paired import Comparison

SUFFIXES = (".md", ".csv")


@dataclass
class Compare:
    """Compare one method, the reference, with every other method and variant in the same evaluation episodes.

    Shows the success of each, and the reference's minus the other's with a 95 % interval over episodes. In every
    episode success is averaged over training seeds first: methods need not have the same number of seeds. The interval
    does not cover the variation between training seeds.
    """

    runs: Annotated[Positional[tuple[Path, ...]], arg(metavar="DIR [DIR ...]")]
    """Runs, or directories of runs, such as that of a sweep."""
    reference: str = DEFAULT_REFERENCE
    """The method to compare the others with; "method (variant)", as in tables, if it has several variants."""
    modes: tuple[Mode, ...] | None = None
    """Evaluation modes to compare; none for all in which both methods were evaluated."""
    criterion: Criterion = "any_step"
    """Count success at any step, at the end, or when the agent declares the task done."""
    out: Path | None = None
    """Write the table to this file, Markdown (.md) or CSV (.csv), instead of printing it."""
    json: Json = False

    def run(self) -> None:
        if not self.runs:
            raise GCBError("no run is given; accepted: runs, or directories of runs, such as that of a sweep.")
        if self.out and self.out.suffix not in SUFFIXES:
            raise GCBError(f"out is {str(self.out)!r}; accepted: a file that ends in {' or '.join(SUFFIXES)}.")
        comparison = self.comparison()
        if self.out is not None:
            self._write(self.out, comparison)
        elif not self.json:
            self._print(comparison)
        if self.json:
            print_json(comparison)
        for note in comparison.notes if not self.json else ():
            say(f"note: {note}")
        if self.out is not None:
            say(f"table: {self.out}", error=self.json)

    def comparison(self) -> "Comparison":
        """Read the runs and compare them; raise an error if nothing can be compared."""
        from gcb.report.paired import compare
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

    def _print(self, comparison: "Comparison") -> None:
        from gcb.report.paired_table import DIFFERENCE, caption, table_headings, table_rows

        text = " ".join([*caption(comparison), f"Made by: {self.command()}"])
        print_table(table_headings(comparison), table_rows(comparison), caption=text, fixed=(DIFFERENCE,))

    def _write(self, path: Path, comparison: "Comparison") -> None:
        from gcb.report.paired_table import csv_text, markdown

        text = csv_text(comparison) if path.suffix == ".csv" else markdown(comparison, self.command())
        write_output(path, utf8(text))
