"""Sample batches of transitions with relabelled goals: index arithmetic first, then one gather of frames.

A batch has groups of K transitions of one episode that share a goal. Transition t of an episode of T transitions leads
from its frame t to its frame t + 1. The goal of a group whose first transition is t is one of

    original     the episode's own goal frame                           reward and terminal: the dataset's
    future       one of its frames t + 1 … T ("hindsight")              ⎫ reward 1 and terminal if the goal frame *is*
    next_frame   its frame t + 1                                        ⎬ the next frame, else 0; frames are compared by
    random       any frame of the dataset                               ⎭ index, and frame T is never another episode's

The other K - 1 transitions are any of the episode's that precede the goal. With `p_final_state`, some of them are
replaced by frame T of a successful episode or by its goal frame, which have no action: they show that the task is done.

With a table of partners (`gcb.data.partners`), groups come in pairs: every second group is of a partner of the episode
before it.
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np

from gcb.data.batch import Batch, Indices
from gcb.data.partners import Partners
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
        group_size: int = 1,
        p_final_state: float = 0.0,
        future_discount: float | None = None,
        only_successful: bool = False,
    ) -> None:
        """With a `future_discount` γ, a future goal k steps ahead has a probability proportional to γᵏ.

        `group_size` is K. `p_final_state` is the probability that a transition other than a group's first is replaced
        by the last state of its episode, or by its goal, if that was reached. `only_successful` leaves out the episodes
        that did not reach their goal; it has no effect on data that does not record success.
        """
        if goals.p_original > 0:
            _check_original_goals(dataset)
        if future_discount is not None and not 0 < future_discount < 1:
            raise GCBError(f"future_discount is {future_discount}; it must lie between 0 and 1, or be None for uniform")
        if group_size < 1:
            raise GCBError(f"group_size is {group_size}; it must be at least 1")
        if not 0 <= p_final_state <= 1:
            raise GCBError(f"p_final_state is {p_final_state}; it must lie between 0 and 1")
        self.dataset, self.goals, self.rng, self.group_size = dataset, goals, rng, group_size
        self._p_final, self._reached = p_final_state, _reached_goal(dataset)
        self.future_discount = future_discount
        self.partners: Partners | None = None
        """Partners of the episodes in `self.episodes`; set it to sample pairs of partners."""
        self._transitions = None
        if only_successful and dataset.episode_success is not None:
            self._transitions = _successful_transitions(dataset)
        limits = np.cumsum([goals.p_original, goals.p_future, goals.p_next_frame, goals.p_random])
        self._limits = limits / limits[-1]
        # Small operations on a np.memmap are slower than on the plain array behind it.
        self._frames = np.asarray(dataset.frames)
        self._length, self._first_frame = np.asarray(dataset.episode_length), np.asarray(dataset.episode_first_frame)
        self._first_transition = np.asarray(dataset.first_transition)

    @property
    def episodes(self) -> np.ndarray:
        """The episodes that are sampled from and have a goal of their own: those that can have partners."""
        has_goal = np.asarray(self.dataset.episode_goal_frame) >= 0
        if self._transitions is not None:
            has_goal &= np.asarray(self.dataset.episode_success)
        return np.flatnonzero(has_goal)

    def states_at(self, episodes: np.ndarray, fraction: float) -> np.ndarray:
        """Return one observation of each episode, after this fraction of its length."""
        return self.gather(self._first_frame[episodes] + (fraction * self._length[episodes]).astype(np.int64))

    def goals_of(self, episodes: np.ndarray) -> np.ndarray:
        """Return the goals of episodes."""
        return self.gather(np.asarray(self.dataset.episode_goal_frame)[episodes])

    def sample(
        self, batch_size: int, rows: slice = slice(None), extra_frames: Collection[str] = ()
    ) -> Batch[np.ndarray]:
        """Sample transitions uniformly, with replacement; return only these rows of the batch, which are whole groups.

        `extra_frames` names optional fields of `Batch` to fill: "initial_state".
        """
        groups = slice(*(None if row is None else row // self.group_size for row in (rows.start, rows.stop)))
        indices = self.sample_indices(batch_size).groups(groups)
        reward, terminal = self._outcome(indices)
        names = ["state", "next_state", "goal", *sorted(extra_frames)]
        index = [getattr(indices, name).reshape(-1) for name in names]
        frames = self.gather(np.concatenate(index))
        parts = np.split(frames, np.cumsum([len(part) for part in index])[:-1])
        return Batch(
            **dict(zip(names, parts, strict=True)),
            action=np.asarray(self.dataset.actions)[indices.transition.reshape(-1)],
            final=indices.final.reshape(-1),
            reward=reward,
            terminal=terminal,
            has_partner=None if self.partners is None else indices.has_partner,
            indices=indices,
        )

    def sample_indices(self, batch_size: int) -> Indices:
        """Sample a batch as indices, without reading any frame."""
        count, rest = divmod(batch_size, self.group_size)
        if rest or count < 1:
            raise GCBError(f"batch_size is {batch_size}; it must be a positive multiple of {self.group_size}")
        data = self.dataset
        if self._transitions is None:
            transition = self.rng.integers(data.transitions, size=count)
        else:
            transition = self._transitions[self.rng.integers(len(self._transitions), size=count)]
        kind_draw, future_draw, step_draw = self.rng.random((3, count))
        any_frame = self.rng.integers(len(self._frames), size=count)
        other_draws, final_draws = self.rng.random((2, count, self.group_size - 1))

        kind = np.searchsorted(self._limits, kind_draw, side="right")
        episode = data.episode_of_transition[transition]
        step = data.frame_of_transition[transition] - self._first_frame[episode]
        has_partner = np.zeros(count, bool)
        if self.partners is not None:
            has_partner = self._pair_up(episode, step, kind, step_draw)
        length, initial_state = self._length[episode], self._first_frame[episode]
        state = initial_state + step
        ahead = self._steps_ahead(future_draw, length - step)
        own_goal = np.asarray(data.episode_goal_frame)[episode]
        goal = np.choose(kind, [own_goal, state + ahead, state + 1, any_frame])
        # The other transitions of a group precede its goal, if that is a frame of the same episode.
        before_goal = np.choose(kind, [length, step + ahead, step + 1, length])
        others = (other_draws * before_goal[:, None]).astype(np.int64)
        reached = (self._reached[episode] & (kind == GoalKind.ORIGINAL))[:, None]
        final = np.zeros((count, self.group_size), bool)
        final[:, 1:] = (final_draws < self._p_final) & reached
        steps = np.concatenate([step[:, None], others], axis=1)
        steps = np.where(final, length[:, None], steps)
        states = initial_state[:, None] + steps
        # Half of the final states are the goal itself, in which the task is certainly done.
        at_goal = np.pad(final_draws < self._p_final / 2, ((0, 0), (1, 0))) & final
        return Indices(
            # A final state has no transition; the one before it is a placeholder.
            transition=self._first_transition[episode][:, None] + steps - final,
            goal_kind=kind.astype(np.int8),
            state=np.where(at_goal, own_goal[:, None], states),
            next_state=state + 1,
            goal=goal,
            initial_state=initial_state,
            has_partner=has_partner,
            final=final,
        )

    def _pair_up(self, episode: np.ndarray, step: np.ndarray, kind: np.ndarray, step_draw: np.ndarray) -> np.ndarray:
        """Replace every second group by one of a partner of the episode before it, in place; return which are paired.

        Only groups with original goals are paired: the table of partners refers to those tasks.
        """
        assert self.partners is not None
        pairs = len(episode) // 2
        partner = self.partners.sample(episode[0 : 2 * pairs : 2], self.rng)
        original = (kind[0 : 2 * pairs : 2] == GoalKind.ORIGINAL) & (kind[1 : 2 * pairs : 2] == GoalKind.ORIGINAL)
        found = original & (partner >= 0)
        rows = 2 * np.flatnonzero(found) + 1
        episode[rows] = partner[found]
        step[rows] = (step_draw[rows] * self._length[episode[rows]]).astype(np.int64)
        has_partner = np.zeros(len(episode), bool)
        has_partner[: 2 * pairs] = np.repeat(found, 2)
        return has_partner

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
        reached, transition = indices.goal == indices.next_state, indices.transition[:, 0]
        if self.dataset.rewards is None or self.goals.p_original == 0:
            return reached.astype(np.float32), reached
        original = indices.goal_kind == GoalKind.ORIGINAL
        reward = np.where(original, np.asarray(self.dataset.rewards)[transition], reached).astype(np.float32)
        terminal = np.where(original, np.asarray(self.dataset.terminated)[transition], reached)
        return reward, terminal


def _successful_transitions(dataset: Dataset) -> np.ndarray:
    """Return the transitions of the episodes that reached their goal."""
    chosen = np.flatnonzero(np.asarray(dataset.episode_success)[dataset.episode_of_transition])
    if not len(chosen):
        name = dataset.path or "the dataset"
        raise GCBError(f"{name} has no successful episode; only_successful must be off")
    return chosen


def _reached_goal(dataset: Dataset) -> np.ndarray:
    """Return whether each episode ends in its goal, according to the dataset; False if it does not record it."""
    if dataset.episode_success is None or dataset.terminated is None:
        return np.zeros(dataset.episodes, bool)
    last = np.cumsum(np.asarray(dataset.episode_length)) - 1
    return np.asarray(dataset.episode_success) & np.asarray(dataset.terminated)[last]


def describe_failures(dataset: Dataset) -> str | None:
    """Say what `only_successful` leaves out of a dataset; None if it leaves out nothing."""
    if dataset.episode_success is None or np.all(dataset.episode_success):
        return None
    failed = ~np.asarray(dataset.episode_success)
    share = np.asarray(dataset.episode_length)[failed].sum() / dataset.transitions
    count = f"{failed.sum():,} of {dataset.episodes:,} episodes ({share:.0%} of the transitions)"
    return f"{count} did not reach their goal"


def lacks_original_goals(dataset: Dataset) -> str | None:
    """Say why a dataset cannot be sampled with its own goals; None if it can."""
    name = dataset.path or "the dataset"
    without = int((dataset.episode_goal_frame < 0).sum())
    if without:
        return f"{without} of the {dataset.episodes} episodes of {name} have no goal of their own"
    return f"{name} has no rewards for its own goals" if dataset.rewards is None else None


def _check_original_goals(dataset: Dataset) -> None:
    """Raise if goals or rewards are missing, rather than change the probabilities silently."""
    if reason := lacks_original_goals(dataset):
        raise GCBError(f"{reason}; use GoalSampling(…).without_original() to take hindsight goals instead")
