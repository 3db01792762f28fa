"""Silence what C libraries print past Python's streams, without losing what other threads print meanwhile."""

import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Iterator

_redirected = threading.RLock()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Discard all output of this process: file descriptors 1 and 2 belong to every thread."""
    with _redirected:
        sys.stdout.flush()
        sys.stderr.flush()
        saved = {descriptor: os.dup(descriptor) for descriptor in (1, 2) if _is_open(descriptor)}
        with open(os.devnull, "wb") as devnull:
            for descriptor in saved:
                os.dup2(devnull.fileno(), descriptor)
        try:
            yield
        finally:
            ctypes.CDLL(None).fflush(None)  # otherwise what C has buffered would be printed later
            for descriptor, copy in saved.items():
                os.dup2(copy, descriptor)
                os.close(copy)


@contextlib.contextmanager
def unsilenced() -> Iterator[None]:
    """Wait until no other thread is in `quiet`, and keep them out of it: what is printed here is not lost."""
    with _redirected:
        yield
        sys.stdout.flush()
        sys.stderr.flush()


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
