"""Sample batches of transitions with relabelled goals: index arithmetic first, then one gather of frames.

Transition t of an episode of T transitions leads from its frame t to its frame t + 1. Its goal is one of

    original     the episode's own goal frame                           reward and terminal: the dataset's
    future       one of its frames t + 1 … T ("hindsight")              ⎫ reward 1 and terminal if the goal frame *is*
    next_frame   its frame t + 1                                        ⎬ the next frame, else 0; frames are compared by
    random       any frame of the dataset                               ⎭ index, and frame T is never another episode's

Data that ends at success does not show how to keep a goal reached. With `p_absorbing`, some samples are absorbing:
frame T of a successful episode, its own goal, a zero action, and frame T again, with success.
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np

from gcb.data.batch import Batch, Indices
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
    """The probability of each kind of goal. The authors' release had about .57, .34, .09 and 0."""

    p_original: float = 0.5
    """The goal of the episode."""
    p_future: float = 0.4
    """A later frame of the same episode."""
    p_next_frame: float = 0.1
    """The next frame: always a reward."""
    p_random: float = 0.0
    """Any frame of the dataset: almost never a reward."""

    def __post_init__(self) -> None:
        probabilities = asdict(self)
        for name, probability in probabilities.items():
            if not 0 <= probability <= 1:
                raise GCBError(f"{name} is {probability}; it must lie between 0 and 1")
        total = sum(probabilities.values())
        if abs(total - 1) > 1e-6:
            raise GCBError(f"the goal probabilities {probabilities} add up to {total:.6g}; they must add up to 1")

    def without_original(self) -> "GoalSampling":
        """Give the probability of original goals to future ones: for data without goals of its own."""
        return replace(self, p_original=0.0, p_future=self.p_future + self.p_original)


class Sampler:
    """Samples batches from a dataset. All randomness comes from `rng`, the same amount for every batch."""

    def __init__(
        self,
        dataset: Dataset,
        goals: GoalSampling,
        rng: np.random.Generator,
        *,
        future_discount: float | None = None,
        only_successful: bool = False,
        p_absorbing: float = 0.0,
    ) -> None:
        """With a `future_discount` γ, a future goal k steps ahead has a probability proportional to γᵏ.

        `only_successful` leaves out the episodes that did not reach their goal. It has no effect on data that does not
        record success; neither has `p_absorbing`, which also needs original goals.
        """
        if goals.p_original > 0:
            _check_original_goals(dataset)
        if future_discount is not None and not 0 < future_discount < 1:
            raise GCBError(f"future_discount is {future_discount}; it must lie between 0 and 1, or be None for uniform")
        if not 0 <= p_absorbing < 1:
            raise GCBError(f"p_absorbing is {p_absorbing}; it must be at least 0 and below 1")
        self.dataset, self.goals, self.rng = dataset, goals, rng
        self.future_discount = future_discount
        self._transitions = None
        if only_successful and dataset.episode_success is not None:
            self._transitions = _successful_transitions(dataset)
        self._reached = _reached_episodes(dataset) if p_absorbing and goals.p_original else np.empty(0, np.int64)
        self._p_absorbing = p_absorbing if len(self._reached) else 0.0
        limits = np.cumsum([goals.p_original, goals.p_future, goals.p_next_frame, goals.p_random])
        self._limits = limits / limits[-1]
        # Small operations on a np.memmap are slower than on the plain array behind it.
        self._frames = np.asarray(dataset.frames)

    def sample(
        self, batch_size: int, rows: slice = slice(None), extra_frames: Collection[str] = ()
    ) -> Batch[np.ndarray]:
        """Sample transitions uniformly, with replacement; return only these rows of the batch.

        `extra_frames` names optional fields of `Batch` to fill: "initial_state".
        """
        indices = self.sample_indices(batch_size).rows(rows)
        reward, terminal = self._outcome(indices)
        names = ["state", "next_state", "goal", *sorted(extra_frames)]
        frames = self.gather(np.concatenate([getattr(indices, name) for name in names]))
        return Batch(
            **dict(zip(names, frames.reshape(len(names), -1, *frames.shape[1:]), strict=True)),
            action=np.where(indices.absorbing[:, None], 0, np.asarray(self.dataset.actions)[indices.transition]),
            reward=reward,
            terminal=terminal,
            indices=indices,
        )

    def sample_indices(self, batch_size: int) -> Indices:
        """Sample a batch as indices, without reading any frame."""
        if batch_size < 1:
            raise GCBError(f"batch_size is {batch_size}; it must be at least 1")
        data = self.dataset
        if self._transitions is None:
            transition = self.rng.integers(data.transitions, size=batch_size)
        else:
            transition = self._transitions[self.rng.integers(len(self._transitions), size=batch_size)]
        # The third row is unused: it stays so that a seed gives the same batches as in earlier versions.
        kind_draw, future_draw, _ = self.rng.random((3, batch_size))
        any_frame = self.rng.integers(len(self._frames), size=batch_size)

        length, first_frame = np.asarray(data.episode_length), np.asarray(data.episode_first_frame)
        episode = data.episode_of_transition[transition]
        step = data.frame_of_transition[transition] - first_frame[episode]
        kind = np.searchsorted(self._limits, kind_draw, side="right")
        absorbing = np.zeros(batch_size, bool)
        if self._p_absorbing:
            absorbing = self.rng.random(batch_size) < self._p_absorbing
            reached = self._reached[self.rng.integers(len(self._reached), size=batch_size)]
            episode, step = np.where(absorbing, reached, episode), np.where(absorbing, length[reached], step)
            transition = np.where(absorbing, np.cumsum(length)[reached] - 1, transition)
            kind = np.where(absorbing, GoalKind.ORIGINAL, kind)
        initial_state = first_frame[episode]
        state, ahead = initial_state + step, self._steps_ahead(future_draw, length[episode] - step)
        goal = np.choose(kind, [np.asarray(data.episode_goal_frame)[episode], state + ahead, state + 1, any_frame])
        return Indices(
            transition=transition,
            goal_kind=kind.astype(np.int8),
            state=state,
            next_state=np.where(absorbing, state, state + 1),
            goal=goal,
            initial_state=initial_state,
            absorbing=absorbing,
        )

    def gather(self, index: np.ndarray) -> np.ndarray:
        """Return copies of the frames at these indices."""
        if index.min() < 0:
            raise GCBError(f"there is no frame {index.min()}; frames are numbered from 0 to {len(self._frames) - 1}")
        return self._frames.take(index, axis=0)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the generator as JSON values; a sampler that loads it samples the same batches."""
        return {"rng": self.rng.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        try:
            self.rng.bit_generator.state = state["rng"]
        except (KeyError, TypeError, ValueError) as error:
            name = type(self.rng.bit_generator).__name__
            raise GCBError(f"this is not the state of a sampler on a {name} generator: {error}") from error

    def _steps_ahead(self, uniform: np.ndarray, remaining: np.ndarray) -> np.ndarray:
        """Return how far ahead future goals lie, from 1 to `remaining`, by inverting the distribution function."""
        if self.future_discount is None:
            return 1 + (uniform * remaining).astype(np.int64)
        reach = 1 - self.future_discount**remaining
        steps = np.ceil(np.log1p(-uniform * reach) / np.log(self.future_discount)).astype(np.int64)
        return np.clip(steps, 1, remaining)

    def _outcome(self, indices: Indices) -> tuple[np.ndarray, np.ndarray]:
        """Return reward and terminal: the dataset's for original goals, by equality of frames for all others."""
        reached = indices.goal == indices.next_state
        if self.dataset.rewards is None or self.goals.p_original == 0:
            return reached.astype(np.float32), reached
        original = indices.goal_kind == GoalKind.ORIGINAL
        reward = np.where(original, np.asarray(self.dataset.rewards)[indices.transition], reached).astype(np.float32)
        terminal = np.where(original, np.asarray(self.dataset.terminated)[indices.transition], reached)
        return reward, terminal


def _successful_transitions(dataset: Dataset) -> np.ndarray:
    """Return the transitions of the episodes that reached their goal."""
    chosen = np.flatnonzero(np.asarray(dataset.episode_success)[dataset.episode_of_transition])
    if not len(chosen):
        name = dataset.path or "the dataset"
        raise GCBError(f"{name} has no successful episode; only_successful must be off")
    return chosen


def describe_failures(dataset: Dataset) -> str | None:
    """Say what `only_successful` leaves out of a dataset; None if it leaves out nothing."""
    if dataset.episode_success is None or np.all(dataset.episode_success):
        return None
    failed = ~np.asarray(dataset.episode_success)
    share = np.asarray(dataset.episode_length)[failed].sum() / dataset.transitions
    count = f"{failed.sum():,} of {dataset.episodes:,} episodes ({share:.0%} of the transitions)"
    return f"{count} did not reach their goal"


def _reached_episodes(dataset: Dataset) -> np.ndarray:
    """Return the episodes whose last transition reached their goal; none if the dataset does not record it."""
    if dataset.episode_success is None or dataset.terminated is None:
        return np.empty(0, np.int64)
    last = np.cumsum(np.asarray(dataset.episode_length)) - 1
    return np.flatnonzero(np.asarray(dataset.episode_success) & np.asarray(dataset.terminated)[last])


def lacks_original_goals(dataset: Dataset) -> str | None:
    """Say why a dataset cannot be sampled with its own goals; None if it can."""
    name = dataset.path or "the dataset"
    without = int((dataset.episode_goal_frame < 0).sum())
    if without:
        return f"{without} of the {dataset.episodes} episodes of {name} have no goal of their own"
    return f"{name} has no rewards for its own goals" if dataset.rewards is None else None


def _check_original_goals(dataset: Dataset) -> None:
    """Raise if goals or rewards are missing: changing the probabilities silently would hide it."""
    if reason := lacks_original_goals(dataset):
        raise GCBError(f"{reason}; use GoalSampling(…).without_original() to take hindsight goals instead")
