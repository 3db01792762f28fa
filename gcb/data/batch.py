"""A batch of transitions with goals, from the sampler to the losses."""

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor, device

Array = TypeVar("Array")
FRAMES = ("state", "next_state", "goal", "initial_state")


@dataclass(frozen=True, eq=False)
class Indices:
    """A batch as indices of frames (and of transitions), before any frame is read."""

    transition: np.ndarray
    goal_kind: np.ndarray
    """`GoalKind` of each sample."""
    state: np.ndarray
    next_state: np.ndarray
    goal: np.ndarray
    initial_state: np.ndarray
    absorbing: np.ndarray
    """bool: the state is a reached goal and leads to itself."""

    def rows(self, rows: slice) -> "Indices":
        """Return some rows of the batch."""
        return Indices(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})


@dataclass(frozen=True, eq=False)
class Batch(Generic[Array]):
    """Transitions (s, a, r, s') with goals, one per row: `Batch[np.ndarray]`, or after `to` a `Batch[Tensor]`.

    Observations are as stored: (B, height, width, channels) uint8 images or (B, size) vectors.
    """

    state: Array
    next_state: Array
    goal: Array
    action: Array
    reward: Array
    """(B,) float32."""
    terminal: Array
    """(B,) bool: next_state reaches the goal, so that no value follows. A time-out is not terminal."""
    initial_state: Array | None = None
    """s₀ of the same episode, if asked for."""
    indices: Indices | None = None
    """Where the sampler found the rows; None after `to`."""

    def frames(self) -> dict[str, Array]:
        """Return the observations by field name; fields that are None are left out."""
        return {name: getattr(self, name) for name in FRAMES if getattr(self, name) is not None}

    def to(self, device: "device | str") -> "Batch[Tensor]":
        """Convert to tensors on a device; actions become float32."""
        import torch  # collecting and looking at data do without it

        def tensor(array: Any) -> "Tensor":
            return torch.from_numpy(array).to(device)

        frames: dict[str, Any] = {name: tensor(array) for name, array in self.frames().items()}
        return Batch(
            **frames,
            action=tensor(self.action).float(),
            reward=tensor(self.reward),
            terminal=tensor(self.terminal),
        )

    def split(self: "Batch[Tensor]", count: int) -> list["Batch[Tensor]"]:
        """Split into `count` equal parts."""
        tensors = {**self.frames(), "action": self.action, "reward": self.reward, "terminal": self.terminal}
        parts = {name: tensor.chunk(count) for name, tensor in tensors.items()}
        return [replace(self, **{name: chunks[index] for name, chunks in parts.items()}) for index in range(count)]
