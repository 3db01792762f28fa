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
    """A batch as indices of frames (and of transitions), before any frame is read; for the fields see `Batch`."""

    transition: np.ndarray
    """(G, K)."""
    goal_kind: np.ndarray
    """(G,): `GoalKind` of each group."""
    state: np.ndarray
    """(G, K)."""
    next_state: np.ndarray
    goal: np.ndarray
    initial_state: np.ndarray
    has_partner: np.ndarray
    final: np.ndarray
    """(G, K)."""

    def groups(self, groups: slice) -> "Indices":
        """Return some groups of the batch."""
        return Indices(**{field.name: getattr(self, field.name)[groups] for field in fields(self)})


@dataclass(frozen=True, eq=False)
class Batch(Generic[Array]):
    """Transitions (s, a, r, s') with goals: `Batch[np.ndarray]`, or after `to` a `Batch[Tensor]`.

    The B rows are G groups of K = B / G consecutive rows. A group's transitions are of one episode and share its goal,
    so that the goal and the initial state are encoded once for all of them. What needs the next state is computed for
    the first transition of each group only.

    Observations are as stored: uint8 images (height, width, channels) or vectors (size,).
    """

    state: Array
    """(B, …)."""
    next_state: Array
    """(G, …): s' of each group's first transition."""
    goal: Array
    """(G, …)."""
    action: Array
    """(B, dimensions)."""
    final: Array
    """(B,) bool: the state is the last one of a successful episode, or its goal: done, and without an action."""
    reward: Array
    """(G,) float32: reward of each group's first transition."""
    terminal: Array
    """(G,) bool: next_state reaches the goal, so that no value follows. A time-out is not terminal."""
    initial_state: Array | None = None
    """(G, …): s₀ of the episode, if the method requests it."""
    has_partner: Array | None = None
    """(G,) bool: whether groups 2i and 2i + 1 are of partner episodes, which do the same task; None if no group is."""
    indices: Indices | None = None
    """Where the sampler found the rows; None after `to`."""

    @property
    def group_size(self) -> int:
        """K, the number of transitions of a group."""
        return len(self.state) // len(self.goal)  # pyright: ignore[reportArgumentType]

    def frames(self) -> dict[str, Array]:
        """Return the observations by field name; fields that are None are left out."""
        return {name: getattr(self, name) for name in FRAMES if getattr(self, name) is not None}

    def expand(self: "Batch[Tensor]", groups: "Tensor") -> "Tensor":
        """Repeat values of the groups (G, …) for each of their rows (B, …)."""
        if self.group_size == 1:
            return groups
        if groups.ndim == 4 and groups.stride(1) == 1:
            # Feature maps, channels last in memory. repeat_interleave would reorder them: slow to convolve.
            return groups.permute(0, 2, 3, 1).repeat_interleave(self.group_size, 0).permute(0, 3, 1, 2)
        return groups.repeat_interleave(self.group_size, 0)

    def first(self: "Batch[Tensor]", rows: "Tensor") -> "Tensor":
        """Return the values (G, …) of the groups' first rows."""
        return rows[:: self.group_size]

    def to(self, device: "device | str") -> "Batch[Tensor]":
        """Convert to tensors on a device; actions become float32."""
        import torch  # imported here because collecting and inspecting data do not need it

        def tensor(array: Any) -> "Tensor":
            return torch.from_numpy(array).to(device)

        frames: dict[str, Any] = {name: tensor(array) for name, array in self.frames().items()}
        return Batch(
            **frames,
            action=tensor(self.action).float(),
            final=tensor(self.final),
            reward=tensor(self.reward),
            terminal=tensor(self.terminal),
            has_partner=None if self.has_partner is None else tensor(self.has_partner),
        )

    def split(self: "Batch[Tensor]", count: int) -> list["Batch[Tensor]"]:
        """Split into `count` equal parts."""
        names = [*self.frames(), "action", "final", "reward", "terminal"]
        if self.has_partner is not None:
            names.append("has_partner")
        parts = {name: getattr(self, name).chunk(count) for name in names}
        return [replace(self, **{name: chunks[index] for name, chunks in parts.items()}) for index in range(count)]
