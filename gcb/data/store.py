"""A dataset in memory or as memory maps: every frame once, and an index of episodes.

For a collected episode of T transitions the frames are its T + 1 observations and then its goal:

                    episode 0, T = 3              episode 1, T = 2
    frames        | o0   o1   o2   o3   goal    | o0   o1   o2   goal |
    frame index      0    1    2    3    4         5    6    7    8
    actions       | a0   a1   a2                | a0   a1             |
    transition       0    1    2                   3    4

    episode_first_frame = [0, 5]    episode_length = [3, 2]    episode_goal_frame = [4, 8]

Transition t of episode e leads from frame f = episode_first_frame[e] + (t - first_transition[e]) to frame f + 1.
The goal may be any frame, also one that several episodes share, or none (-1); frames may have any shape.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gcb.data.format import (
    FIELDS,
    HEADER_FAULTS,
    MANIFEST,
    file_entry,
    make_manifest,
    npy_header,
    read_manifest,
)
from gcb.errors import GCBError
from gcb.utils.files import sha256, staged_dir, sync, write_json


@dataclass(frozen=True, eq=False)
class Dataset:
    """Transitions, their frames, and the episodes they belong to. Fields that a dataset may lack are None."""

    frames: np.ndarray
    """(F, …) what the agent sees: every observation and goal once."""
    actions: np.ndarray
    """(N, A)"""
    terminated: np.ndarray
    """(N,) bool: the episode's own goal was reached here. A time-out is not marked."""
    episode_first_frame: np.ndarray
    """(E,) frame of the first observation."""
    episode_length: np.ndarray
    """(E,) number of transitions T; the observations are T + 1."""
    episode_goal_frame: np.ndarray
    """(E,) frame that shows the goal; -1 where there is none."""
    states: np.ndarray | None = None
    """(F, D) the hidden state of each frame."""
    rewards: np.ndarray | None = None
    """(N,) rewards for the episode's own goal."""
    episode_task: np.ndarray | None = None
    """(E,) index into `task_names`."""
    episode_success: np.ndarray | None = None
    """(E,) bool"""
    episode_scene: np.ndarray | None = None
    """(E, K) numbers of the scene, named by `scene_names`."""
    task_names: tuple[str, ...] = ()
    scene_names: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    """Where it comes from: for a collected dataset, the whole configuration of the collection."""
    manifest: Mapping[str, Any] = field(default_factory=dict)
    """The manifest of a dataset on disk."""
    path: Path | None = None

    def __post_init__(self) -> None:
        name = self.path or "the dataset"
        _check_rows(name, self)
        _check_index(name, self)

    @property
    def episodes(self) -> int:
        return len(self.episode_length)

    @property
    def transitions(self) -> int:
        return len(self.actions)

    @cached_property
    def first_transition(self) -> np.ndarray:
        """(E,) index of each episode's first transition."""
        return np.cumsum(self.episode_length) - self.episode_length

    @cached_property
    def episode_of_transition(self) -> np.ndarray:
        """(N,) the episode that each transition belongs to."""
        return np.repeat(np.arange(self.episodes), self.episode_length)

    @cached_property
    def frame_of_transition(self) -> np.ndarray:
        """(N,) the frame that each transition starts from; it leads to the next one."""
        return np.arange(self.transitions) + np.repeat(
            self.episode_first_frame - self.first_transition, self.episode_length
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """The fields that are there, by the name of their file."""
        return {name: getattr(self, name) for name in FIELDS if getattr(self, name) is not None}

    def verify(self) -> list[str]:
        """Hash every file against the manifest; return the names that were checked, raise if any differs."""
        if self.path is None:
            raise GCBError("a dataset in memory has no files to verify; write it with write_dataset first")
        entries = self.manifest["files"]
        altered = [name for name, entry in entries.items() if sha256(self.path / name) != entry["sha256"]]
        if altered:
            raise GCBError(
                f"{self.path} is damaged: {', '.join(altered)} differs from the SHA-256 in the manifest. "
                "Copy it again from where it was whole, or collect it again"
            )
        return list(entries)

    @classmethod
    def from_arrays(
        cls,
        frames: np.ndarray,
        actions: np.ndarray,
        episode_length: np.ndarray | Sequence[int],
        *,
        terminated: np.ndarray | None = None,
        episode_first_frame: np.ndarray | Sequence[int] | None = None,
        episode_goal_frame: np.ndarray | Sequence[int] | None = None,
        **others: Any,
    ) -> "Dataset":
        """A dataset from arrays in memory.

        Left out, `episode_first_frame` means that the episodes' T + 1 observations follow each other with no goals
        between them, `terminated` that no goal was reached, `episode_goal_frame` that there are no goals.
        """
        length = np.asarray(episode_length)
        if episode_first_frame is None:
            episode_first_frame = np.cumsum(length + 1) - (length + 1)
        given = dict(
            others,
            frames=frames,
            actions=actions,
            terminated=np.zeros(len(actions), bool) if terminated is None else terminated,
            episode_length=length,
            episode_first_frame=episode_first_frame,
            episode_goal_frame=np.full(len(length), -1) if episode_goal_frame is None else episode_goal_frame,
        )
        known = {one.name for one in fields(cls)}
        if unknown := sorted(given.keys() - known):
            raise GCBError(f"a dataset has no field {', '.join(unknown)}; its fields are {', '.join(sorted(known))}")
        for name in FIELDS:
            if given.get(name) is not None:
                given[name] = np.asarray(given[name], FIELDS[name].dtype)
        return cls(**given)


def _check_rows(name: object, dataset: Dataset) -> None:
    """Each field has one row per frame, transition or episode."""
    rows = {"frames": len(dataset.frames), "transitions": len(dataset.actions), "episodes": len(dataset.episode_length)}
    for field_name, array in dataset.arrays().items():
        expected = rows[FIELDS[field_name].along]
        if len(array) != expected:
            along = FIELDS[field_name].along
            raise GCBError(f"{name}: {field_name} has {len(array)} rows, but there are {expected} {along}")
    if min(rows.values()) == 0:
        raise GCBError(f"{name} is empty: it has {rows}, and needs at least one episode of one transition")


def _check_index(name: object, dataset: Dataset) -> None:
    """The episode index points inside the arrays and covers every transition."""
    first, length, goal = dataset.episode_first_frame, dataset.episode_length, dataset.episode_goal_frame
    frames = len(dataset.frames)
    if length.min() < 1 or length.sum() != dataset.transitions:
        raise GCBError(
            f"{name}: episode_length must be at least 1 and add up to {dataset.transitions} transitions; "
            f"its least is {length.min()}, its sum {length.sum()}"
        )
    if first.min() < 0 or (first + length).max() >= frames:
        raise GCBError(f"{name}: episode_first_frame + episode_length leaves the {frames} frames")
    if goal.min() < -1 or goal.max() >= frames:
        raise GCBError(f"{name}: episode_goal_frame must lie in -1 … {frames - 1}; it has {goal.min()} … {goal.max()}")
    task = dataset.episode_task
    if task is not None and not (task.min() >= 0 and task.max() < len(dataset.task_names)):
        raise GCBError(f"{name}: episode_task must index the {len(dataset.task_names)} task names {dataset.task_names}")
    scene = dataset.episode_scene
    if scene is not None and scene.shape[1:] != (len(dataset.scene_names),):
        raise GCBError(f"{name}: episode_scene has shape {scene.shape} for {len(dataset.scene_names)} scene names")


def open_dataset(path: str | os.PathLike[str], *, preload: bool = False) -> Dataset:
    """Open a dataset as memory maps (`preload`: in memory), checking shapes and sizes; `verify` checks every byte."""
    folder = Path(path)
    manifest = read_manifest(folder)
    try:
        arrays = {name.removesuffix(".npy"): entry for name, entry in manifest["files"].items()}
        if strangers := sorted(arrays.keys() - FIELDS.keys()):
            raise GCBError(f"{folder}: the manifest lists {', '.join(strangers)}, which this gcb does not know")
        required = {name for name, one in FIELDS.items() if one.required}
        if missing := sorted(required - arrays.keys()):
            raise GCBError(f"{folder}: the manifest does not list {', '.join(missing)}")
        return Dataset(
            **{name: _open_array(folder / f"{name}.npy", entry, preload) for name, entry in arrays.items()},
            task_names=tuple(manifest.get("task_names", ())),
            scene_names=tuple(manifest.get("scene_names", ())),
            config=manifest.get("config", {}),
            manifest=manifest,
            path=folder,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise GCBError(f"{folder}: the manifest is damaged ({error!r})") from error


def _open_array(path: Path, entry: Mapping[str, Any], preload: bool) -> np.ndarray:
    """One file, if it is as long and of the shape and dtype that the manifest says."""
    try:
        size = path.stat().st_size
        if size != entry["bytes"]:
            raise GCBError(
                f"{path} has {size:,} bytes, its manifest says {entry['bytes']:,}: it is truncated or altered. "
                "Copy it again from where it was whole, or collect it again"
            )
        array = np.load(path, mmap_mode=None if preload else "r", allow_pickle=False)
    except FileNotFoundError as error:
        raise GCBError(f"{path} is missing, but the manifest lists it") from error
    except (OSError, *HEADER_FAULTS) as error:
        raise GCBError(f"{path} could not be read: {error}") from error
    if list(array.shape) != entry["shape"] or array.dtype.str != entry["dtype"]:
        raise GCBError(
            f"{path} holds {array.dtype.str} {list(array.shape)}, its manifest says {entry['dtype']} {entry['shape']}"
        )
    return array


def write_dataset(dataset: Dataset, out: str | os.PathLike[str]) -> Dataset:
    """Write a dataset in memory to a new or empty folder, whole or not at all, and open it from there.

    It is written beside its place, and the folder then moves there in one step.
    """
    folder = Path(os.path.abspath(out))
    if folder.exists() and (not folder.is_dir() or os.listdir(folder)):
        raise GCBError(f"{folder} is there already and is not an empty folder; name a new or an empty one")
    with staged_dir(folder) as staging:
        files = {f"{name}.npy": _write_array(staging, name, array) for name, array in dataset.arrays().items()}
        write_json(staging / MANIFEST, make_manifest(_head(dataset), _counts(dataset), files))
    return open_dataset(folder)


def _head(dataset: Dataset) -> dict[str, Any]:
    names = {"task_names": list(dataset.task_names), "scene_names": list(dataset.scene_names)}
    return {"config": dict(dataset.config), **names}


def _counts(dataset: Dataset) -> dict[str, int]:
    return {"episodes": dataset.episodes, "transitions": dataset.transitions, "frames": len(dataset.frames)}


def _write_array(folder: Path, name: str, array: np.ndarray) -> dict[str, Any]:
    """Write one .npy with the format's own header; return its entry in the manifest."""
    path = folder / f"{name}.npy"
    rows = np.ascontiguousarray(array)
    with open(path, "wb") as handle:
        handle.write(npy_header(rows.dtype, rows.shape))
        handle.write(rows.data)
        sync(handle)
    return file_entry(path, rows.dtype, rows.shape)
