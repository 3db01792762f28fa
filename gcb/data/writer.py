"""Append episodes to a dataset so that a kill at any moment loses at most the last few of them.

    OUT/.partial/identity.json   what is being collected, and with which versions
    OUT/.partial/<field>.npy     room for a header, then raw rows, only ever appended to
    OUT/.partial/journal.json    how many rows are sure to be whole, with their hashes; replaced atomically, after the
                                 rows are on the disk
    OUT/.partial/manifest.json   only while the complete files are being renamed into OUT

Whoever comes next cuts each file back to the journal and goes on. The manifest reaches OUT last.
"""

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from gcb.data.episode import Episode
from gcb.data.format import FIELDS, HEADER_BYTES, MANIFEST, PARTIAL, file_entry, make_manifest, npy_header
from gcb.data.output_dir import IDENTITY, JOURNAL, publish
from gcb.errors import GCBError
from gcb.utils.files import CHUNK, explain_os_errors, read_json, sync, write_json

CHECKPOINT_SECONDS = 2.0


@dataclass
class Journal:
    """What is whole in the partial files, and how their rows look."""

    episodes: int = 0
    transitions: int = 0
    frames: int = 0
    successes: int = 0
    task_names: list[str] = field(default_factory=list)
    scene_names: list[str] = field(default_factory=list)
    rows: dict[str, list[Any]] = field(default_factory=dict)
    """For each field the dtype and the shape of one row."""
    sha256: dict[str, str] = field(default_factory=dict)
    """For each field the hash of its rows."""

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a field's whole array."""
        return (getattr(self, FIELDS[name].along), *self.rows[name][1])

    def size(self, name: str) -> int:
        """The length of a field's file in bytes."""
        return HEADER_BYTES + int(np.prod(self.shape(name), dtype=np.int64)) * np.dtype(self.rows[name][0]).itemsize


class EpisodeWriter:
    """Appends episodes under OUT/.partial; the caller holds the lock on OUT and has checked that OUT is its own."""

    def __init__(self, out: Path, identity: Mapping[str, Any], checkpoint_seconds: float = CHECKPOINT_SECONDS) -> None:
        self.out, self.partial = out, out / PARTIAL
        self.checkpoint_seconds = checkpoint_seconds
        self.journal = Journal()
        self.kept = 0
        """Transitions that would survive a kill now."""
        self._files: dict[str, IO[bytes]] = {}
        self._hashes: dict[str, Any] = {}
        self._faulted = False
        self._last_checkpoint = time.monotonic()
        with explain_os_errors(out, "Nothing was lost"):
            self._begin(identity)

    def __enter__(self) -> "EpisodeWriter":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Whatever ended the block, keep the episodes that are whole."""
        if self._files and not self._faulted:
            with suppress(GCBError):
                self.checkpoint()
        self._close()

    def append(self, episode: Episode) -> None:
        """Add one episode; its rows become sure at the next checkpoint."""
        journal, rows = self._extended(episode)
        with self._faults():
            for name, array in rows.items():
                if name not in self._files:
                    self._files[name] = self._create(name)
                self._files[name].write(array.data)
                self._hashes[name].update(array.data)
        self.journal = journal
        if time.monotonic() - self._last_checkpoint >= self.checkpoint_seconds:
            self.checkpoint()

    def checkpoint(self) -> None:
        """Make sure of every episode appended so far."""
        with self._faults():
            for handle in self._files.values():
                sync(handle)
            self.journal.sha256 = {name: digest.hexdigest() for name, digest in self._hashes.items()}
            write_json(self.partial / JOURNAL, asdict(self.journal))
        self.kept = self.journal.transitions
        self._last_checkpoint = time.monotonic()

    def finish(self, head: Mapping[str, Any]) -> None:
        """Write the headers, hash the files, and put the dataset in place with its manifest."""
        self.checkpoint()
        journal, files = self.journal, {}
        with self._faults():
            for name, handle in self._files.items():
                dtype, shape = np.dtype(journal.rows[name][0]), journal.shape(name)
                handle.seek(0)
                handle.write(npy_header(dtype, shape))
                sync(handle)
                files[f"{name}.npy"] = file_entry(self.partial / f"{name}.npy", dtype, shape)
            self._close()
            counts = {"episodes": journal.episodes, "transitions": journal.transitions, "frames": journal.frames}
            names = {"task_names": journal.task_names, "scene_names": journal.scene_names}
            write_json(self.partial / MANIFEST, make_manifest({**head, **names}, counts, files))
            publish(self.out)

    def _begin(self, identity: Mapping[str, Any]) -> None:
        """Start afresh, or take up the files where the journal says they are whole."""
        self.partial.mkdir(parents=True, exist_ok=True)
        if not (self.partial / IDENTITY).is_file():
            write_json(self.partial / IDENTITY, identity)
        if not (self.partial / JOURNAL).is_file():
            return
        self.journal = self._read_journal()
        for name in self.journal.rows:
            self._files[name] = self._reopen(name)
        self.kept = self.journal.transitions

    def _read_journal(self) -> Journal:
        path = self.partial / JOURNAL
        try:
            return Journal(**read_json(path))
        except TypeError as error:
            raise GCBError(f"{path} is damaged ({error}). Delete {self.out} and collect again") from error

    def _create(self, name: str) -> IO[bytes]:
        handle = open(self.partial / f"{name}.npy", "w+b")  # noqa: SIM115 (closed by _close)
        handle.write(bytes(HEADER_BYTES))
        self._hashes[name] = hashlib.sha256()
        return handle

    def _reopen(self, name: str) -> IO[bytes]:
        """A partial file cut back to its journaled length, which it must have, with the rows that it had."""
        path, size = self.partial / f"{name}.npy", self.journal.size(name)
        found = path.stat().st_size if path.is_file() else 0
        if found < size:
            raise GCBError(
                f"{path} has {found:,} bytes, but its journal promises {size:,}: the unfinished dataset is damaged. "
                f"Delete {self.out} and collect again"
            )
        handle = open(path, "r+b")  # noqa: SIM115 (closed by _close)
        handle.truncate(size)
        digest = self._hashes[name] = hashlib.sha256()
        handle.seek(HEADER_BYTES)
        while chunk := handle.read(CHUNK):
            digest.update(chunk)
        if digest.hexdigest() != self.journal.sha256.get(name, digest.hexdigest()):
            handle.close()
            raise GCBError(
                f"{path} is damaged: its rows differ from the SHA-256 in the journal. "
                f"Delete {self.out} and collect again"
            )
        return handle

    def _extended(self, episode: Episode) -> tuple[Journal, dict[str, np.ndarray]]:
        """The journal as it will be, and the episode as rows of each field, checked to be like the ones before."""
        before = self.journal
        task_names = list(before.task_names)
        if episode.task is not None and episode.task not in task_names:
            task_names.append(episode.task)
        rows = episode_rows(episode, before.frames, task_names)
        journal = Journal(
            episodes=before.episodes + 1,
            transitions=before.transitions + episode.length,
            frames=before.frames + len(rows["frames"]),
            successes=before.successes + bool(episode.success),
            task_names=task_names,
            scene_names=list(episode.scene),
            rows={name: [array.dtype.str, list(array.shape[1:])] for name, array in rows.items()},
        )
        for what in ("scene_names", "rows") if before.episodes else ():
            if getattr(journal, what) != getattr(before, what):
                raise GCBError(
                    f"episode {before.episodes} differs in its {what} from those before it: "
                    f"{getattr(journal, what)} instead of {getattr(before, what)}"
                )
        return journal, rows

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """A failed or interrupted write leaves the files longer than the journal says, and the journal as it was."""
        advice = f"{self.kept:,} transitions are kept in {self.partial}; once there is room, the same command goes on"
        try:
            with explain_os_errors(self.out, advice):
                yield
        except BaseException:
            self._faulted = True
            raise

    def _close(self) -> None:
        for handle in self._files.values():
            with suppress(OSError):  # a full disk has been reported already
                handle.close()
        self._files = {}


def episode_rows(episode: Episode, first_frame: int, task_names: Sequence[str]) -> dict[str, np.ndarray]:
    """An episode as rows to append to each field, when `first_frame` frames are there already."""
    with_goal = episode.goal_frame is not None
    rows: dict[str, Any] = {
        "frames": _and_goal(episode.frames, episode.goal_frame),
        "actions": episode.actions,
        "terminated": episode.terminated,
        "episode_first_frame": [first_frame],
        "episode_length": [episode.length],
        "episode_goal_frame": [first_frame + len(episode.frames) if with_goal else -1],
    }
    if episode.states is not None:
        rows["states"] = _and_goal(episode.states, episode.goal_state)
    if episode.rewards is not None:
        rows["rewards"] = episode.rewards
    if episode.task is not None:
        rows["episode_task"] = [task_names.index(episode.task)]
    if episode.success is not None:
        rows["episode_success"] = [episode.success]
    if episode.scene:
        rows["episode_scene"] = [list(episode.scene.values())]
    return {name: np.ascontiguousarray(rows[name], FIELDS[name].dtype) for name in FIELDS if name in rows}


def _and_goal(rows: np.ndarray, goal: np.ndarray | None) -> np.ndarray:
    return rows if goal is None else np.concatenate([rows, goal[None]])
