"""The exception whose message is meant for the user, and the parts of such messages: values, names, suggestions."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from reprlib import Repr
from typing import Any, TypeVar

Value = TypeVar("Value")
MAX_VALUE = 80
_REPR = Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = MAX_VALUE
_REPR.maxlevel = 3


class GCBError(Exception):
    """A user's mistake or an outside fault: the message names the thing, its value and what is accepted.

    The command line prints it without a traceback.
    """


class NotInstalled(GCBError):
    """A package is missing that only a part of gcb needs."""


def short(value: Any) -> str:
    """Return the repr of a value, shortened: a message must not become as long as a file."""
    try:
        text = _REPR.repr(value)
    except ValueError:  # a whole number with more digits than Python converts to text
        text = f"a {type(value).__name__} that is too long to show"
    return text if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE // 2]}...{text[-MAX_VALUE // 4 :]}"


def printable(text: str) -> str:
    """Return text with its control characters escaped: names in files must not send commands to a terminal."""
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)


def utf8(text: str) -> bytes:
    """Return text as UTF-8; bytes of a path or an argument that are not UTF-8 are escaped."""
    return text.encode("utf-8", "backslashreplace")


def lookup(table: Mapping[str, Value], name: str, kind: str, also: str = "") -> Value:
    """Return `table[name]`, or raise an error with the nearest name, or with all names and what is `also` accepted."""
    if name not in table:
        raise GCBError(f"There is no {kind} {short(name)}; {suggestion(name, table, also)}")
    return table[name]


def suggestion(name: str, known: Iterable[str], also: str = "") -> str:
    """Return the known name closest to a misspelt one, or all of them, as the end of a message."""
    known, name = list(known), name[:MAX_VALUE].lower()
    longer = [
        word for word in known if min(len(word), len(name)) > 2 and (word.startswith(name) or name.startswith(word))
    ]
    close = sorted(longer, key=lambda word: abs(len(word) - len(name))) or get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"accepted: {', '.join(known)}{also}."
