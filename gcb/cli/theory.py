"""`gcb theory`."""

from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from gcb.theory import run


@dataclass
class Theory:
    """Check the paper's propositions on small MDPs, where the metric can be computed exactly."""

    out: Path = field(default_factory=lambda: Path("theory"))
    """Directory for the verdicts and figures."""
    quick: bool = False
    """Check fewer MDPs: seconds instead of minutes."""

    def run(self) -> None:
        table = Table(title="verdicts", title_justify="left")
        for name in ("source", "claim", "verdict", "cases", "largest violation"):
            table.add_column(name)
        for verdict in run(self.out, quick=self.quick):
            violation = f"{verdict.largest_violation:.2g}"
            table.add_row(verdict.source, verdict.claim, verdict.word, str(verdict.cases), violation)
        Console().print(table)
        Console().print(f"figures and verdicts: {self.out}")
