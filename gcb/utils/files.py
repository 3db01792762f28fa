"""Files and directories that are written completely or not at all, and locks."""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import yaml

from gcb.errors import GCBError

CHUNK = 1 << 20


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a binary file that replaces `path` if the block succeeds.

    Its content is on disk before it is renamed, so that a power cut leaves either the old file or the new one.
    """
    path = Path(path)
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


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write a value as JSON with sorted keys: equal values give equal bytes."""
    write_atomically(path, (json.dumps(value, allow_nan=False, indent=1, sort_keys=True) + "\n").encode())


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file."""
    try:
        return json.loads(Path(path).read_bytes())
    except OSError as error:
        raise GCBError(f"{path} could not be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise GCBError(f"{path} is not readable JSON ({error}): it is damaged, or was not written by gcb") from error


def read_yaml(path: str | os.PathLike[str]) -> Any:
    """Read the plain values of a YAML file; tags that would execute code are refused."""
    try:
        return yaml.safe_load(Path(path).read_bytes())
    except OSError as error:
        raise GCBError(f"{path} could not be read: {error.strerror}.") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise GCBError(f"{path} is not plain YAML: {' '.join(str(error).split())}") from error


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
def explain_os_errors(what: str | os.PathLike[str], advice: str = "Nothing was kept") -> Iterator[None]:
    """Turn an OSError on writing, such as a full disk or a missing permission, into a `GCBError`."""
    try:
        yield
    except OSError as error:
        raise GCBError(f"{what} could not be written: {error.strerror or error}. {advice}") from error


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
