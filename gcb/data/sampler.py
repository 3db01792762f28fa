"""Batches of transitions with goals: index arithmetic on an explicit generator, then one gather of frames.

Transition t of an episode of T transitions leads from its frame t to its frame t + 1. Its goal is one of

    original     the episode's own goal frame                           reward and end: the dataset's
    future       one of its frames t + 1 … T ("hindsight")              ⎫ reward 1 and end where the goal frame *is* the
    next_frame   its frame t + 1                                        ⎬ next frame, else 0; frames are compared by
    random       any frame of the dataset                               ⎭ index, and frame T is never another episode's
"""

from dataclasses import asdict, dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np

from gcb.data.store import Dataset
from gcb.errors import GCBError


class GoalKind(IntEnum):
    """Where a sample's goal comes from, in the order of `GoalShares`."""

    ORIGINAL = 0
    FUTURE = 1
    NEXT_FRAME = 2
    RANDOM = 3


@dataclass(frozen=True)
class GoalShares:
    """How often each kind of goal is drawn. The authors' release had about .57, .34, .09 and 0."""

    original: float = 0.5
    """The goal that the expert pursued."""
    future: float = 0.4
    """A later frame of the same episode."""
    next_frame: float = 0.1
    """The very next frame: always a reward."""
    random: float = 0.0
    """Any frame of the dataset: nearly never a reward."""

    def __post_init__(self) -> None:
        shares = asdict(self)
        for name, share in shares.items():
            if not 0 <= share <= 1:
                raise GCBError(f"the share of {name} goals is {share}; it must lie between 0 and 1")
        if abs(sum(shares.values()) - 1) > 1e-6:
            raise GCBError(f"the shares of goals {shares} add up to {sum(shares.values()):.6g}; they must add up to 1")

    def without_original(self) -> "GoalShares":
        """The same with the original goals' share given to future ones: for data that has no goals of its own."""
        return replace(self, original=0.0, future=self.future + self.original)


@dataclass(frozen=True, eq=False)
class Indices:
    """One batch as indices: of frames, unless it says transition. `Sampler.gather` fetches what a method needs."""

    transition: np.ndarray
    goal_kind: np.ndarray
    """`GoalKind` of each sample."""
    state: np.ndarray
    next_state: np.ndarray
    goal: np.ndarray
    first: np.ndarray
    """s_0, the first frame of the same episode."""
    earlier: np.ndarray
    """s_k, uniform over the same episode's frames k ≤ t."""


@dataclass(frozen=True, eq=False)
class Batch:
    """One batch: frames as they are stored, with the transitions' fields for the goals that were drawn."""

    state: np.ndarray
    next_state: np.ndarray
    goal: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    """float32"""
    terminal: np.ndarray
    """bool: the goal is reached in next_state, so that nothing follows. A time-out is not an end: values go on."""
    indices: Indices

    @property
    def goal_kind(self) -> np.ndarray:
        return self.indices.goal_kind


class Sampler:
    """Draws batches from a dataset. Every draw comes from `rng`; its number of draws per batch never varies."""

    def __init__(
        self,
        dataset: Dataset,
        shares: GoalShares,
        rng: np.random.Generator,
        *,
        future_discount: float | None = None,
        only_successful: bool = False,
    ) -> None:
        """With a `future_discount` γ a future goal k steps ahead is as likely as γᵏ, within the episode.

        `only_successful` leaves out the episodes that did not reach their goal.
        """
        if shares.original > 0:
            _check_original_goals(dataset)
        if future_discount is not None and not 0 < future_discount < 1:
            raise GCBError(f"future_discount is {future_discount}; it must lie between 0 and 1, or be None for uniform")
        self.dataset, self.shares, self.rng = dataset, shares, rng
        self.future_discount = future_discount
        self._transitions = _successful(dataset) if only_successful else None
        limits = np.cumsum([shares.original, shares.future, shares.next_frame, shares.random])
        self._limits = limits / limits[-1]
        # A memory map's own type makes every small operation slower than the plain array it is.
        self._frames = np.asarray(dataset.frames)

    def sample(self, batch_size: int) -> Batch:
        """A batch drawn with replacement, uniform over transitions."""
        indices = self.draw(batch_size)
        reward, terminal = self._outcome(indices)
        frames = self.gather(np.concatenate([indices.state, indices.next_state, indices.goal]))
        return Batch(
            state=frames[:batch_size],
            next_state=frames[batch_size : 2 * batch_size],
            goal=frames[2 * batch_size :],
            action=np.asarray(self.dataset.actions)[indices.transition],
            reward=reward,
            terminal=terminal,
            indices=indices,
        )

    def draw(self, batch_size: int) -> Indices:
        """The indices of a batch, without fetching any frame."""
        if batch_size < 1:
            raise GCBError(f"batch_size is {batch_size}; it must be at least 1")
        data = self.dataset
        if self._transitions is None:
            transition = self.rng.integers(data.transitions, size=batch_size)
        else:
            transition = self._transitions[self.rng.integers(len(self._transitions), size=batch_size)]
        kind_draw, future_draw, earlier_draw = self.rng.random((3, batch_size))
        any_frame = self.rng.integers(len(self._frames), size=batch_size)

        episode = data.episode_of_transition[transition]
        state = data.frame_of_transition[transition]
        first = np.asarray(data.episode_first_frame)[episode]
        step = state - first
        ahead = self._ahead(future_draw, np.asarray(data.episode_length)[episode] - step)
        kind = np.searchsorted(self._limits, kind_draw, side="right")
        goal = np.choose(kind, [np.asarray(data.episode_goal_frame)[episode], state + ahead, state + 1, any_frame])
        return Indices(
            transition=transition,
            goal_kind=kind.astype(np.int8),
            state=state,
            next_state=state + 1,
            goal=goal,
            first=first,
            earlier=first + (earlier_draw * (step + 1)).astype(np.int64),
        )

    def gather(self, index: np.ndarray) -> np.ndarray:
        """The frames at these indices, copied."""
        if index.min() < 0:
            raise GCBError(f"there is no frame {index.min()}; frames are numbered from 0 to {len(self._frames) - 1}")
        return self._frames.take(index, axis=0)

    def state_dict(self) -> dict[str, Any]:
        """Where the generator stands, as plain JSON: a sampler that loads it draws the same batches."""
        return {"rng": self.rng.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        try:
            self.rng.bit_generator.state = state["rng"]
        except (KeyError, TypeError, ValueError) as error:
            kind = type(self.rng.bit_generator).__name__
            raise GCBError(f"this is not the state of a sampler on a {kind} generator: {error}") from error

    def _ahead(self, draw: np.ndarray, remaining: np.ndarray) -> np.ndarray:
        """How many steps ahead a future goal lies: from 1 to `remaining`, by inverting the distribution at `draw`."""
        if self.future_discount is None:
            return 1 + (draw * remaining).astype(np.int64)
        reach = 1 - self.future_discount**remaining
        steps = np.ceil(np.log1p(-draw * reach) / np.log(self.future_discount)).astype(np.int64)
        return np.clip(steps, 1, remaining)

    def _outcome(self, indices: Indices) -> tuple[np.ndarray, np.ndarray]:
        """Reward and end for the goals drawn: the dataset's for original goals, by equality of frames for others."""
        reached = indices.goal == indices.next_state
        if self.dataset.rewards is None or self.shares.original == 0:
            return reached.astype(np.float32), reached
        original = indices.goal_kind == GoalKind.ORIGINAL
        reward = np.where(original, np.asarray(self.dataset.rewards)[indices.transition], reached).astype(np.float32)
        terminal = np.where(original, np.asarray(self.dataset.terminated)[indices.transition], reached)
        return reward, terminal


def _successful(dataset: Dataset) -> np.ndarray:
    """The transitions of episodes that reached their goal."""
    name = dataset.path or "the dataset"
    if dataset.episode_success is None:
        raise GCBError(f"{name} does not say which of its episodes were successful; only_successful must be off")
    chosen = np.flatnonzero(np.asarray(dataset.episode_success)[dataset.episode_of_transition])
    if not len(chosen):
        raise GCBError(f"{name} has no successful episode; only_successful must be off")
    return chosen


def _check_original_goals(dataset: Dataset) -> None:
    """Original goals need goals and rewards; to change the shares silently would hide that they are missing."""
    name, cure = dataset.path or "the dataset", "use GoalShares(…).without_original()"
    without = int((dataset.episode_goal_frame < 0).sum())
    if without:
        raise GCBError(f"{without} of the {dataset.episodes} episodes of {name} have no goal of their own; {cure}")
    if dataset.rewards is None:
        raise GCBError(f"{name} has no rewards for its own goals; {cure}")
