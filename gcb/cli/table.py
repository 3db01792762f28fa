"""`gcb table`."""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from gcb.cli import Json
from gcb.cli.output import print_json
from gcb.errors import GCBError, utf8
from gcb.utils.files import write_output
from gcb.utils.statistics import Criterion


@dataclass
class Table:
    """Make a Markdown table of the results of sweeps: methods × (environment, video distractors, mode)."""

    results: Positional[tuple[Path, ...]]
    """One or more results.csv."""
    criterion: Criterion = "any_step"
    """Count success at any step, at the end, or when the agent declares the task done."""
    task: str = "all"
    """Only this task (drawer, button)."""
    paper: bool = False
    """Add the results of the paper's Table 1."""
    out: Path | None = None
    """Also write the table to this file."""
    json: Json = False

    def run(self) -> None:
        from gcb.report.rows import read_rows
        from gcb.report.table import make_table

        if not self.results:
            raise GCBError("no file is given; accepted: one or more results.csv.")
        rows = read_rows(self.results)
        text = make_table(rows, self.command(), criterion=self.criterion, task=self.task, paper=self.paper)
        if self.out:
            write_output(self.out, utf8(text))
        if self.json:
            chosen = [row for row in rows if row.task == self.task]
            print_json([{**vars(row), "rate": row.rate(self.criterion)} for row in chosen])
        else:
            sys.stdout.write(utf8(text).decode())

    def command(self) -> str:
        """Return the command that makes this table."""
        words = ["gcb", "table", *map(str, self.results)]
        words += ["--criterion", self.criterion] if self.criterion != "any_step" else []
        words += ["--task", self.task] if self.task != "all" else []
        words += ["--paper"] if self.paper else []
        return shlex.join([*words, "--out", str(self.out)] if self.out else words)
