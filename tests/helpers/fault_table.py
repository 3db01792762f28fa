"""The tables of injected faults and of bad input in docs/reliability.md."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


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


def write_between_markers(path: Path, section: str, text: str) -> None:
    """Replace the text between the two markers of a section of a Markdown file."""
    first, last = f"<!-- {section}: begin -->", f"<!-- {section}: end -->"
    before, begin, rest = path.read_text(encoding="utf-8").partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise SystemExit(f"{path} has no lines {first} and {last} to write between")
    path.write_text(f"{before}{first}\n\n{text}\n\n{last}{after}", encoding="utf-8")
