"""Files and directories that are written completely or not at all, and locks."""

import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from gcb.errors import GCBError
from gcb.utils.os_errors import explain_os_errors

CHUNK = 1 << 20


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a binary file that replaces `path` if the block succeeds.

    Its content is on disk before it is renamed, so that a power cut leaves either the old file or the new one.
    """
    path = Path(path)
    if not path.name:  # "." or "/"
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as handle:
            yield handle
            sync(handle)
        os.replace(temporary, path)
        sync_directory(path.parent)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a small file."""
    with atomic_file(path) as handle:
        handle.write(content)


@contextmanager
def output_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file that the user asked for, like `atomic_file`, in a directory that is created if needed."""
    with explain_os_errors(path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as handle:
            yield handle


def write_output(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a small file that the user asked for, creating its directory if needed."""
    with output_file(path) as handle:
        handle.write(content)


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write a value as JSON with sorted keys: equal values give equal bytes."""
    write_atomically(path, (json.dumps(value, allow_nan=False, indent=1, sort_keys=True) + "\n").encode())


def sync(handle: IO[bytes]) -> None:
    """Wait until a file's content is on disk."""
    handle.flush()
    os.fsync(handle.fileno())


def sync_directory(path: str | os.PathLike[str]) -> None:
    """Wait until the names in a directory (new files, renames) are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file in hexadecimal, read in chunks."""
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        while chunk := handle.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def directory_lock(path: str | os.PathLike[str]) -> Iterator[None]:
    """Lock a directory for this process; raise an error if another process holds the lock.

    The lock is on the directory itself: no file is left behind, and the system releases it when the process dies.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise GCBError(f"{path} could not be opened: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise GCBError(
                f"{path} is in use by another gcb process. Wait for it, stop it, or choose another directory"
            ) from error
        except OSError as error:
            raise GCBError(
                f"{path} could not be locked ({error.strerror}): its file system, perhaps a network drive, does not "
                "support locks. Choose a directory on another one"
            ) from error
        yield
    finally:
        os.close(descriptor)


@contextmanager
def file_lock(path: str | os.PathLike[str]) -> Iterator[None]:
    """Lock a small file while it is read, changed and written; wait for other processes that hold the lock.

    The lock is a file beside it, deleted afterwards. A process that locked a file already deleted by another one tries
    again.
    """
    lock = Path(path).with_name(f".{Path(path).name}.lock")
    while (descriptor := _try_lock(lock)) is None:
        pass
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(descriptor)


def _try_lock(lock: Path) -> int | None:
    """Return a descriptor that holds the lock, or None if the lock file was deleted while waiting for it."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.path.samestat(os.fstat(descriptor), os.stat(lock)):
            return descriptor
    except FileNotFoundError:
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


@contextmanager
def staged_dir(path: Path) -> Iterator[Path]:
    """Yield an empty directory that becomes `path` if the block succeeds, and is deleted if it fails.

    The directory is filled beside its destination and renamed in one step, so `path` is never half-written.
    """
    staging = path.with_name(f".{path.name}.partial")
    with explain_os_errors(path):
        staging.mkdir(parents=True, exist_ok=True)
        with directory_lock(staging):
            try:
                for leftover in staging.iterdir():  # left by a killed process
                    shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
                yield staging
                os.rename(staging, path)
            except BaseException:
                shutil.rmtree(staging, ignore_errors=True)
                raise
        sync_directory(path.parent)
