"""One episode of the agents and of the expert, step by step, each in a simulator of its own."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gcb.agent.agent import Agent, DoneMonitor, Example
from gcb.envs.adapters import TabletopAdapter
from gcb.envs.expert import Expert
from gcb.envs.scene import Scene
from gcb.envs.tabletop import TabletopEnv
from gcb.explorer.display import data_url
from gcb.explorer.simulators import Simulators

EPISODE_SIZE = 192
"""Side of an episode's images, in pixels: rendering takes most of a step's time and grows with the area."""
EXTRA_STEPS = 10
"""Steps for which the expert continues after success, so that the drawer settles at its target."""

Event = dict[str, Any]


def run_episode(
    agents: Sequence[Agent],
    simulators: Simulators,
    scene: Scene,
    *,
    goal: np.ndarray | None = None,
    example: Example | None = None,
) -> Iterator[Event]:
    """Yield the events of one episode: "start", a "step" with images for each step, and "end" with the outcomes.

    The agents are conditioned on a goal image or on an example pair. As in an evaluation, they act until the time
    limit, so that they also have to keep the goal, and their actions are sampled; with a fixed seed, they repeat.
    """
    pairs = zip(agents, simulators.agents, strict=True)
    rollouts = [AgentRollout(agent, env, scene, goal=goal, example=example) for agent, env in pairs]
    expert = ExpertRollout(simulators.expert, scene)
    yield {"type": "start", "step": 0, "agents": [rollout.frame() for rollout in rollouts]}
    while not all(rollout.over for rollout in rollouts):
        expert_image = expert.step()
        for rollout in rollouts:
            rollout.step()
        yield {
            "type": "step",
            "step": rollouts[0].steps,
            "agents": [rollout.frame() for rollout in rollouts],
            "expert_image": expert_image,
            "expert_success": expert.success_step is not None,
        }
    outcomes = [rollout.outcome() for rollout in rollouts]
    yield {"type": "end", "agents": outcomes, "expert_success_step": expert.success_step}


class AgentRollout:
    """One agent in a scene, from the start to the time limit."""

    def __init__(
        self,
        agent: Agent,
        env: TabletopEnv,
        scene: Scene,
        *,
        goal: np.ndarray | None = None,
        example: Example | None = None,
    ) -> None:
        self._agent, self._env, self._rng = agent, env, np.random.default_rng(0)
        observations, info = env.reset(options={"scene": scene})
        self.observation, self.success = observations["observation"], info["success"]
        self.over, self.steps = False, 0
        self.success_step: int | None = None
        self.declared_step: int | None = None
        self._declared_success = False
        self._policy, self._monitor = agent.start_task(self.observation, goal=goal, example=example), DoneMonitor()
        self.done: float | None = None
        self._action = self._act()[0]

    def step(self) -> None:
        """Take one step."""
        observations, _, _, self.over, info = self._env.step(self._action)
        self.observation, self.success, self.steps = observations["observation"], info["success"], self.steps + 1
        if self.success and self.success_step is None:
            self.success_step = self.steps
        self._action, declares = self._act()
        if declares and self.declared_step is None:
            self.declared_step, self._declared_success = self.steps, self.success

    def _act(self) -> tuple[np.ndarray, bool]:
        """Return the next action, and whether the agent declares the task done."""
        noise = TabletopAdapter.eval_temperature * self._rng.standard_normal(self._agent.shapes.action)
        action, done = self._policy.step(self.observation, noise)
        self.done = float(done) if np.isfinite(done) else None  # JSON has no NaN
        return action, bool(self._monitor.update(done))

    def frame(self) -> dict[str, Any]:
        """Return the present state for the page."""
        images = {"image": data_url(self._env.image(EPISODE_SIZE)), "observation": data_url(self.observation)}
        return {**images, "success": self.success, "done": self.done if self.steps else None}

    def outcome(self) -> dict[str, Any]:
        """Return how the episode ended."""
        return {
            "success_step": self.success_step,
            "success_at_end": self.success,
            "declared_step": self.declared_step,
            "declared_success": self._declared_success,
        }


class ExpertRollout:
    """The expert in the same scene, until it has succeeded."""

    def __init__(self, env: TabletopEnv, scene: Scene) -> None:
        env.reset(options={"scene": scene})
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
