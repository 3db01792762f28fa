"""Verdicts: the results of the checks, and how they are written to files."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from gcb.utils.files import write_atomically, write_json


@dataclass(frozen=True)
class Verdict:
    """One claim, checked on many MDPs (or tasks, or starts)."""

    source: str
    """Place of the claim in the paper."""
    claim: str
    expected: bool
    """Whether the claim should hold according to the corrected theory; false for claims of the text with a
    counterexample. For what is learned there is no theory, and this is what was measured when the check was written."""
    violations: int
    """Number of cases in which it failed."""
    cases: int
    largest_violation: float
    """The largest violation; up to `tolerance` it counts as rounding."""
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
        """ "holds" or "fails", with an exclamation mark if it is unexpected."""
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
        """Whether a violation has been found."""
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
