"""Arrays in .npz files, row by row in both directions: as large as they are, only a few rows are in memory.

Reading executes and unpacks nothing: pickled objects and members whose names lead elsewhere are refused.
"""

import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

import numpy as np

from gcb.data.format import HEADER_FAULTS
from gcb.errors import GCBError

HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


@dataclass(frozen=True)
class Entry:
    """What an array's header says."""

    shape: tuple[int, ...]
    dtype: np.dtype
    member: str
    header_bytes: int


class Archive:
    """The arrays of one .npz file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: dict[str, Entry] = {}
        with self.faults("it"), zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                entry = self._entry(archive, info)
                name = info.filename.removesuffix(".npy")
                if name in self.entries:
                    raise GCBError(f"{path} holds {name} twice")
                self.entries[name] = entry

    def array(self, name: str) -> np.ndarray:
        """One whole array."""
        entry = self.entries[name]
        with self.rows(name) as rows:
            return rows.read(rows.left).reshape(entry.shape)

    def rows(self, name: str) -> "Rows":
        """An array, to be read a few rows at a time."""
        with self.faults(name):
            return Rows(self, name)

    def _entry(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Entry:
        """The header of one member, if it is an array of plain values and as long as it says."""
        place = PurePosixPath(info.filename)
        if place.suffix != ".npy" or len(place.parts) != 1 or "\\" in info.filename:
            raise GCBError(f"{self.path} holds {info.filename!r}; accepted: arrays, as numpy's savez writes them")
        with archive.open(info) as handle:
            version = np.lib.format.read_magic(handle)
            if version not in HEADERS:
                raise GCBError(f"{self.path}: {info.filename} has .npy version {version}; accepted: 1.0 and 2.0")
            shape, fortran, dtype = HEADERS[version](handle)
            header = handle.tell()
        if dtype.hasobject:
            raise GCBError(f"{self.path}: {info.filename} holds pickled objects, which can run code: refused")
        if fortran and len(shape) > 1:
            raise GCBError(f"{self.path}: {info.filename} is stored column by column; save np.ascontiguousarray of it")
        size = header + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if info.file_size != size:
            raise GCBError(
                f"{self.path}: {info.filename} has {info.file_size:,} bytes, its header says {size:,}: it is damaged"
            )
        return Entry(shape, dtype, info.filename, header)

    @contextmanager
    def faults(self, what: str) -> Iterator[None]:
        """Whatever a damaged or crafted file provokes, as a message."""
        try:
            yield
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, *HEADER_FAULTS) as error:
            raise GCBError(f"{self.path} is damaged or not an .npz file: {what} could not be read ({error})") from error
        except OSError as error:
            raise GCBError(f"{self.path} could not be read: {error.strerror or error}") from error


class Rows:
    """One array of an archive from its first row on; to be used in a `with` block."""

    def __init__(self, archive: Archive, name: str) -> None:
        self._archive, self._name, self._entry = archive, name, archive.entries[name]
        self.left = self._entry.shape[0] if self._entry.shape else 1
        self._zip = zipfile.ZipFile(archive.path)
        self._handle = self._zip.open(self._entry.member)
        self._handle.read(self._entry.header_bytes)

    def read(self, count: int) -> np.ndarray:
        """The next `count` rows."""
        shape = (count, *self._entry.shape[1:])
        with self._archive.faults(self._name):
            content = _exactly(self._handle, int(np.prod(shape, dtype=np.int64)) * self._entry.dtype.itemsize)
            self.left -= count
            if not self.left:
                self._handle.read(1)  # at its end the member's checksum is compared
        return np.frombuffer(content, self._entry.dtype).reshape(shape)

    def __enter__(self) -> "Rows":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._handle.close()
        self._zip.close()


def _exactly(handle: IO[bytes], size: int) -> bytearray:
    content = bytearray(size)
    view, filled = memoryview(content), 0
    while filled < size:
        part = handle.read(min(size - filled, 1 << 24))
        if not part:
            raise EOFError("it ends too early")
        view[filled : filled + len(part)] = part
        filled += len(part)
    return content


@dataclass(frozen=True)
class Pieces:
    """An array that is too large to have at once: its shape, its type, and its rows in pieces."""

    shape: tuple[int, ...]
    dtype: np.dtype
    rows: Iterable[np.ndarray]


def write_npz(handle: IO[bytes], arrays: Mapping[str, np.ndarray | Pieces]) -> None:
    """Write arrays as numpy's savez_compressed does."""
    with zipfile.ZipFile(handle, "w") as archive:
        for name, array in arrays.items():
            pieces = array if isinstance(array, Pieces) else Pieces(array.shape, array.dtype, [array])
            info = zipfile.ZipInfo(f"{name}.npy")  # with a fixed date: equal arrays give equal bytes
            info.compress_type = zipfile.ZIP_DEFLATED
            descr = np.lib.format.dtype_to_descr(pieces.dtype)
            with archive.open(info, "w", force_zip64=True) as member:
                header = {"descr": descr, "fortran_order": False, "shape": pieces.shape}
                np.lib.format.write_array_header_1_0(member, header)
                for piece in pieces.rows:
                    member.write(np.ascontiguousarray(piece, pieces.dtype).tobytes())
