"""Read and write .npz files a few rows at a time, and directories with one .npz file per episode.

Reading never executes or unpacks anything: pickled objects and members with paths in their names are refused.

    EPISODES/0000.npz   observations, actions and optionally rewards, terminated, goal, states, goal_state, task,
    EPISODES/0001.npz   success: see `gcb.data.episode`. Episodes are in the order of the file names.
"""

import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

import numpy as np

from gcb.data.episode import EpisodeArrays
from gcb.data.format import NPY_HEADER_ERRORS
from gcb.data.formats.source import EpisodeSource, sha256_of_files
from gcb.errors import GCBError

HEADER_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


@dataclass(frozen=True)
class Entry:
    """The header of one array."""

    shape: tuple[int, ...]
    dtype: np.dtype
    header_bytes: int


class Archive:
    """The arrays of one .npz file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: dict[str, Entry] = {}
        with self.errors("it"), zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                entry = self._entry(archive, info)
                name = info.filename.removesuffix(".npy")
                if name in self.entries:
                    raise GCBError(f"{path} holds {name} twice")
                self.entries[name] = entry

    def array(self, name: str) -> np.ndarray:
        """Return one whole array."""
        entry = self.entries[name]
        with self.rows(name) as rows:
            return rows.read(rows.left).reshape(entry.shape)

    def rows(self, name: str) -> "Rows":
        """Open an array to read it a few rows at a time."""
        with self.errors(name):
            return Rows(self, name)

    def _entry(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Entry:
        """Read the header of one member; check that it has no objects and that its length matches."""
        name = PurePosixPath(info.filename)
        if name.suffix != ".npy" or len(name.parts) != 1 or "\\" in info.filename:
            raise GCBError(f"{self.path} holds {info.filename!r}; accepted: arrays as written by numpy.savez")
        with archive.open(info) as handle:
            version = np.lib.format.read_magic(handle)
            if version not in HEADER_READERS:
                raise GCBError(f"{self.path}: {info.filename} has .npy version {version}; accepted: 1.0 and 2.0")
            shape, fortran, dtype = HEADER_READERS[version](handle)
            header = handle.tell()
        if dtype.hasobject:
            raise GCBError(f"{self.path}: {info.filename} holds pickled objects, which can run code: refused")
        if fortran and len(shape) > 1:
            raise GCBError(f"{self.path}: {info.filename} is in Fortran order; save np.ascontiguousarray of it")
        size = header + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if info.file_size != size:
            raise GCBError(
                f"{self.path}: {info.filename} has {info.file_size:,} bytes, its header says {size:,}: it is damaged"
            )
        return Entry(shape, dtype, header)

    @contextmanager
    def errors(self, name: str) -> Iterator[None]:
        """Turn every exception of a damaged or crafted file into a GCBError."""
        try:
            yield
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, *NPY_HEADER_ERRORS) as error:
            raise GCBError(f"{self.path} is damaged or not an .npz file: {name} could not be read ({error})") from error
        except OSError as error:
            raise GCBError(f"{self.path} could not be read: {error.strerror or error}") from error


class Rows:
    """Reads one array of an archive from its first row on; use it in a `with` block."""

    def __init__(self, archive: Archive, name: str) -> None:
        self._archive, self._name, self._entry = archive, name, archive.entries[name]
        self.left = self._entry.shape[0] if self._entry.shape else 1
        self._zip = zipfile.ZipFile(archive.path)
        self._handle = self._zip.open(f"{name}.npy")
        self._handle.read(self._entry.header_bytes)

    def read(self, count: int) -> np.ndarray:
        """Return the next `count` rows."""
        shape = (count, *self._entry.shape[1:])
        with self._archive.errors(self._name):
            content = _read_exactly(self._handle, int(np.prod(shape, dtype=np.int64)) * self._entry.dtype.itemsize)
            self.left -= count
            if not self.left:
                self._handle.read(1)  # at the end of the member, zipfile compares its checksum
        return np.frombuffer(content, self._entry.dtype).reshape(shape)

    def __enter__(self) -> "Rows":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._handle.close()
        self._zip.close()


def _read_exactly(handle: IO[bytes], size: int) -> bytearray:
    content = bytearray(size)
    view, filled = memoryview(content), 0
    while filled < size:
        part = handle.read(min(size - filled, 1 << 24))
        if not part:
            raise EOFError("unexpected end of file")
        view[filled : filled + len(part)] = part
        filled += len(part)
    return content


@dataclass(frozen=True)
class ChunkedArray:
    """An array that is too large for memory: its shape, its dtype, and its rows in chunks."""

    shape: tuple[int, ...]
    dtype: np.dtype
    chunks: Iterable[np.ndarray]


def write_npz(handle: IO[bytes], arrays: Mapping[str, np.ndarray | ChunkedArray]) -> None:
    """Write arrays like numpy.savez_compressed."""
    with zipfile.ZipFile(handle, "w") as archive:
        for name, array in arrays.items():
            chunked = array if isinstance(array, ChunkedArray) else ChunkedArray(array.shape, array.dtype, [array])
            info = zipfile.ZipInfo(f"{name}.npy")  # has a fixed date: equal arrays give equal bytes
            info.compress_type = zipfile.ZIP_DEFLATED
            descr = np.lib.format.dtype_to_descr(chunked.dtype)
            with archive.open(info, "w", force_zip64=True) as member:
                header = {"descr": descr, "fortran_order": False, "shape": chunked.shape}
                np.lib.format.write_array_header_1_0(member, header)
                for chunk in chunked.chunks:
                    member.write(np.ascontiguousarray(chunk, chunked.dtype).tobytes())


def npz_dir_source(path: Path) -> EpisodeSource:
    """Open a directory with one .npz file per episode."""
    files = sorted(path.glob("*.npz"))
    if not files:
        raise GCBError(f"{path} has no .npz files (one per episode), and is not a Minari or LeRobot dataset")

    def episodes() -> Iterator[tuple[str, EpisodeArrays]]:
        for file in files:
            archive = Archive(file)
            yield str(file), {name: archive.array(name) for name in archive.entries}

    source = {"format": "npz_dir", "name": path.name, "sha256": sha256_of_files(path, files)}
    return EpisodeSource({"source": source}, len(files), episodes)
