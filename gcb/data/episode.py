"""One episode: its arrays, the checks they must pass, and its rows in a dataset.

Episodes from other sources are mappings of arrays. For T transitions:

    observations   (T + 1, …)  uint8 images (height, width, channels) or floating-point vectors
    actions        (T, A)      floating point in [-1, 1]
    rewards        (T,)        1 where the episode's own goal is reached, 0 elsewhere
    terminated     (T,)        bool: the episode's own goal is reached and the episode ends
    goal           (…)         an observation that shows the goal
    states         (T + 1, D)  hidden state of each observation; goal_state (D,) is that of the goal
    task           str         name of the task
    success        bool        whether the goal was reached
    scene          mapping     numbers that describe the scene, by name

Only observations and actions are required. `gcb.data.sampler` relabels goals and rewards in hindsight.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gcb.data.format import FIELDS
from gcb.errors import GCBError

EpisodeArrays = Mapping[str, Any]
KEYS = ("observations", "actions", "rewards", "terminated", "goal", "states", "goal_state", "task", "success", "scene")
RowLayout = dict[str, list[Any]]
"""For each field the dtype and the shape of one row, as JSON values."""
Layout = tuple[RowLayout, list[str]]
"""The layout of an episode's rows, and the names of its scene's numbers."""


@dataclass(frozen=True, eq=False)
class Episode:
    """T transitions with their T + 1 observations, and what is known about the goal."""

    frames: np.ndarray
    """(T + 1, …)"""
    actions: np.ndarray
    """(T, A)"""
    terminated: np.ndarray
    """(T,) bool"""
    rewards: np.ndarray | None = None
    """(T,)"""
    states: np.ndarray | None = None
    """(T + 1, D)"""
    goal_frame: np.ndarray | None = None
    goal_state: np.ndarray | None = None
    task: str | None = None
    success: bool | None = None
    scene: Mapping[str, float] = field(default_factory=dict)

    @property
    def length(self) -> int:
        return len(self.actions)

    def truncate(self, length: int) -> "Episode":
        """Return the first `length` transitions, as if the time limit had been reached then."""
        if length >= self.length:
            return self
        reached = self.terminated if self.rewards is None else self.rewards > 0
        return replace(
            self,
            frames=self.frames[: length + 1],
            actions=self.actions[:length],
            terminated=self.terminated[:length],
            rewards=None if self.rewards is None else self.rewards[:length],
            states=None if self.states is None else self.states[: length + 1],
            success=None if self.success is None else bool(reached[length - 1]),
        )

    def rows(self, first_frame: int, task_names: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the rows to append to each field of a dataset that already has `first_frame` frames."""
        has_goal = self.goal_frame is not None
        rows: dict[str, Any] = {
            "frames": _append_goal(self.frames, self.goal_frame),
            "actions": self.actions,
            "terminated": self.terminated,
            "episode_first_frame": [first_frame],
            "episode_length": [self.length],
            "episode_goal_frame": [first_frame + len(self.frames) if has_goal else -1],
        }
        if self.states is not None:
            rows["states"] = _append_goal(self.states, self.goal_state)
        if self.rewards is not None:
            rows["rewards"] = self.rewards
        if self.task is not None:
            rows["episode_task"] = [task_names.index(self.task)]
        if self.success is not None:
            rows["episode_success"] = [self.success]
        if self.scene:
            rows["episode_scene"] = [list(self.scene.values())]
        return {name: np.ascontiguousarray(rows[name], FIELDS[name].dtype) for name in FIELDS if name in rows}

    def layout(self) -> Layout:
        """Return what must be the same in every episode of a dataset."""
        return row_layout(self.rows(0, [self.task] if self.task is not None else [])), list(self.scene)


def _append_goal(rows: np.ndarray, goal: np.ndarray | None) -> np.ndarray:
    return rows if goal is None else np.concatenate([rows, goal[None]])


def row_layout(rows: Mapping[str, np.ndarray]) -> RowLayout:
    """Return the dtype and shape of one row of each field."""
    return {name: [array.dtype.str, list(array.shape[1:])] for name, array in rows.items()}


def check_same_layout(name: str, layout: Layout, first: Layout) -> None:
    """Check that an episode has the fields, dtypes, shapes and scene names of the first one."""
    (rows, scene_names), (first_rows, first_scene_names) = layout, first
    for key in FIELDS:
        if rows.get(key) != first_rows.get(key):
            row, first_row = (
                "missing" if row is None else f"{np.dtype(row[0])} {tuple(row[1])}"
                for row in (rows.get(key), first_rows.get(key))
            )
            raise GCBError(f"{name}: {key} is {row}; in the first episode it is {first_row}")
    if scene_names != first_scene_names:
        raise GCBError(f"{name}: scene names are {scene_names}; in the first episode they are {first_scene_names}")


def make_episode(arrays: EpisodeArrays, name: str) -> Episode:
    """Return the episode that these arrays describe; an error names the array and what is accepted."""
    if unknown := sorted(arrays.keys() - set(KEYS)):
        raise GCBError(f"{name} has {', '.join(unknown)}; accepted: {', '.join(KEYS)}")
    numeric = {
        key: _as_numbers(value, f"{name}: {key}") for key, value in arrays.items() if key not in ("task", "scene")
    }
    for key in ("observations", "actions"):
        if key not in numeric:
            raise GCBError(f"{name} has no {key}; it has {', '.join(sorted(numeric)) or 'nothing'}")
    frames, actions = numeric["observations"], numeric["actions"]
    _check_observations(frames, name)
    _check_actions(actions, name)
    _check_lengths(numeric, name)
    _check_rewards(numeric.get("rewards"), name)
    _check_goal(numeric, name)
    return Episode(
        frames=frames,
        actions=actions,
        terminated=numeric["terminated"].astype(bool) if "terminated" in numeric else np.zeros(len(actions), bool),
        rewards=numeric.get("rewards"),
        states=numeric.get("states"),
        goal_frame=numeric.get("goal"),
        goal_state=numeric.get("goal_state"),
        task=None if arrays.get("task") is None else str(arrays["task"]),
        success=bool(numeric["success"]) if "success" in numeric else None,
        scene=dict(arrays.get("scene") or {}),
    )


def _as_numbers(value: Any, name: str) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise GCBError(f"{name} is {array.dtype}; accepted: numbers")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise GCBError(f"{name} is {array[index]} at {index}; accepted: finite numbers")
    return array


def _check_observations(frames: np.ndarray, name: str) -> None:
    image, vector = frames.ndim == 4 and frames.dtype == np.uint8, frames.ndim == 2 and frames.dtype.kind == "f"
    if not (image or vector):
        raise GCBError(
            f"{name}: observations are {_describe(frames)}; accepted: uint8 (T + 1, height, width, channels), with "
            "stacked frames concatenated along the channels, or floating point (T + 1, size)"
        )
    if image and frames.shape[1] <= 4 and min(frames.shape[2:]) >= 16:
        raise GCBError(f"{name}: observations are {_describe(frames)}, channels first; accepted: channels last")


def _check_actions(actions: np.ndarray, name: str) -> None:
    if actions.ndim != 2 or actions.dtype.kind != "f" or not actions.size:
        raise GCBError(
            f"{name}: actions are {_describe(actions)}; accepted: floating point (T, A), with T and A at least 1"
        )
    if (largest := float(np.abs(actions).max())) > 1:
        raise GCBError(
            f"{name}: the largest action is {largest:g}; accepted: [-1, 1]. Set action_bound to divide by their bound"
        )


def _check_lengths(arrays: Mapping[str, np.ndarray], name: str) -> None:
    length = len(arrays["actions"])
    expected = {"observations": length + 1, "states": length + 1, "rewards": length, "terminated": length}
    axes = {"observations": arrays["observations"].ndim, "states": 2, "rewards": 1, "terminated": 1}
    for key, rows in expected.items():
        if key not in arrays:
            continue
        if arrays[key].ndim != axes[key]:
            raise GCBError(f"{name}: {key} is {_describe(arrays[key])}; accepted: {axes[key]} dimensions")
        if len(arrays[key]) != rows:
            raise GCBError(f"{name}: {key} has {len(arrays[key])} rows; {length} actions need {rows}")


def _check_rewards(rewards: np.ndarray | None, name: str) -> None:
    if rewards is not None and not (rewards.min() >= 0 and rewards.max() <= 1):
        raise GCBError(
            f"{name}: rewards range from {rewards.min():g} to {rewards.max():g}; accepted: 1 at the goal, 0 elsewhere. "
            "Shift them with reward_offset, or drop them (rewards: drop) and rely on hindsight relabelling"
        )


def _check_goal(arrays: Mapping[str, np.ndarray], name: str) -> None:
    frames, goal = arrays["observations"], arrays.get("goal")
    states, goal_state = arrays.get("states"), arrays.get("goal_state")
    if goal is not None and (goal.shape != frames.shape[1:] or goal.dtype != frames.dtype):
        raise GCBError(f"{name}: goal is {_describe(goal)}; accepted: {_describe(frames[0])}, like one observation")
    if states is not None and (goal_state is None) != (goal is None):
        raise GCBError(f"{name}: with states, goal and goal_state must both be given or both be missing")
    if goal_state is not None and (states is None or goal_state.shape != states.shape[1:]):
        raise GCBError(f"{name}: goal_state is {_describe(goal_state)}; accepted: the shape of one state")


def _describe(array: np.ndarray) -> str:
    return f"{array.dtype} {array.shape}"
