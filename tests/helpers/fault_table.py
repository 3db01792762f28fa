"""The table of injected faults in docs/reliability.md."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

BEGIN, END = "<!-- reliability: begin -->", "<!-- reliability: end -->"


class Row(NamedTuple):
    """A fault that was injected `count` times into one target, and the outcome."""

    fault: str
    target: str
    count: int
    outcome: str


def in_words(counts: Counter[str]) -> str:
    """Return counts with their names, the largest first."""
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def markdown(rows: Sequence[Row]) -> str:
    lines = ["| fault | target | times | outcome |", "|---|---|---|---|"]
    for row in rows:
        cells = (row.fault, row.target, f"{row.count:,}", row.outcome)
        lines.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    return "\n".join(lines)


def write_between_markers(path: Path, text: str) -> None:
    """Replace the text between the two markers of a Markdown file."""
    before, begin, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{path} has no lines {BEGIN} and {END} to write between")
    path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
