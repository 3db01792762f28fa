"""The exception whose message is meant for the user, and messages for unknown names."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

Value = TypeVar("Value")


class GCBError(Exception):
    """A user's mistake or an outside fault: the message names the thing, its value and what is accepted.

    The command line prints it without a traceback.
    """


def lookup(table: Mapping[str, Value], name: str, kind: str, also: str = "") -> Value:
    """Return `table[name]`, or raise an error that suggests the nearest name or lists all, and what `also` works."""
    if name not in table:
        raise GCBError(f"There is no {kind} {name!r}; {suggestion(name, table, also)}")
    return table[name]


def suggestion(name: str, known: Iterable[str], also: str = "") -> str:
    """Return the known name closest to a misspelt one, or all of them, as the end of a message."""
    known = list(known)
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"accepted: {', '.join(known)}{also}."
