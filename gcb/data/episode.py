"""One episode, as collecting or importing makes it and the writer appends it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np


@dataclass(frozen=True, eq=False)
class Episode:
    """T transitions with their T + 1 observations, and what is known of the goal."""

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

    def cut(self, length: int) -> "Episode":
        """The first `length` transitions, as if the time had been up then."""
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
