"""Turn an OSError into a message, and check paths before they are used."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gcb.errors import GCBError, short

MAX_NAME, MAX_PATH = 255, 4095
"""The longest name and path that Linux accepts, in bytes."""


def os_error_message(error: OSError) -> str:
    """Return the file and the reason of an error of the operating system: `runs/x: Permission denied`."""
    reason = error.strerror or str(error) or type(error).__name__
    return f"{os.fsdecode(error.filename)}: {reason}" if isinstance(error.filename, str | bytes) else reason


@contextmanager
def explain_os_errors(what: str | os.PathLike[str], advice: str = "Nothing was kept") -> Iterator[None]:
    """Turn an OSError on writing, such as a full disk or a missing permission, into a `GCBError`."""
    try:
        yield
    except OSError as error:
        raise GCBError(f"{what} could not be written: {error.strerror or error}. {advice}") from error


@contextmanager
def explain_read_errors(what: str | os.PathLike[str], advice: str = "") -> Iterator[None]:
    """Turn an OSError on reading into a `GCBError`."""
    try:
        yield
    except OSError as error:
        raise GCBError(f"{what} could not be read: {error.strerror or error}{advice}") from error


def read_bytes(path: str | os.PathLike[str], limit: int) -> bytes:
    """Return the content of a file of at most `limit` bytes."""
    with explain_read_errors(path), open(path, "rb") as handle:
        content = handle.read(limit + 1)
    if len(content) > limit:
        raise GCBError(f"{path} is larger than {limit / 1e6:,.0f} MB; such a file was not written by gcb")
    return content


def check_path(name: str, path: str | os.PathLike[str]) -> None:
    """Raise `GCBError` for a path that the operating system cannot accept."""
    text = os.fspath(path)
    if "\0" in text:
        raise GCBError(f"{name} is {short(text)}; a path cannot have a NUL character.")
    longest = max((len(os.fsencode(part)) for part in Path(text).parts), default=0)
    if longest > MAX_NAME or len(os.fsencode(text)) > MAX_PATH:
        accepted = f"names of at most {MAX_NAME} bytes, {MAX_PATH} in all"
        raise GCBError(f"{name} is {short(text)}, too long for a path; accepted: {accepted}.")
