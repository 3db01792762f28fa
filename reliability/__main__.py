"""Try every kind of fault, or those named; exit code 1 when something was lost, wrong or executed."""

import argparse
import importlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from reliability.rows import Row, markdown, write_between

KINDS = ("kills", "disk", "corruption", "pickles", "locks", "growth", "progress", "load")
WIDTH_OF_LOGS = 160


def main(arguments: Sequence[str]) -> int:
    """Run the kinds that are asked for, print their table, and write it if a file is named."""
    parser = argparse.ArgumentParser("python -m reliability", description=__doc__)
    parser.add_argument("kinds", nargs="*", help=f"{', '.join(KINDS)}; all if none is named")
    parser.add_argument("--quick", action="store_true", help="fewer faults of each kind: a minute instead of many")
    parser.add_argument("--out", type=Path, help="Markdown file with markers to write the table between")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.kinds if name not in KINDS]:
        parser.error(f"there is no kind {unknown[0]!r}; there are {', '.join(KINDS)}")
    began, rows = time.monotonic(), []
    for name in given.kinds or KINDS:
        print(f"trying: {name}", file=sys.stderr)
        rows += tried(name, given.quick)
    Console(width=None if sys.stdout.isatty() else WIDTH_OF_LOGS).print(table(rows))
    if given.out:
        words = ["python -m reliability", *given.kinds, *(["--quick"] if given.quick else [])]
        minutes = f", in {(time.monotonic() - began) / 60:.0f} minutes of {os.cpu_count()} cores"
        write_between(given.out, markdown(rows, " ".join(words), minutes))
    return 0 if all(row.ok for row in rows) else 1


def tried(name: str, quick: bool) -> Iterator[Row]:
    """The rows of one kind; it has a folder of its own, which goes when it is done."""
    kind = importlib.import_module(f"reliability.{name}")
    with tempfile.TemporaryDirectory(prefix="gcb-") as folder, _one_thread():
        yield from kind.run(Path(folder), quick)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Forked processes cannot use the threads of their parent; and equal bits need equally many."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def table(rows: Sequence[Row]) -> Table:
    made = Table("kind", "tried", "times", "what happened", "")
    for row in rows:
        verdict = "[green]ok" if row.ok else "[bold red]WRONG"
        made.add_row(row.kind, row.tried, f"{row.count:,}", row.happened, verdict)
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
