"""PyBullet, imported without its greeting and with an error that says what to do when it is missing."""

import contextlib
import os
import sys
from collections.abc import Iterator

from gcb.errors import GCBError


@contextlib.contextmanager
def _quiet_stdout() -> Iterator[None]:
    """PyBullet writes its build time from C when it is imported, past Python's sys.stdout."""
    try:
        saved = os.dup(1)
    except OSError:  # no standard output at all: nothing to keep quiet
        yield
        return
    sys.stdout.flush()
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


try:
    with _quiet_stdout():
        import pybullet
        from pybullet_utils.bullet_client import BulletClient
except ModuleNotFoundError as missing:
    raise GCBError(
        "The worlds need PyBullet, which has wheels for CPython 3.10 and 3.11 only; "
        f"this is CPython {sys.version_info.major}.{sys.version_info.minor}. Own data and methods work without it."
    ) from missing

__all__ = ["BulletClient", "pybullet"]
