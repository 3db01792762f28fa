"""Write datasets to disk: appending episodes so that a kill loses little, or a whole dataset in one step.

    OUT/.partial/identity.json   what is being written, and with which versions
    OUT/.partial/<field>.npy     space for a header, then raw rows, only ever appended to
    OUT/.partial/journal.json    how many rows are complete, with their hashes; replaced atomically once the rows
                                 are on disk
    OUT/.partial/manifest.json   only while the complete files are being renamed into OUT

Resuming truncates each file to the length in the journal. The manifest reaches OUT last.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from gcb.data.episode import Episode, RowLayout, check_same_layout, row_layout
from gcb.data.format import FIELDS, HEADER_BYTES, MANIFEST, PARTIAL, file_entry, make_manifest, npy_header
from gcb.data.output_dir import IDENTITY, JOURNAL, is_complete, publish
from gcb.data.store import Dataset, open_dataset
from gcb.errors import GCBError
from gcb.utils.files import CHUNK, directory_lock, staged_dir, sync, write_json
from gcb.utils.os_errors import explain_os_errors
from gcb.utils.text_files import read_json

CHECKPOINT_SECONDS = 2.0


@dataclass
class Journal:
    """How much of the partial files is complete, and the layout of their rows."""

    episodes: int = 0
    transitions: int = 0
    frames: int = 0
    successes: int = 0
    task_names: list[str] = field(default_factory=list)
    scene_names: list[str] = field(default_factory=list)
    rows: RowLayout = field(default_factory=dict)
    sha256: dict[str, str] = field(default_factory=dict)
    """For each field the hash of its rows."""

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a field's whole array."""
        return (getattr(self, FIELDS[name].along), *self.rows[name][1])

    def size(self, name: str) -> int:
        """Return the length of a field's file in bytes."""
        return HEADER_BYTES + int(np.prod(self.shape(name), dtype=np.int64)) * np.dtype(self.rows[name][0]).itemsize


class EpisodeWriter:
    """Appends episodes under OUT/.partial. Use `resume_or_create`, which locks and checks OUT first."""

    def __init__(self, out: Path, identity: Mapping[str, Any], checkpoint_seconds: float = CHECKPOINT_SECONDS) -> None:
        self.out, self.partial = out, out / PARTIAL
        self.checkpoint_seconds = checkpoint_seconds
        self.journal = Journal()
        self.saved = 0
        """Transitions in the last checkpoint: a kill does not lose them."""
        self._files: dict[str, IO[bytes]] = {}
        self._hashes: dict[str, Any] = {}
        self._write_failed = False
        self._last_checkpoint = time.monotonic()
        with explain_os_errors(out, "Nothing was lost"):
            self._open(identity)

    def __enter__(self) -> "EpisodeWriter":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Save the complete episodes, also after an error or an interrupt."""
        if self._files and not self._write_failed:
            with suppress(GCBError):
                self.checkpoint()
        self._close()

    def append(self, episode: Episode) -> None:
        """Add one episode; the next checkpoint saves it."""
        journal, rows = self._extended(episode)
        with self._explain_errors():
            for name, array in rows.items():
                if name not in self._files:
                    self._files[name] = self._create(name)
                self._files[name].write(array.data)
                self._hashes[name].update(array.data)
        self.journal = journal
        if time.monotonic() - self._last_checkpoint >= self.checkpoint_seconds:
            self.checkpoint()

    def checkpoint(self) -> None:
        """Save every episode appended so far."""
        with self._explain_errors():
            for handle in self._files.values():
                sync(handle)
            self.journal.sha256 = {name: digest.hexdigest() for name, digest in self._hashes.items()}
            write_json(self.partial / JOURNAL, asdict(self.journal))
        self.saved = self.journal.transitions
        self._last_checkpoint = time.monotonic()

    def discard(self) -> None:
        """Delete everything written so far."""
        self._close()
        shutil.rmtree(self.partial, ignore_errors=True)
        with suppress(OSError):  # other files may be in it
            self.out.rmdir()

    def finish(self, origin: Mapping[str, Any]) -> None:
        """Write the headers, hash the files, and move them into OUT with the manifest."""
        self.checkpoint()
        journal, files = self.journal, {}
        with self._explain_errors():
            for name, handle in self._files.items():
                dtype, shape = np.dtype(journal.rows[name][0]), journal.shape(name)
                handle.seek(0)
                handle.write(npy_header(dtype, shape))
                sync(handle)
                files[f"{name}.npy"] = file_entry(self.partial / f"{name}.npy", dtype, shape)
            self._close()
            counts = {key: getattr(journal, key) for key in ("episodes", "transitions", "frames")}
            names = {"task_names": journal.task_names, "scene_names": journal.scene_names}
            write_json(self.partial / MANIFEST, make_manifest(origin, counts, names, files))
            publish(self.out)

    def _open(self, identity: Mapping[str, Any]) -> None:
        """Start a new dataset, or reopen the files of an unfinished one."""
        self.partial.mkdir(parents=True, exist_ok=True)
        if not (self.partial / IDENTITY).is_file():
            write_json(self.partial / IDENTITY, identity)
        path = self.partial / JOURNAL
        if not path.is_file():
            return
        try:
            self.journal = Journal(**read_json(path))
            for name in self.journal.rows:
                self._files[name] = self._reopen(name)
        except (TypeError, KeyError, ValueError, IndexError, AttributeError) as error:
            raise self._damaged(f"{path} is damaged ({error!r})") from error
        self.saved = self.journal.transitions

    def _create(self, name: str) -> IO[bytes]:
        handle = open(self.partial / f"{name}.npy", "w+b")  # noqa: SIM115 (closed by _close)
        handle.write(bytes(HEADER_BYTES))
        self._hashes[name] = hashlib.sha256()
        return handle

    def _reopen(self, name: str) -> IO[bytes]:
        """Open a partial file, truncate it to its length in the journal, and check its rows against their hash."""
        path, expected = self.partial / f"{name}.npy", self.journal.size(name)
        size = path.stat().st_size if path.is_file() else 0
        if size < expected:
            raise self._damaged(f"{path} is damaged: it has {size:,} bytes, at least {expected:,} in its journal")
        handle = open(path, "r+b")  # noqa: SIM115 (closed by _close)
        handle.truncate(expected)
        digest = self._hashes[name] = hashlib.sha256()
        handle.seek(HEADER_BYTES)
        while chunk := handle.read(CHUNK):
            digest.update(chunk)
        if digest.hexdigest() != self.journal.sha256.get(name, digest.hexdigest()):
            handle.close()
            raise self._damaged(f"{path} is damaged: its rows differ from the SHA-256 in the journal")
        return handle

    def _damaged(self, message: str) -> GCBError:
        return GCBError(f"{message}. Delete {self.out} and run the command again")

    def _extended(self, episode: Episode) -> tuple[Journal, dict[str, np.ndarray]]:
        """Return the journal after this episode, and the episode's rows, which must have the layout of the others."""
        old = self.journal
        task_names = list(old.task_names)
        if episode.task is not None and episode.task not in task_names:
            task_names.append(episode.task)
        rows = episode.rows(old.frames, task_names)
        journal = Journal(
            episodes=old.episodes + 1,
            transitions=old.transitions + episode.length,
            frames=old.frames + len(rows["frames"]),
            successes=old.successes + bool(episode.success),
            task_names=task_names,
            scene_names=list(episode.scene),
            rows=row_layout(rows),
        )
        if old.episodes:
            name = f"episode {old.episodes}"
            check_same_layout(name, (journal.rows, journal.scene_names), (old.rows, old.scene_names))
        return journal, rows

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """After a failed or interrupted write the files are longer than the journal says; keep the journal as it is."""
        advice = f"{self.saved:,} transitions are saved in {self.partial}; free some space and run the command again"
        try:
            with explain_os_errors(self.out, advice):
                yield
        except BaseException:
            self._write_failed = True
            raise

    def _close(self) -> None:
        for handle in self._files.values():
            with suppress(OSError):  # a full disk has been reported already
                handle.close()
        self._files = {}


@contextmanager
def resume_or_create(
    out: Path, identity: Mapping[str, Any], checkpoint_seconds: float = CHECKPOINT_SECONDS
) -> Iterator[EpisodeWriter | None]:
    """Lock `out` and yield a writer that continues an unfinished dataset or starts a new one; None if it is complete.

    Another process may have completed it just now, or may have been killed while it renamed files.
    """
    with explain_os_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    with directory_lock(out):
        if is_complete(out, identity) or publish(out):
            yield None
            return
        with EpisodeWriter(out, identity, checkpoint_seconds) as writer:
            yield writer


def write_dataset(dataset: Dataset, out: str | os.PathLike[str]) -> Dataset:
    """Write a dataset in memory to a new or empty directory, completely or not at all, and open it from there."""
    path = Path(os.path.abspath(out))
    if path.exists() and (not path.is_dir() or os.listdir(path)):
        raise GCBError(f"{path} already exists and is not an empty directory; name a new or empty one")
    counts = {"episodes": dataset.episodes, "transitions": dataset.transitions, "frames": len(dataset.frames)}
    names = {"task_names": dataset.task_names, "scene_names": dataset.scene_names}
    with staged_dir(path) as staging:
        files = {f"{name}.npy": _write_array(staging, name, array) for name, array in dataset.arrays().items()}
        write_json(staging / MANIFEST, make_manifest({"config": dict(dataset.config)}, counts, names, files))
    return open_dataset(path)


def _write_array(directory: Path, name: str, array: np.ndarray) -> dict[str, Any]:
    """Write one .npy file with the format's own header; return its entry in the manifest."""
    path = directory / f"{name}.npy"
    rows = np.ascontiguousarray(array)
    with open(path, "wb") as handle:
        handle.write(npy_header(rows.dtype, rows.shape))
        handle.write(rows.data)
        sync(handle)
    return file_entry(path, rows.dtype, rows.shape)
