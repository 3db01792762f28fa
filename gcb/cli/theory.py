"""`gcb theory`."""

from dataclasses import dataclass, field
from pathlib import Path

from gcb.cli import Json
from gcb.cli.output import print_json, print_table, say


@dataclass
class Theory:
    """Check the paper's propositions on small MDPs, where the metric can be computed exactly."""

    out: Path = field(default_factory=lambda: Path("theory"))
    """Directory for the verdicts and figures."""
    quick: bool = False
    """Check fewer MDPs: seconds instead of minutes."""
    json: Json = False

    def run(self) -> None:
        from gcb.theory import run

        verdicts = run(self.out, quick=self.quick)
        if self.json:
            print_json([{"verdict": verdict.word, **vars(verdict)} for verdict in verdicts])
        else:
            rows = [(v.source, v.claim, v.word, str(v.cases), f"{v.largest_violation:.2g}") for v in verdicts]
            print_table(("source", "claim", "verdict", "cases", "largest violation"), rows, title="verdicts")
        say(f"figures and verdicts: {self.out}", error=self.json)
