"""An agent at work, step by step, beside the expert in a world of its own."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from gcb.agent.agent import Agent, Example
from gcb.envs import TabletopEnv
from gcb.envs.adapters import TabletopAdapter
from gcb.envs.expert import Expert
from gcb.explorer.images import data_url
from gcb.explorer.scene_renderer import View
from gcb.explorer.simulators import SimulatorPair

EPISODE_SIZE = 192
"""Side of a film's pictures: drawing them is most of a step's time, and grows with the area."""
LINGER = 10
"""Steps for which the expert goes on after success: its drawer is then where it shall be."""

Event = dict[str, Any]


def play(
    agent: Agent, stage: SimulatorPair, view: View, *, goal: np.ndarray | None = None, example: Example | None = None
) -> Iterator[Event]:
    """The events of one episode: "start", "step" for each step with its pictures, "end" with the verdict.

    The agent is told by a goal image or by an example pair. It acts until the world's time is up, as in an evaluation:
    it is also to leave what it has done as it is. Its actions are drawn as there, the same ones each time.
    """
    seen, _ = stage.agent.reset(options={"scene": view.scene})
    stage.expert.reset(options={"scene": view.scene})
    observation = seen["observation"]
    pursuit = agent.start_task(observation, goal=goal, example=example)
    expert = ExpertRollout(stage.expert)
    yield {"kind": "start", "words": view.words, "done": view.done, "step": 0, **_pictures(stage.agent, observation)}
    reached_at, success, over, step = None, view.done, False, 0
    draw = np.random.default_rng(0)
    while not over:
        shown = expert.advance()
        action = pursuit.act(observation, TabletopAdapter.eval_temperature * draw.standard_normal(agent.shapes.action))
        seen, _, _, over, info = stage.agent.step(action)
        observation, success, step = seen["observation"], info["success"], step + 1
        if success and reached_at is None:
            reached_at = step
        yield {
            "kind": "step",
            "step": step,
            "success": success,
            "value": _number(pursuit.value(observation)),
            "expert": shown,
            "expert_success": expert.reached_at is not None,
            **_pictures(stage.agent, observation),
        }
    yield {"kind": "end", "reached_at": reached_at, "at_end": success, "expert_reached_at": expert.reached_at}


class ExpertRollout:
    """What the expert does in the same scene, until it has done it."""

    def __init__(self, env: TabletopEnv) -> None:
        self._env, self._expert = env, Expert(env)
        self.reached_at: int | None = None
        self._steps, self._over = 0, False

    def advance(self) -> str | None:
        """One step; the picture after it, or None when the expert is done."""
        if self._over:
            return None
        *_, truncated, info = self._env.step(self._expert.action())
        self._steps += 1
        if info["success"] and self.reached_at is None:
            self.reached_at = self._steps
        self._over = truncated or (self.reached_at is not None and self._steps >= self.reached_at + LINGER)
        return data_url(self._env.image(EPISODE_SIZE))


def _pictures(env: TabletopEnv, observation: np.ndarray) -> Event:
    return {"agent": data_url(env.image(EPISODE_SIZE)), "seen": data_url(observation)}


def _number(value: np.ndarray) -> float | None:
    """JSON has no word for what is not finite."""
    number = float(value)
    return number if np.isfinite(number) else None
