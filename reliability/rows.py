"""One line of the table of faults, and the table in Markdown."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

BEGIN, END = "<!-- reliability: begin -->", "<!-- reliability: end -->"


class Row(NamedTuple):
    """One kind of fault in one place."""

    kind: str
    tried: str
    """What was done, to what."""
    count: int
    """How often."""
    happened: str
    ok: bool


def row(kind: str, tried: str, count: int, happened: str, wrong: Sequence[str] = ()) -> Row:
    """A row that is well unless something is wrong; then it tells the first wrong thing."""
    if not wrong:
        return Row(kind, tried, count, happened, True)
    return Row(kind, tried, count, f"{len(wrong)} wrong, the first: {' '.join(wrong[0].split())[:300]}", False)


def counted(words: Iterable[tuple[str, int]]) -> str:
    """Words with how often each came, most often first."""
    return ", ".join(f"{count} {word}" for word, count in sorted(words, key=lambda one: (-one[1], one[0])))


def markdown(rows: Sequence[Row], command: str, remark: str) -> str:
    """The rows as a Markdown table, with the command that has printed it."""
    lines = [
        f"`{command}` printed this{remark}:",
        "",
        "| kind | tried | times | what happened | |",
        "|---|---|---|---|---|",
    ]
    for one in rows:
        cells = (one.kind, one.tried, f"{one.count:,}", one.happened, "ok" if one.ok else "**WRONG**")
        lines.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    return "\n".join(lines)


def write_between(path: Path, text: str) -> None:
    """Put the text between the two markers of a Markdown file; all else in it stays."""
    content = path.read_text(encoding="utf-8")
    before, found, rest = content.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        raise SystemExit(f"{path} has no lines {BEGIN} and {END} to write between")
    path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
