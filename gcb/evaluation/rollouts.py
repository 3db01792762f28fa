"""Play an agent in several worlds at once, the policy seeing them as one batch."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gcb.agent.agent import Agent
from gcb.data.contact_sheet import as_rgb
from gcb.envs.adapters import Adapter
from gcb.envs.spec import EnvSpec
from gcb.errors import GCBError
from gcb.utils.media import tile
from gcb.utils.seeding import episode_noise, episode_seed

LINGER = 8
"""Frames that a video's last picture stays."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of one episode."""

    task: str
    reached_at: int | None
    """Step at which the goal was first reached, from 1."""
    at_end: bool
    told: tuple[np.ndarray, ...] = field(default=(), repr=False)
    """What the agent was told: the goal, or the example pair; kept with the frames."""
    frames: Sequence[np.ndarray] = field(default=(), repr=False)


@dataclass(frozen=True)
class Played:
    """Some episodes, and the time that the worlds took for them."""

    outcomes: list[Outcome]
    env_seconds: float


class Player:
    """An agent and as many worlds as are to be played at once."""

    def __init__(self, agent: Agent, env_spec: EnvSpec, mode: str, size: int, eval_temperature: float = 0.0) -> None:
        """Actions are sampled with `eval_temperature` times the policy's standard deviation; 0 takes the mean."""
        self.agent, self.mode, self.adapter, self.eval_temperature = agent, mode, env_spec.adapter, eval_temperature
        self.envs = [env_spec.make(mode) for _ in range(size)]
        self._check(env_spec)

    def play(self, numbers: Sequence[int], seed: int, shown: int = 0) -> Played:
        """The episodes of these numbers, one in each world; frames are kept of those below `shown`."""
        if not numbers:
            return Played([], 0.0)
        clock = time.perf_counter
        began = clock()
        starts = [
            self.adapter.reset(env, episode_seed("eval", seed, number))
            for env, number in zip(self.envs, numbers, strict=False)
        ]
        env_seconds = clock() - began
        observations = np.stack([self.adapter.observation(*start) for start in starts])
        told = [self._told(observation, info) for observation, info in starts]
        pursuit = self._pursue(observations, told)
        episodes = [
            Episode(self.adapter, self.adapter.task(info), pair, [first] if number < shown else None)
            for (_, info), pair, first, number in zip(starts, told, observations.copy(), numbers, strict=True)
        ]
        draws = [episode_noise("eval", seed, number) for number in numbers]
        while any(not episode.over for episode in episodes):
            actions = pursuit.act(observations, self._noise(draws))
            began = clock()
            for index, episode in enumerate(episodes):
                if not episode.over:
                    env = self.envs[index]
                    observations[index] = episode.advance(env.step(self.adapter.action(env, actions[index])))
            env_seconds += clock() - began
        return Played([episode.outcome() for episode in episodes], env_seconds)

    def close(self) -> None:
        for env in self.envs:
            env.close()

    def _noise(self, draws: Sequence[np.random.Generator]) -> np.ndarray | None:
        """Of each episode's own generator, so that who plays beside it does not matter."""
        if not self.eval_temperature:
            return None
        return self.eval_temperature * np.stack([draw.standard_normal(self.agent.shapes.action) for draw in draws])

    def _told(self, observation: Any, info: Mapping[str, Any]) -> tuple[np.ndarray, ...]:
        if self.mode == "goal":
            return (self.adapter.goal(observation, info),)
        return self.adapter.example(observation, info)

    def _pursue(self, observations: np.ndarray, told: Sequence[tuple[np.ndarray, ...]]) -> Any:
        parts = [np.stack(part) for part in zip(*told, strict=True)]
        if self.mode == "goal":
            return self.agent.start_task(observations, goal=parts[0])
        return self.agent.start_task(observations, example=(parts[0], parts[1]))

    def _check(self, env_spec: EnvSpec) -> None:
        """The world must look and move as the agent's data did."""
        seen, action = self.adapter.observation_shape(self.envs[0]), self.envs[0].action_space
        wanted = self.agent.shapes
        if seen not in (None, wanted.observation) or action.shape != (wanted.action,):
            self.close()
            raise GCBError(
                f"{env_spec.env} shows observations {seen} and takes actions {action.shape}; the agent was trained on "
                f"{wanted.observation} and {(wanted.action,)}."
            )


class Episode:
    """One episode under way."""

    def __init__(
        self, adapter: Adapter, task: str, told: tuple[np.ndarray, ...], frames: list[np.ndarray] | None
    ) -> None:
        self.adapter, self.task, self.told, self.frames = adapter, task, told, frames
        self.steps, self.over, self.at_end = 0, False, False
        self.reached_at: int | None = None

    def advance(self, outcome: tuple[Any, Any, bool, bool, dict[str, Any]]) -> np.ndarray:
        """Take in what a step brought; return the new observation."""
        observation, reward, terminated, truncated, info = outcome
        seen = self.adapter.observation(observation, info)
        self.steps += 1
        self.at_end = self.adapter.success(float(reward), info)
        if self.at_end and self.reached_at is None:
            self.reached_at = self.steps
        if self.frames is not None:
            self.frames.append(seen)
        self.over = terminated or truncated or self.steps >= self.adapter.max_steps
        return seen

    def outcome(self) -> Outcome:
        told, frames = ((), ()) if self.frames is None else (self.told, self.frames)
        return Outcome(self.task, self.reached_at, self.at_end, told, frames)


def video_rows(outcomes: Sequence[Outcome], mode: str) -> Iterator[np.ndarray]:
    """The frames of a grid, one episode in a row: what the agent was told | what it does."""
    names = ("goal",) if mode == "goal" else ("example: before", "after")
    longest = max(len(outcome.frames) for outcome in outcomes) + LINGER
    for step in range(longest):
        cells, labels = [], []
        for outcome in outcomes:
            cells += [as_rgb(one) for one in (*outcome.told, outcome.frames[min(step, len(outcome.frames) - 1)])]
            done = outcome.reached_at is not None and step >= outcome.reached_at
            labels += [*names, f"{outcome.task}: done" if done else outcome.task]
        per_row = len(names) + 1
        yield tile(cells, columns=per_row * (1 if len(outcomes) < 4 else 2), scale=2, labels=labels)
