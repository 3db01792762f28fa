"""What commands print: lines, tables and JSON. Text is printed as it is: brackets in a path are not markup."""

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gcb.errors import printable, utf8

LOG_WIDTH = 160
"""Width of a table that is not printed to a terminal."""


def say(text: str, *, error: bool = False) -> None:
    """Print a line of text, which a terminal may wrap but nothing else changes."""
    print(printable(text), file=sys.stderr if error else sys.stdout)


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    caption: str | None = None,
    fixed: Sequence[str] = (),
) -> None:
    """Print a table; the columns named in `fixed` are not wrapped."""
    table = Table()
    for name in columns:
        table.add_column(_text(name), overflow="fold", no_wrap=name in fixed)
    for row in rows:
        table.add_row(*map(_text, row))
    _print_table(table, title, caption)


def print_rows(rows: Iterable[tuple[str, str]], title: str | None = None) -> None:
    """Print names and values, one pair per line."""
    table = Table(show_header=False, box=None)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*map(_text, row))
    _print_table(table, title)


def _print_table(table: Table, title: str | None, caption: str | None = None) -> None:
    """Print a table between its title and caption, which Rich would wrap at the table's width."""
    out = console()
    for part in (title, table, caption):
        if part:
            out.print(Text(printable(part), style="italic") if isinstance(part, str) else part)


def print_json(value: Any) -> None:
    """Print a value as JSON; numbers that are not finite become null."""
    print(utf8(json.dumps(_plain(value), indent=1, ensure_ascii=False, allow_nan=False)).decode())


def console() -> Console:
    """Return a console for tables: as wide as the terminal, or wide enough for a log."""
    return Console(width=None if sys.stdout.isatty() else LOG_WIDTH, markup=False, highlight=False)


def _text(text: str) -> Text:
    return Text(printable(text))


def _plain(value: Any) -> Any:
    """Return a value as what JSON can hold. A dataclass is a mapping, with its value and interval if it has them."""
    if is_dataclass(value):
        values = {field.name: getattr(value, field.name) for field in fields(value)}
        extra = {name: getattr(value, name) for name in ("value", "interval") if hasattr(value, name)}
        return _plain({**values, **extra})
    if isinstance(value, Mapping):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value) if isinstance(value, Path) else value
