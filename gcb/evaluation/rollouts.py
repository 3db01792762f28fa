"""Roll out an agent in several environments at once, with the observations of all of them as one policy batch."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

from gcb.agent.agent import Agent, DoneMonitor, TaskPolicy
from gcb.data.contact_sheet import as_rgb
from gcb.envs.spec import EnvSpec
from gcb.errors import GCBError
from gcb.utils.media import tile
from gcb.utils.seeding import episode_noise, episode_seed
from gcb.utils.statistics import Criterion

LAST_FRAME_REPEATS = 8
"""Number of frames for which a video holds its last one."""


@dataclass(eq=False)
class Outcome:
    """The outcome of one episode, updated at every step while it runs."""

    task: str
    reached_at: int | None = None
    """The step, counted from 1, that first reached the goal."""
    at_end: bool = False
    """Whether the goal is reached after the last step."""
    declared_at: int | None = None
    """The step, counted from 1, after which the agent first declared the task done."""
    declared: bool = False
    """Whether the goal is reached at that step or, if the agent never declares the task done, after the last one."""
    env_seconds: float = field(repr=False, default=0.0)
    """Time spent in the environment."""
    task_images: tuple[np.ndarray, ...] = field(default=(), repr=False)
    """The goal, or the example pair, if the episode is recorded."""
    frames: list[np.ndarray] = field(default_factory=list, repr=False)
    """All observations, if the episode is recorded."""

    def success(self, criterion: Criterion) -> bool:
        """Return whether the episode is a success by this criterion."""
        return self.reached_at is not None if criterion == "any_step" else getattr(self, criterion)

    def to_list(self) -> list[Any]:
        """Return the entry of eval.json."""
        return [self.task, self.reached_at, self.at_end, self.declared_at, self.declared]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> "Outcome":
        """Return the outcome that `to_list` made an entry of."""
        task, reached_at, at_end, declared_at, declared = values
        steps = (None if step is None else int(step) for step in (reached_at, declared_at))
        return cls(str(task), next(steps), bool(at_end), next(steps), bool(declared))


class RolloutWorker:
    """Rolls out chunks of `batch` episodes, one per environment (a `gcb.utils.workers.Runner`)."""

    renderer = ""

    def __init__(
        self,
        agent: Agent,
        env_spec: EnvSpec,
        mode: str,
        *,
        episodes: int,
        batch: int,
        first: int = 0,
        seed: int = 0,
        eval_temperature: float = 0.0,
        recorded: int = 0,
    ) -> None:
        """Actions are sampled with `eval_temperature` times the policy's standard deviation; 0 takes the mean.

        Episodes before number `first` are left out; those before number `recorded` keep their frames.
        """
        self.agent, self.adapter, self.mode = agent, env_spec.adapter, mode
        self.episodes, self.batch, self.first, self.seed = episodes, batch, first, seed
        self.eval_temperature, self.recorded = eval_temperature, recorded
        self.envs = [env_spec.make(mode) for _ in range(batch)]
        self._check_shapes(env_spec)

    def run(self, index: int) -> list[Outcome]:
        """Roll out chunk `index`, which starts at episode `first + index * batch`."""
        start = self.first + index * self.batch
        numbers = range(start, min(start + self.batch, self.episodes))
        if not numbers:
            return []
        starts = [self._reset(env, number) for env, number in zip(self.envs, numbers, strict=False)]
        observations, outcomes = np.stack([observation for observation, _, _ in starts]), [start[2] for start in starts]
        policy = self._start_task(observations, [images for _, images, _ in starts])
        rngs = [episode_noise("eval", self.seed, number) for number in numbers]
        running, step, monitor = list(range(len(numbers))), 0, DoneMonitor()
        while running:
            actions, done = policy.step(observations, self._noise(rngs))
            declares = monitor.update(done)
            for slot in running:
                if step and declares[slot] and outcomes[slot].declared_at is None:
                    outcomes[slot].declared_at = step
            step += 1
            for slot in tuple(running):
                observations[slot], over = self._step(self.envs[slot], actions[slot], outcomes[slot], step)
                if over:
                    running.remove(slot)
        return outcomes

    def close(self) -> None:
        for env in self.envs:
            env.close()

    def _reset(self, env: gym.Env, number: int) -> tuple[np.ndarray, tuple[np.ndarray, ...], Outcome]:
        """Start an episode; return the observation, the goal or example pair, and the outcome to fill in."""
        start = time.perf_counter()
        raw, info = self.adapter.reset(env, episode_seed("eval", self.seed, number))
        outcome = Outcome(self.adapter.task(info), env_seconds=time.perf_counter() - start)
        observation = self.adapter.observation(raw, info)
        images = (self.adapter.goal(raw, info),) if self.mode == "goal" else self.adapter.example(raw, info)
        if number < self.recorded:
            outcome.task_images, outcome.frames = images, [observation]
        return observation, images, outcome

    def _step(self, env: gym.Env, action: np.ndarray, outcome: Outcome, step: int) -> tuple[np.ndarray, bool]:
        """Take a step; return the new observation and whether the episode is over."""
        start = time.perf_counter()
        raw, reward, terminated, truncated, info = env.step(self.adapter.action(env, action))
        outcome.env_seconds += time.perf_counter() - start
        observation = self.adapter.observation(raw, info)
        outcome.at_end = self.adapter.success(float(reward), info)
        if outcome.at_end and outcome.reached_at is None:
            outcome.reached_at = step
        if outcome.declared_at is None:
            outcome.declared = outcome.at_end
        if outcome.frames:
            outcome.frames.append(observation)
        return observation, terminated or truncated or step >= self.adapter.max_steps

    def _start_task(self, observations: np.ndarray, images: Sequence[tuple[np.ndarray, ...]]) -> TaskPolicy:
        parts = [np.stack(part) for part in zip(*images, strict=True)]
        if self.mode == "goal":
            return self.agent.start_task(observations, goal=parts[0])
        return self.agent.start_task(observations, example=(parts[0], parts[1]))

    def _noise(self, rngs: Sequence[np.random.Generator]) -> np.ndarray | None:
        """Sample noise from each episode's own generator, so that results do not depend on the batch."""
        if not self.eval_temperature:
            return None
        return self.eval_temperature * np.stack([rng.standard_normal(self.agent.shapes.action) for rng in rngs])

    def _check_shapes(self, env_spec: EnvSpec) -> None:
        """Raise if observations and actions differ from those of the training data."""
        shape, action = self.adapter.observation_shape(self.envs[0]), self.envs[0].action_space
        trained = self.agent.shapes
        if shape not in (None, trained.observation) or action.shape != (trained.action,):
            self.close()
            raise GCBError(
                f"{env_spec.env} has observations {shape} and actions {action.shape}; the agent was trained on "
                f"{trained.observation} and {(trained.action,)}."
            )


def video_frames(outcomes: Sequence[Outcome], mode: str) -> Iterator[np.ndarray]:
    """Yield the frames of a video that shows each episode beside its goal or example pair."""
    names = ("goal",) if mode == "goal" else ("example: before", "after")
    length = max(len(outcome.frames) for outcome in outcomes) + LAST_FRAME_REPEATS
    for step in range(length):
        cells, labels = [], []
        for outcome in outcomes:
            frame = outcome.frames[min(step, len(outcome.frames) - 1)]
            cells += [as_rgb(image) for image in (*outcome.task_images, frame)]
            done = outcome.reached_at is not None and step >= outcome.reached_at
            labels += [*names, f"{outcome.task}: done" if done else outcome.task]
        per_episode = len(names) + 1
        yield tile(cells, columns=per_episode * (1 if len(outcomes) < 4 else 2), scale=2, labels=labels)
