"""One episode of the agent, step by step, next to the expert in a simulator of its own."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from gcb.agent.agent import Agent, DoneMonitor, Example
from gcb.envs.adapters import TabletopAdapter
from gcb.envs.expert import Expert
from gcb.envs.tabletop import TabletopEnv
from gcb.explorer.display import data_url
from gcb.explorer.scene_renderer import RenderedScene
from gcb.explorer.simulators import SimulatorPair

EPISODE_SIZE = 192
"""Side of an episode's images, in pixels: rendering takes most of a step's time and grows with the area."""
EXTRA_STEPS = 10
"""Steps for which the expert continues after success, so that the drawer settles at its target."""

Event = dict[str, Any]


def run_episode(
    agent: Agent,
    simulators: SimulatorPair,
    scene: RenderedScene,
    *,
    goal: np.ndarray | None = None,
    example: Example | None = None,
) -> Iterator[Event]:
    """Yield the events of one episode: "start", a "step" with images for each step, and "end" with the outcome.

    The agent is conditioned on a goal image or on an example pair. As in an evaluation, it acts until the time limit,
    so that it also has to keep the goal, and its actions are sampled; with a fixed seed, they repeat.
    """
    observations, _ = simulators.agent.reset(options={"scene": scene.scene})
    simulators.expert.reset(options={"scene": scene.scene})
    observation = observations["observation"]
    policy = agent.start_task(observation, goal=goal, example=example)
    expert = ExpertRollout(simulators.expert)
    yield {"type": "start", "success": scene.solved, "step": 0, **_images(simulators.agent, observation)}
    success_step, success, truncated, step = None, scene.solved, False, 0
    declared_step, declared_success = None, False
    rng = np.random.default_rng(0)

    def noise() -> np.ndarray:
        return TabletopAdapter.eval_temperature * rng.standard_normal(agent.shapes.action)

    monitor = DoneMonitor()
    action, done = policy.step(observation, noise())
    monitor.update(done)
    while not truncated:
        expert_image = expert.step()
        observations, _, _, truncated, info = simulators.agent.step(action)
        observation, success, step = observations["observation"], info["success"], step + 1
        if success and success_step is None:
            success_step = step
        action, done = policy.step(observation, noise())
        if monitor.update(done) and declared_step is None:
            declared_step, declared_success = step, success
        yield {
            "type": "step",
            "step": step,
            "success": success,
            "done": float(done) if np.isfinite(done) else None,  # JSON has no NaN
            "expert_image": expert_image,
            "expert_success": expert.success_step is not None,
            **_images(simulators.agent, observation),
        }
    yield {
        "type": "end",
        "success_step": success_step,
        "success_at_end": success,
        "declared_step": declared_step,
        "declared_success": declared_success,
        "expert_success_step": expert.success_step,
    }


class ExpertRollout:
    """The expert in the same scene, until it has succeeded."""

    def __init__(self, env: TabletopEnv) -> None:
        self._env, self._expert = env, Expert(env)
        self.success_step: int | None = None
        self._steps, self._done = 0, False

    def step(self) -> str | None:
        """Take one step and return the image after it, or None if the expert has finished."""
        if self._done:
            return None
        *_, truncated, info = self._env.step(self._expert.action())
        self._steps += 1
        if info["success"] and self.success_step is None:
            self.success_step = self._steps
        self._done = truncated or (self.success_step is not None and self._steps >= self.success_step + EXTRA_STEPS)
        return data_url(self._env.image(EPISODE_SIZE))


def _images(env: TabletopEnv, observation: np.ndarray) -> Event:
    return {"agent_image": data_url(env.image(EPISODE_SIZE)), "observation": data_url(observation)}
