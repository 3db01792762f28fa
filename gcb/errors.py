"""The one exception a user is meant to read."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TypeVar

Value = TypeVar("Value")


class GCBError(Exception):
    """A user's mistake or an outside fault: the message names the thing, its value, and what would be accepted.

    The command line prints it without a traceback.
    """


def lookup(table: Mapping[str, Value], name: str, kind: str, also: str = "") -> Value:
    """What stands under `name`; an error that knows the nearest name, or all of them and what `also` is accepted."""
    if name not in table:
        close = get_close_matches(name, table, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(table)}{also}."
        raise GCBError(f"There is no {kind} {name!r}; {hint}")
    return table[name]
