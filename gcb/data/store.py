"""A dataset in memory or as memory maps: each frame stored once, plus an index of episodes.

A collected episode of T transitions has T + 1 observations, followed by its goal:

                    episode 0, T = 3              episode 1, T = 2
    frames        | o0   o1   o2   o3   goal    | o0   o1   o2   goal |
    frame index      0    1    2    3    4         5    6    7    8
    actions       | a0   a1   a2                | a0   a1             |
    transition       0    1    2                   3    4

    episode_first_frame = [0, 5]    episode_length = [3, 2]    episode_goal_frame = [4, 8]

Transition t of episode e leads from frame f = episode_first_frame[e] + (t - first_transition[e]) to frame f + 1.
The goal may be any frame, may be shared between episodes, or may be missing (-1). Frames may have any shape.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gcb.data.episode import Episode, EpisodeArrays, check_same_layout, make_episode
from gcb.data.format import FIELDS, NPY_HEADER_ERRORS, read_manifest
from gcb.data.values import check_values
from gcb.errors import GCBError
from gcb.utils.files import sha256

VALUES = {"rewards": (0.0, 1.0), "frames": (-np.inf, np.inf), "states": (-np.inf, np.inf)}
"""The accepted range of each field of numbers, besides actions."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Transitions, their frames, and the episodes they belong to. Missing optional fields are None."""

    frames: np.ndarray
    """(F, …) observations and goals, each stored once."""
    actions: np.ndarray
    """(N, A)"""
    terminated: np.ndarray
    """(N,) bool: the episode's own goal was reached here. Time limits are not marked."""
    episode_first_frame: np.ndarray
    """(E,) index of the frame with the first observation."""
    episode_length: np.ndarray
    """(E,) number of transitions T; there are T + 1 observations."""
    episode_goal_frame: np.ndarray
    """(E,) index of the frame that shows the goal; -1 if there is none."""
    states: np.ndarray | None = None
    """(F, D) hidden state of each frame, for analyses."""
    rewards: np.ndarray | None = None
    """(N,) rewards for the episode's own goal."""
    episode_task: np.ndarray | None = None
    """(E,) index into `task_names`."""
    episode_success: np.ndarray | None = None
    """(E,) bool"""
    episode_scene: np.ndarray | None = None
    """(E, K) numbers that describe the scene, named by `scene_names`."""
    task_names: tuple[str, ...] = ()
    scene_names: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    """Where the data come from; for a collected dataset, the full configuration of the collection."""
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
        """(N,) episode of each transition."""
        return np.repeat(np.arange(self.episodes), self.episode_length)

    @cached_property
    def frame_of_transition(self) -> np.ndarray:
        """(N,) frame in which each transition starts; it ends in the next frame."""
        return np.arange(self.transitions) + np.repeat(
            self.episode_first_frame - self.first_transition, self.episode_length
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the fields that are not None, by name."""
        return {name: getattr(self, name) for name in FIELDS if getattr(self, name) is not None}

    def __repr__(self) -> str:
        frames = "×".join(map(str, self.frames.shape[1:])) or "1"
        counts = f"{self.transitions:,} transitions, {self.episodes:,} episodes, frames {frames} {self.frames.dtype}"
        env = f", env {self.config['env']!r}" if self.config.get("env") else ""
        return f"<Dataset {self.path or 'in memory'}: {counts}, actions {self.actions.shape[-1]}{env}>"

    def check_values(self) -> None:
        """Raise `GCBError` if an action, a reward or another number is not finite or out of range."""
        name = str(self.path or "the dataset")
        check_values(f"{name}: actions", self.actions, -1.0, 1.0)
        for field_name, bounds in VALUES.items():
            if (array := getattr(self, field_name)) is not None:
                check_values(f"{name}: {field_name}", array, *bounds)

    def verify(self) -> list[str]:
        """Compare the SHA-256 of every file with the manifest; return the names, or raise if any differs."""
        if self.path is None:
            raise GCBError("a dataset in memory has no files to verify; save it with write_dataset first")
        entries = self.manifest["files"]
        altered = [name for name, entry in entries.items() if sha256(self.path / name) != entry["sha256"]]
        if altered:
            raise GCBError(
                f"{self.path} is damaged: {', '.join(altered)} differs from the SHA-256 in the manifest. "
                "Restore it from a copy, or collect it again"
            )
        return list(entries)

    def episode(self, index: int) -> Episode:
        """Return one episode with all that is known about it."""
        first, length = int(self.episode_first_frame[index]), int(self.episode_length[index])
        start, goal = int(self.first_transition[index]), int(self.episode_goal_frame[index])
        frames, steps = slice(first, first + length + 1), slice(start, start + length)
        scene = self.episode_scene
        return Episode(
            frames=self.frames[frames],
            actions=self.actions[steps],
            terminated=self.terminated[steps],
            rewards=None if self.rewards is None else self.rewards[steps],
            states=None if self.states is None else self.states[frames],
            goal_frame=self.frames[goal] if goal >= 0 else None,
            goal_state=self.states[goal] if goal >= 0 and self.states is not None else None,
            task=None if self.episode_task is None else self.task_names[self.episode_task[index]],
            success=None if self.episode_success is None else bool(self.episode_success[index]),
            scene={} if scene is None else dict(zip(self.scene_names, scene[index].tolist(), strict=True)),
        )

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
        **optional: Any,
    ) -> "Dataset":
        """Return a dataset made from arrays in memory.

        By default the T + 1 observations of the episodes follow each other without goals in between
        (`episode_first_frame`), no goal is reached (`terminated`), and there are no goals (`episode_goal_frame`).
        """
        length = np.asarray(episode_length)
        if episode_first_frame is None:
            episode_first_frame = np.cumsum(length + 1) - (length + 1)
        values = dict(
            optional,
            frames=frames,
            actions=actions,
            terminated=np.zeros(len(actions), bool) if terminated is None else terminated,
            episode_length=length,
            episode_first_frame=episode_first_frame,
            episode_goal_frame=np.full(len(length), -1) if episode_goal_frame is None else episode_goal_frame,
        )
        known = {item.name for item in fields(cls)}
        if unknown := sorted(values.keys() - known):
            raise GCBError(f"a dataset has no field {', '.join(unknown)}; its fields are {', '.join(sorted(known))}")
        for name in FIELDS:
            if values.get(name) is not None:
                values[name] = np.asarray(values[name], FIELDS[name].dtype)
        return cls(**values)


def _check_rows(name: object, dataset: Dataset) -> None:
    """Check that each field has one row per frame, transition or episode."""
    rows = {"frames": len(dataset.frames), "transitions": len(dataset.actions), "episodes": len(dataset.episode_length)}
    for field_name, array in dataset.arrays().items():
        expected = rows[FIELDS[field_name].along]
        if len(array) != expected:
            along = FIELDS[field_name].along
            raise GCBError(f"{name}: {field_name} has {len(array)} rows, but there are {expected} {along}")
    if min(rows.values()) == 0:
        raise GCBError(f"{name} is empty: it has {rows}; it needs at least one episode with one transition")


def _check_index(name: object, dataset: Dataset) -> None:
    """Check that the episode index points inside the arrays and covers every transition."""
    first, length, goal = dataset.episode_first_frame, dataset.episode_length, dataset.episode_goal_frame
    frames = len(dataset.frames)
    if length.min() < 1 or length.sum() != dataset.transitions:
        raise GCBError(
            f"{name}: episode_length must be at least 1 and add up to {dataset.transitions} transitions; "
            f"its minimum is {length.min()}, its sum {length.sum()}"
        )
    if first.min() < 0 or (first + length).max() >= frames:
        raise GCBError(f"{name}: episode_first_frame + episode_length exceeds the {frames} frames")
    if goal.min() < -1 or goal.max() >= frames:
        raise GCBError(f"{name}: episode_goal_frame must be in -1 … {frames - 1}; it is in {goal.min()} … {goal.max()}")
    task = dataset.episode_task
    if task is not None and not (task.min() >= 0 and task.max() < len(dataset.task_names)):
        raise GCBError(f"{name}: episode_task must index the {len(dataset.task_names)} task names {dataset.task_names}")
    scene = dataset.episode_scene
    if scene is not None and scene.shape[1:] != (len(dataset.scene_names),):
        raise GCBError(f"{name}: episode_scene has shape {scene.shape} for {len(dataset.scene_names)} scene names")


def _check_counts(dataset: Dataset) -> None:
    """Check that the manifest counts what the arrays hold."""
    actual = {"episodes": dataset.episodes, "transitions": dataset.transitions, "frames": len(dataset.frames)}
    counts = {name: dataset.manifest["counts"].get(name) for name in actual}
    if counts != actual:
        raise GCBError(f"{dataset.path}: the manifest counts {counts}, but the arrays have {actual}: it is damaged")


def open_dataset(path: str | os.PathLike[str], *, preload: bool = False) -> Dataset:
    """Open a dataset as memory maps, or in memory with `preload`, and check shapes and sizes.

    `Dataset.verify` checks every byte.
    """
    path = Path(path)
    manifest = read_manifest(path)
    try:
        arrays = {name.removesuffix(".npy"): entry for name, entry in manifest["files"].items()}
        if unknown := sorted(arrays.keys() - FIELDS.keys()):
            raise GCBError(f"{path}: the manifest lists {', '.join(unknown)}, which this version of gcb does not know")
        required = {name for name, spec in FIELDS.items() if spec.required}
        if missing := sorted(required - arrays.keys()):
            raise GCBError(f"{path}: the manifest does not list {', '.join(missing)}")
        dataset = Dataset(
            **{name: _open_array(path / f"{name}.npy", entry, preload) for name, entry in arrays.items()},
            task_names=tuple(manifest.get("task_names", ())),
            scene_names=tuple(manifest.get("scene_names", ())),
            config=manifest.get("config", {}),
            manifest=manifest,
            path=path,
        )
        _check_counts(dataset)
        return dataset
    except (KeyError, TypeError, AttributeError) as error:
        raise GCBError(f"{path}: the manifest is damaged ({error!r})") from error


def _open_array(path: Path, entry: Mapping[str, Any], preload: bool) -> np.ndarray:
    """Open one file and check its length, shape and dtype against the manifest."""
    try:
        size = path.stat().st_size
        if size != entry["bytes"]:
            raise GCBError(
                f"{path} has {size:,} bytes, its manifest says {entry['bytes']:,}: it is truncated or modified. "
                "Restore it from a copy, or collect it again"
            )
        array = np.load(path, mmap_mode=None if preload else "r", allow_pickle=False)
    except FileNotFoundError as error:
        raise GCBError(f"{path} is missing, but the manifest lists it") from error
    except (OSError, *NPY_HEADER_ERRORS) as error:
        raise GCBError(f"{path} could not be read: {error}") from error
    if list(array.shape) != entry["shape"] or array.dtype.str != entry["dtype"]:
        raise GCBError(
            f"{path} holds {array.dtype.str} {list(array.shape)}, its manifest says {entry['dtype']} {entry['shape']}"
        )
    return array


def from_episodes(episodes: Iterable[EpisodeArrays | Episode], config: Mapping[str, Any] | None = None) -> Dataset:
    """Return a dataset in memory made from episodes, given as mappings of arrays (their keys: docs/extend.md).

    `config` says where the data come from: {"env": id, "options": {…}, "adapter": name} tells `gcb eval` where to
    evaluate.
    """
    checked: list[Episode] = []
    first_layout = None
    for number, given in enumerate(episodes):
        name = f"episode {number}"
        episode = given if isinstance(given, Episode) else make_episode(given, name)
        first_layout = first_layout or episode.layout()
        check_same_layout(name, episode.layout(), first_layout)
        checked.append(episode)
    if not checked:
        raise GCBError("there are no episodes; a dataset needs at least one episode with one transition")
    task_names = list(dict.fromkeys(episode.task for episode in checked if episode.task is not None))
    rows, first_frame = [], 0
    for episode in checked:
        rows.append(episode.rows(first_frame, task_names))
        first_frame += len(rows[-1]["frames"])
    arrays: dict[str, Any] = {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
    scene_names = tuple(checked[0].scene)
    return Dataset(**arrays, task_names=tuple(task_names), scene_names=scene_names, config=dict(config or {}))
