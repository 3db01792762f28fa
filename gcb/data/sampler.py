"""Batches of transitions with goals: index arithmetic on an explicit generator, then one gather of frames.

Transition t of an episode of T transitions leads from its frame t to its frame t + 1. Its goal is one of

    original     the episode's own goal frame                           reward and end: the dataset's
    future       one of its frames t + 1 … T ("hindsight")              ⎫ reward 1 and end where the goal frame *is* the
    next_frame   its frame t + 1                                        ⎬ next frame, else 0; frames are compared by
    random       any frame of the dataset                               ⎭ index, and frame T is never another episode's

Data that ends at success shows nobody how to leave well alone. With a `p_absorbing`, some samples are frame T of a
successful episode, its own goal, no action (zeros), and again frame T: reached.
"""

from dataclasses import asdict, dataclass, fields, replace
from enum import IntEnum
from typing import Any

import numpy as np

from gcb.data.store import Dataset
from gcb.errors import GCBError


class GoalKind(IntEnum):
    """Where a sample's goal comes from, in the order of `GoalSampling`."""

    ORIGINAL = 0
    FUTURE = 1
    NEXT_FRAME = 2
    RANDOM = 3


@dataclass(frozen=True)
class GoalSampling:
    """How often each kind of goal is drawn. The authors' release had about .57, .34, .09 and 0."""

    p_original: float = 0.5
    """The goal that the expert pursued."""
    p_future: float = 0.4
    """A later frame of the same episode."""
    p_next_frame: float = 0.1
    """The very next frame: always a reward."""
    p_random: float = 0.0
    """Any frame of the dataset: nearly never a reward."""

    def __post_init__(self) -> None:
        shares = asdict(self)
        for name, share in shares.items():
            if not 0 <= share <= 1:
                raise GCBError(f"{name} is {share}; it must lie between 0 and 1")
        if abs(sum(shares.values()) - 1) > 1e-6:
            raise GCBError(f"the shares of goals {shares} add up to {sum(shares.values()):.6g}; they must add up to 1")

    def without_original(self) -> "GoalSampling":
        """The same with the original goals' share given to future ones: for data that has no goals of its own."""
        return replace(self, p_original=0.0, p_future=self.p_future + self.p_original)


@dataclass(frozen=True, eq=False)
class Indices:
    """One batch as indices: of frames, unless it says transition. `Sampler.gather` fetches what a method needs."""

    transition: np.ndarray
    goal_kind: np.ndarray
    """`GoalKind` of each sample."""
    state: np.ndarray
    next_state: np.ndarray
    goal: np.ndarray
    initial_state: np.ndarray
    """s_0, the first frame of the same episode."""
    earlier: np.ndarray
    """s_k, uniform over the same episode's frames k ≤ t."""
    stays: np.ndarray
    """bool: not a transition of the dataset, but standing still where its last one has led."""

    def rows(self, rows: slice) -> "Indices":
        """A part of the batch."""
        return Indices(**{one.name: getattr(self, one.name)[rows] for one in fields(self)})


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
        shares: GoalSampling,
        rng: np.random.Generator,
        *,
        future_discount: float | None = None,
        only_successful: bool = False,
        p_absorbing: float = 0.0,
    ) -> None:
        """With a `future_discount` γ a future goal k steps ahead is as likely as γᵏ, within the episode.

        `only_successful` leaves out the episodes that did not reach their goal. It has no effect on data that does not
        say which did, nor has `p_absorbing`, which also needs original goals.
        """
        if shares.p_original > 0:
            _check_original_goals(dataset)
        if future_discount is not None and not 0 < future_discount < 1:
            raise GCBError(f"future_discount is {future_discount}; it must lie between 0 and 1, or be None for uniform")
        if not 0 <= p_absorbing < 1:
            raise GCBError(f"p_absorbing is {p_absorbing}; it must be at least 0 and below 1")
        self.dataset, self.shares, self.rng = dataset, shares, rng
        self.future_discount = future_discount
        self._transitions = None
        if only_successful and dataset.episode_success is not None:
            self._transitions = _successful(dataset)
        self._reached = _reached_goals(dataset) if p_absorbing and shares.p_original else np.empty(0, np.int64)
        self._stay_share = p_absorbing if len(self._reached) else 0.0
        limits = np.cumsum([shares.p_original, shares.p_future, shares.p_next_frame, shares.p_random])
        self._limits = limits / limits[-1]
        # A memory map's own type makes every small operation slower than the plain array it is.
        self._frames = np.asarray(dataset.frames)

    def sample(self, batch_size: int, rows: slice = slice(None)) -> Batch:
        """A batch drawn with replacement, uniform over transitions; only these rows of it are fetched."""
        indices = self.draw(batch_size).rows(rows)
        reward, terminal = self._outcome(indices)
        frames = self.gather(np.concatenate([indices.state, indices.next_state, indices.goal]))
        state, next_state, goal = frames.reshape(3, -1, *frames.shape[1:])
        return Batch(
            state=state,
            next_state=next_state,
            goal=goal,
            action=np.where(indices.stays[:, None], 0, np.asarray(self.dataset.actions)[indices.transition]),
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

        length, firsts = np.asarray(data.episode_length), np.asarray(data.episode_first_frame)
        episode = data.episode_of_transition[transition]
        step = data.frame_of_transition[transition] - firsts[episode]
        kind = np.searchsorted(self._limits, kind_draw, side="right")
        stays = np.zeros(batch_size, bool)
        if self._stay_share:
            stays = self.rng.random(batch_size) < self._stay_share
            reached = self._reached[self.rng.integers(len(self._reached), size=batch_size)]
            episode, step = np.where(stays, reached, episode), np.where(stays, length[reached], step)
            transition = np.where(stays, np.cumsum(length)[reached] - 1, transition)
            kind = np.where(stays, GoalKind.ORIGINAL, kind)
        first = firsts[episode]
        state, ahead = first + step, self._ahead(future_draw, length[episode] - step)
        goal = np.choose(kind, [np.asarray(data.episode_goal_frame)[episode], state + ahead, state + 1, any_frame])
        return Indices(
            transition=transition,
            goal_kind=kind.astype(np.int8),
            state=state,
            next_state=np.where(stays, state, state + 1),
            goal=goal,
            initial_state=first,
            earlier=first + (earlier_draw * (step + 1)).astype(np.int64),
            stays=stays,
        )

    def random_frames(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Indices of any frames of the dataset, drawn from a generator of the caller's."""
        return rng.integers(len(self._frames), size=count)

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
        if self.dataset.rewards is None or self.shares.p_original == 0:
            return reached.astype(np.float32), reached
        original = indices.goal_kind == GoalKind.ORIGINAL
        reward = np.where(original, np.asarray(self.dataset.rewards)[indices.transition], reached).astype(np.float32)
        terminal = np.where(original, np.asarray(self.dataset.terminated)[indices.transition], reached)
        return reward, terminal


def _successful(dataset: Dataset) -> np.ndarray:
    """The transitions of episodes that reached their goal."""
    chosen = np.flatnonzero(np.asarray(dataset.episode_success)[dataset.episode_of_transition])
    if not len(chosen):
        name = dataset.path or "the dataset"
        raise GCBError(f"{name} has no successful episode; only_successful must be off")
    return chosen


def failures(dataset: Dataset) -> str | None:
    """What `only_successful` leaves out of a dataset, in words; None if it leaves out nothing."""
    if dataset.episode_success is None or np.all(dataset.episode_success):
        return None
    failed = ~np.asarray(dataset.episode_success)
    share = np.asarray(dataset.episode_length)[failed].sum() / dataset.transitions
    count = f"{failed.sum():,} of {dataset.episodes:,} episodes ({share:.0%} of the transitions)"
    return f"{count} did not reach their goal"


def _reached_goals(dataset: Dataset) -> np.ndarray:
    """The episodes whose last transition reached their goal; none where the dataset does not say."""
    if dataset.episode_success is None or dataset.terminated is None:
        return np.empty(0, np.int64)
    last = np.cumsum(np.asarray(dataset.episode_length)) - 1
    return np.flatnonzero(np.asarray(dataset.episode_success) & np.asarray(dataset.terminated)[last])


def lacks_original_goals(dataset: Dataset) -> str | None:
    """Why a dataset cannot be sampled with its own goals, in words; None if it can."""
    name = dataset.path or "the dataset"
    without = int((dataset.episode_goal_frame < 0).sum())
    if without:
        return f"{without} of the {dataset.episodes} episodes of {name} have no goal of their own"
    return f"{name} has no rewards for its own goals" if dataset.rewards is None else None


def _check_original_goals(dataset: Dataset) -> None:
    """To change the shares silently would hide that goals or rewards are missing."""
    if reason := lacks_original_goals(dataset):
        raise GCBError(f"{reason}; use GoalSampling(…).without_original(), so that hindsight supplies them")
