"""The reward for any pair of goals, as hindsight relabelling computes it (`TabletopEnv.compute_reward`).

Goals are images in the observations, but whether one is reached follows from hidden states, which images do not show
exactly. The environments therefore remember the states of the images that they returned recently. All environments of a
process share one memory, because Stable-Baselines3 asks one of several environments about the images of all.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gcb.envs.layout import Layout, goal_reached
from gcb.errors import GCBError

GOAL, OBSERVATION = b"goal", b"observation"
"""The two kinds of images. A goal image stands for its goal state, which an equal observation need not have."""


class Remembered(NamedTuple):
    """The hidden state and the task that an image was rendered from."""

    state: np.ndarray
    task: str


class ImageMemory:
    """The hidden states of the latest images; for equal images, that of the latest one."""

    def __init__(self) -> None:
        self.limit = 0
        self._entries: OrderedDict[bytes, Remembered] = OrderedDict()

    def add(self, kind: bytes, image: np.ndarray, state: np.ndarray, task: str) -> None:
        """Remember an image, and forget the oldest one if there are too many."""
        key = _key(kind, image)
        self._entries[key] = Remembered(state, task)
        self._entries.move_to_end(key)
        if len(self._entries) > self.limit:
            self._entries.popitem(last=False)

    def find(self, image: np.ndarray, *kinds: bytes) -> Remembered | None:
        """Return the state and task of an image, looked up by kind in this order; None if it is not remembered."""
        return next(filter(None, (self._entries.get(_key(kind, image)) for kind in kinds)), None)


def _key(kind: bytes, image: np.ndarray) -> bytes:
    return hashlib.blake2b(image.tobytes(), digest_size=16, person=kind).digest()


_memories: dict[str, ImageMemory] = {}


def image_memory(layout: Layout, limit: int) -> ImageMemory:
    """Return this process's memory of one kind of environment, for at least `limit` images."""
    memory = _memories.setdefault(layout.name, ImageMemory())
    memory.limit = max(memory.limit, limit)
    return memory


class GoalReward:
    """Computes rewards for goals that are images of `size` pixels, or hidden states."""

    def __init__(self, layout: Layout, size: int, memory: ImageMemory) -> None:
        self._layout, self._size, self._memory = layout, size, memory

    def __call__(self, achieved: Any, desired: Any, info: Any) -> np.ndarray | float:
        """Return 1 where `achieved` reaches `desired`, else 0: a number, or an array for a batch."""
        batch = np.ndim(achieved) in (2, 4)  # of hidden states or of images
        achieved = self._as_batch("achieved_goal", achieved)
        desired = self._as_batch("desired_goal", desired)
        if len(desired) not in (1, len(achieved)):
            raise GCBError(f"there are {len(achieved)} achieved goals, but {len(desired)} desired ones.")
        infos = _infos(info, len(achieved), batch)
        states, tasks = zip(*map(self._achieved, achieved, infos, range(len(achieved))), strict=True)
        goals = np.stack([self._desired(goal, number) for number, goal in enumerate(desired)])
        reward = goal_reached(np.stack(states), goals, np.array(tasks) == "button").astype(np.float32)
        return reward if batch else float(reward[0])

    def _as_batch(self, name: str, goals: Any) -> np.ndarray:
        """Return images with channels last, or hidden states, as a batch."""
        goals = np.asarray(goals)
        batch = goals if goals.ndim in (2, 4) else goals[None]
        if batch.shape[1:] == (3, self._size, self._size):  # as SB3's VecTransposeImage has them
            batch = batch.transpose(0, 2, 3, 1)
        image = (self._size, self._size, 3)
        if batch.shape[1:] == (self._layout.state_size,) or (batch.shape[1:] == image and batch.dtype == np.uint8):
            return batch
        raise GCBError(
            f"{name} has shape {goals.shape} and type {goals.dtype}; accepted: uint8 images {image} as in the "
            f"observations, hidden states ({self._layout.state_size},), or a batch of either."
        )

    def _achieved(self, goal: np.ndarray, info: Mapping[str, Any], number: int) -> tuple[np.ndarray, str]:
        """Return the hidden state and the task, for an image from `info` if it has them and else from memory."""
        if goal.ndim == 1:
            return goal, self._task(info, None)
        if "state" in info:
            return np.asarray(info["state"]), self._task(info, None)
        found = self._memory.find(goal, OBSERVATION)
        if found is None:
            raise self._unknown("achieved_goal", number)
        return found.state, self._task(info, found.task)

    def _desired(self, goal: np.ndarray, number: int) -> np.ndarray:
        if goal.ndim == 1:
            return goal
        found = self._memory.find(goal, GOAL, OBSERVATION)
        if found is None:
            raise self._unknown("desired_goal", number)
        return found.state

    def _task(self, info: Mapping[str, Any], remembered: str | None) -> str:
        task = info.get("task", remembered)
        if task is None and len(self._layout.tasks) == 1:
            return self._layout.tasks[0]
        if task not in self._layout.tasks:
            tasks = " or ".join(map(repr, self._layout.tasks))
            raise GCBError(f"info has the task {task!r}; whether a goal is reached depends on it: accepted: {tasks}.")
        return task

    def _unknown(self, name: str, number: int) -> GCBError:
        return GCBError(
            f"{name} (number {number}) is an image that no environment of this process has returned recently, so its "
            f"hidden state is unknown. The latest {self._memory.limit:,} are remembered: create the environment with a "
            "goal_memory of at least the size of the replay buffer, and all environments in one process."
        )


def _infos(info: Any, count: int, batch: bool) -> Sequence[Mapping[str, Any]]:
    """Return one info per goal. A single info applies to all goals: its "task" is one name, or one for each goal.

    Without any (None), images are looked up in memory.
    """
    if info is None:
        return [{}] * count
    if not isinstance(info, Mapping):
        infos = list(info)
        if len(infos) != count:
            raise GCBError(f"there are {count} goals, but {len(infos)} infos.")
        return infos
    if not batch:
        return [info]
    if "task" not in info:
        return [{}] * count
    return [{"task": str(task)} for task in np.broadcast_to(info["task"], count)]
