"""What a check found, and how a list of such findings is written down."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from gcb.utils.files import write_atomically, write_json


@dataclass(frozen=True)
class Verdict:
    """One claim, tried on many MDPs (or tasks, or starts)."""

    source: str
    """Where the claim stands in the paper."""
    claim: str
    expected: bool
    """Ought it to hold, by the corrected theory? False for what the text says and a counter-example refutes.

    For what is learned there is no theory: there it says what was measured when the check was written.
    """
    violations: int
    """In how many of the cases it failed."""
    cases: int
    largest_violation: float
    """By how much it failed at worst; at or below `tolerance` it is rounding."""
    tolerance: float
    note: str = ""

    @property
    def holds(self) -> bool:
        return self.violations == 0

    @property
    def as_expected(self) -> bool:
        return self.holds == self.expected

    @property
    def word(self) -> str:
        """ "holds" or "fails", with an exclamation mark when that is a surprise."""
        return ("holds" if self.holds else "fails") + ("" if self.as_expected else " (!)")


class Tally:
    """Collects one number per case and turns them into a verdict; positive means violated."""

    def __init__(self, source: str, claim: str, *, expected: bool = True, tolerance: float = 1e-7) -> None:
        self.source, self.claim, self.expected, self.tolerance = source, claim, expected, tolerance
        self.gaps: list[float] = []

    def add(self, gap: float) -> None:
        self.gaps.append(float(gap))

    @property
    def found(self) -> bool:
        """Has a violation turned up yet?"""
        return any(gap > self.tolerance for gap in self.gaps)

    def verdict(self, note: str = "") -> Verdict:
        violations = sum(gap > self.tolerance for gap in self.gaps)
        largest = max(self.gaps)
        return Verdict(
            self.source, self.claim, self.expected, violations, len(self.gaps), largest, self.tolerance, note
        )


def as_markdown(verdicts: Sequence[Verdict]) -> str:
    """The verdicts as a Markdown table."""
    lines = ["| where | claim | verdict | failed in | largest violation | note |", "|---|---|---|---|---|---|"]
    for verdict in verdicts:
        failed = f"{verdict.violations} of {verdict.cases}"
        cells = (
            verdict.source,
            verdict.claim,
            f"**{verdict.word}**",
            failed,
            f"{verdict.largest_violation:.2g}",
            verdict.note,
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def save(verdicts: Sequence[Verdict], numbers: dict[str, object], out_dir: Path) -> None:
    """Write verdicts.json, with the other numbers of the run, and verdicts.md."""
    rows = [asdict(verdict) | {"holds": verdict.holds, "as_expected": verdict.as_expected} for verdict in verdicts]
    write_json(out_dir / "verdicts.json", {"verdicts": rows, "numbers": numbers})
    write_atomically(out_dir / "verdicts.md", as_markdown(verdicts).encode())
