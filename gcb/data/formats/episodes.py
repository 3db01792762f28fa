"""Episodes from elsewhere: what is accepted of them, and a dataset made of them.

An episode of T transitions is a mapping of arrays, whichever file they come from:

    observations   (T + 1, …)  uint8 images height × width × channels, or vectors of floating point
    actions        (T, A)      floating point, each in [-1, 1]
    rewards        (T,)        1 where the episode's own goal is reached, 0 elsewhere
    terminated     (T,)        bool: the goal is reached here, and nothing follows
    goal           (…)         what the goal looks like: as one observation
    states         (T + 1, D)  the hidden state at each observation; goal_state (D,) that of the goal
    task           text        the kind of task
    success        bool        whether the goal was reached

Only observations and actions are needed. Without goals or rewards hindsight supplies them: see `gcb.data.sampler`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from gcb.data.episode import Episode
from gcb.data.format import FIELDS
from gcb.data.store import Dataset
from gcb.data.writer import episode_rows
from gcb.errors import GCBError

Parts = Mapping[str, Any]
KEYS = ("observations", "actions", "rewards", "terminated", "goal", "states", "goal_state", "task", "success", "scene")


@dataclass(frozen=True)
class Source:
    """Episodes that lie somewhere, and what is known of them."""

    config: Mapping[str, Any]
    """Where they come from, as plain JSON: what the dataset's manifest will say."""
    count: int
    parts: Callable[[], Iterator[tuple[str, Parts]]]
    """A name and the arrays of each, from the first on, at every call."""
    left_out: tuple[str, ...] = ()
    """What the source holds besides, and a dataset has no place for."""


def from_episodes(episodes: Iterable[Parts | Episode], config: Mapping[str, Any] | None = None) -> Dataset:
    """A dataset in memory from episodes as mappings of arrays (see this module); `config` says where it comes from."""
    made: list[Episode] = []
    for number, one in enumerate(episodes):
        name = f"episode {number}"
        made.append(one if isinstance(one, Episode) else make_episode(one, name))
        check_alike(made[0], made[-1], name)
    if not made:
        raise GCBError("there are no episodes; a dataset needs at least one of one transition")
    names = list(dict.fromkeys(one.task for one in made if one.task is not None))
    rows, first_frame = [], 0
    for one in made:
        rows.append(episode_rows(one, first_frame, names))
        first_frame += len(rows[-1]["frames"])
    arrays: dict[str, Any] = {name: np.concatenate([row[name] for row in rows]) for name in FIELDS if name in rows[0]}
    return Dataset(**arrays, task_names=tuple(names), scene_names=tuple(made[0].scene), config=dict(config or {}))


def make_episode(parts: Parts, name: str) -> Episode:
    """The episode that these arrays describe, or an error that names the array and what would be accepted."""
    if unknown := sorted(parts.keys() - set(KEYS)):
        raise GCBError(f"{name} has {', '.join(unknown)}; accepted: {', '.join(KEYS)}")
    arrays = {key: _plain(value, f"{name}: {key}") for key, value in parts.items() if key not in ("task", "scene")}
    for key in ("observations", "actions"):
        if key not in arrays:
            raise GCBError(f"{name} has no {key}; it has {', '.join(sorted(arrays)) or 'nothing'}")
    frames, actions = arrays["observations"], arrays["actions"]
    _check_observations(frames, name)
    _check_actions(actions, name)
    length = len(actions)
    for key, rows in (
        ("observations", length + 1),
        ("states", length + 1),
        ("rewards", length),
        ("terminated", length),
    ):
        if key in arrays and len(arrays[key]) != rows:
            found = len(np.atleast_1d(arrays[key]))
            raise GCBError(f"{name}: {key} has {found} rows, but for {length} actions there must be {rows}")
    goal = arrays.get("goal")
    if goal is not None and (goal.shape != frames.shape[1:] or goal.dtype != frames.dtype):
        raise GCBError(f"{name}: goal is {_kind(goal)}; accepted: as one observation, {_kind(frames[0])}")
    _check_outcome(arrays, name)
    return Episode(
        frames=frames,
        actions=actions,
        terminated=arrays["terminated"].astype(bool) if "terminated" in arrays else np.zeros(length, bool),
        rewards=arrays.get("rewards"),
        states=arrays.get("states"),
        goal_frame=goal,
        goal_state=arrays.get("goal_state"),
        task=None if parts.get("task") is None else str(parts["task"]),
        success=bool(arrays["success"]) if "success" in arrays else None,
        scene=dict(parts.get("scene") or {}),
    )


def episode_of(dataset: Dataset, number: int) -> Episode:
    """One episode of a dataset, with everything that is known of it."""
    first, length = int(dataset.episode_first_frame[number]), int(dataset.episode_length[number])
    start, goal = int(dataset.first_transition[number]), int(dataset.episode_goal_frame[number])
    frames, steps = slice(first, first + length + 1), slice(start, start + length)
    states, scene = dataset.states, dataset.episode_scene
    return Episode(
        frames=dataset.frames[frames],
        actions=dataset.actions[steps],
        terminated=dataset.terminated[steps],
        rewards=None if dataset.rewards is None else dataset.rewards[steps],
        states=None if states is None else states[frames],
        goal_frame=dataset.frames[goal] if goal >= 0 else None,
        goal_state=states[goal] if goal >= 0 and states is not None else None,
        task=None if dataset.episode_task is None else dataset.task_names[dataset.episode_task[number]],
        success=None if dataset.episode_success is None else bool(dataset.episode_success[number]),
        scene={} if scene is None else dict(zip(dataset.scene_names, scene[number].tolist(), strict=True)),
    )


def check_alike(first: Episode, other: Episode, name: str) -> None:
    """Every episode of a dataset has the same fields, of the same shapes and types."""
    for one in fields(Episode):
        if one.name in ("goal_frame", "goal_state", "task", "success"):
            continue
        there, here = getattr(first, one.name), getattr(other, one.name)
        if isinstance(there, np.ndarray) and isinstance(here, np.ndarray):
            there, here = _kind(there[0]), _kind(here[0])
        elif isinstance(there, Mapping):
            there, here = sorted(there), sorted(here)
        if (there is None) != (here is None) or (isinstance(there, str | list) and there != here):
            raise GCBError(f"{name} has {one.name} {_word(here)}, the first episode {_word(there)}: all must be alike")
    for key in ("task", "success"):
        if (getattr(first, key) is None) != (getattr(other, key) is None):
            raise GCBError(f"{name} and the first episode differ in whether they say their {key}: all must be alike")


def _plain(value: Any, name: str) -> np.ndarray:
    """An array of numbers, all of them finite."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise GCBError(f"{name} is {array.dtype}; accepted: numbers")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        place = tuple(int(index) for index in np.argwhere(~np.isfinite(array))[0])
        raise GCBError(f"{name} is {array[place]} at {place}; accepted: finite numbers")
    return array


def _check_observations(frames: np.ndarray, name: str) -> None:
    image, vector = frames.ndim == 4 and frames.dtype == np.uint8, frames.ndim == 2 and frames.dtype.kind == "f"
    if not (image or vector):
        raise GCBError(
            f"{name}: observations are {_kind(frames)}; accepted: uint8 (T + 1, height, width, channels), with stacked "
            "frames side by side in the channels, or floating point (T + 1, size)"
        )
    if image and frames.shape[1] <= 4 and min(frames.shape[2:]) >= 16:
        raise GCBError(f"{name}: observations are {_kind(frames)}: channels first, it seems; accepted: channels last")


def _check_actions(actions: np.ndarray, name: str) -> None:
    if actions.ndim != 2 or actions.dtype.kind != "f" or not actions.size:
        raise GCBError(
            f"{name}: actions are {_kind(actions)}; accepted: floating point (T, A), with T and A at least 1"
        )
    if (largest := float(np.abs(actions).max())) > 1:
        raise GCBError(
            f"{name}: an action has size {largest:g}; accepted: in [-1, 1]. Divide them by their bound (action_bound)"
        )


def _check_outcome(arrays: Mapping[str, np.ndarray], name: str) -> None:
    """Rewards, ends and states have the shapes and values that learning expects of them."""
    for key in ("rewards", "terminated"):
        if key in arrays and arrays[key].ndim != 1:
            raise GCBError(f"{name}: {key} are {_kind(arrays[key])}; accepted: (T,)")
    rewards = arrays.get("rewards")
    if rewards is not None and not (rewards.min() >= 0 and rewards.max() <= 1):
        raise GCBError(
            f"{name}: rewards lie in {rewards.min():g} … {rewards.max():g}; accepted: 1 at the goal, 0 "
            "elsewhere. Shift them (reward_offset), or leave them out (rewards: drop) and let hindsight supply them"
        )
    states, goal_state = arrays.get("states"), arrays.get("goal_state")
    if states is not None and states.ndim != 2:
        raise GCBError(f"{name}: states are {_kind(states)}; accepted: (T + 1, D)")
    if states is not None and (goal_state is None) != ("goal" not in arrays):
        raise GCBError(f"{name}: where there are states, a goal needs its goal_state, and a goal_state its goal")
    if goal_state is not None and (states is None or goal_state.shape != states.shape[1:]):
        raise GCBError(f"{name}: goal_state is {_kind(goal_state)}; accepted: as one of the states")


def _kind(array: np.ndarray) -> str:
    return f"{array.dtype} {array.shape}"


def _word(value: Any) -> str:
    return "missing" if value is None else str(value) if isinstance(value, str | list) else "given"
