"""PyBullet, imported without its greeting and with an error that says what to do when it is missing."""

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator

from gcb.errors import GCBError


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """PyBullet greets from C, past Python's streams, when it is imported and when a client connects."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = {descriptor: os.dup(descriptor) for descriptor in (1, 2) if _is_open(descriptor)}
    with open(os.devnull, "wb") as nowhere:
        for descriptor in saved:
            os.dup2(nowhere.fileno(), descriptor)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # what C still holds back would otherwise come out later
        for descriptor, copy in saved.items():
            os.dup2(copy, descriptor)
            os.close(copy)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


try:
    with quiet():
        import pybullet
        from pybullet_utils.bullet_client import BulletClient
except ModuleNotFoundError as missing:
    raise GCBError(
        "The worlds need PyBullet, which has wheels for CPython 3.10 and 3.11 only; "
        f"this is CPython {sys.version_info.major}.{sys.version_info.minor}. Own data and methods work without it."
    ) from missing


def connect() -> BulletClient:
    """A simulation of its own, without a window."""
    with quiet():
        return BulletClient(pybullet.DIRECT)


__all__ = ["BulletClient", "connect", "pybullet", "quiet"]
