"""Files that are either wholly there or not at all, whatever happens in between."""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from gcb.errors import GCBError

CHUNK = 1 << 20


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that takes the place of `path` only when the block ends well.

    The bytes reach the disk before the name does, so that a power cut leaves the old file or the new one.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as handle:
            yield handle
            sync(handle)
        os.replace(temporary, path)
        sync_folder(path.parent)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write the whole of a small file."""
    with atomic_file(path) as handle:
        handle.write(content)


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write a value as JSON with sorted keys: equal values give equal bytes."""
    write_atomically(path, (json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n").encode())


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read JSON, or say which file is damaged."""
    try:
        return json.loads(Path(path).read_bytes())
    except ValueError as error:
        raise GCBError(f"{path} is not readable JSON ({error}): it is damaged or not one of gcb's files") from error


def sync(handle: IO[bytes]) -> None:
    """Return only when the file's bytes are on the disk."""
    handle.flush()
    os.fsync(handle.fileno())


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Return only when the folder's names (renames, new files) are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file as hexadecimal digits, without reading it into memory at once."""
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        while chunk := handle.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def folder_lock(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Hold a folder for this process alone.

    The lock is on the folder itself: no file is left behind, and the system releases it when the process dies.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise GCBError(f"{folder} could not be opened: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise GCBError(
                f"{folder} is in use: another gcb process writes to it. Wait for it, stop it, or name another folder"
            ) from error
        yield
    finally:
        os.close(descriptor)


@contextmanager
def disk_faults(what: str | os.PathLike[str], advice: str = "Nothing was kept") -> Iterator[None]:
    """Turn the system's refusal to write (full disk, no permission) into an error a user can act on."""
    try:
        yield
    except OSError as error:
        raise GCBError(f"{what} could not be written: {error.strerror or error}. {advice}") from error
