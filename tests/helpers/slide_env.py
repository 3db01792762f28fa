"""A world whose episodes go as their seed says, for tests of the evaluation. Importing it registers it."""

from collections import namedtuple
from typing import Any

import gymnasium as gym
import numpy as np

HORIZON = 6
ENV = "helpers.slide_env:Slide-v0"
PLANS = {"never": (), "at the end": (4, 5, 6), "on the way": (2, 3), "last": (6,)}
"""Kinds of episodes, and the steps at which the goal is reached."""

Pair = namedtuple("Pair", ["state_image", "goal_image"])


class Slide(gym.Env):
    """Shows pictures that are all of one number: which episode it is, and which step.

    It asks for the action that belongs to the picture shown, so that mixed-up rows of a batch are found out.
    """

    def __init__(
        self, terminate_at_success: bool, analogy: str | None = None, size: int = 32, asks: bool = True
    ) -> None:
        assert not terminate_at_success
        self.analogy, self.size, self.asks = analogy, size, asks
        box = gym.spaces.Box(0, 255, (size, size, 3), np.uint8)
        self.observation_space = gym.spaces.Dict({"observation": box, "desired_goal": box})
        self.action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.number, self.steps = int(self.np_random.integers(20)), 0
        self.plan = list(PLANS)[self.number % len(PLANS)]
        info: dict[str, Any] = {"task": self.plan, "success": False}
        if self.analogy:
            info["example"] = Pair(self.picture(100), self.picture(200))
        return self.observation(), info

    def step(self, action: np.ndarray) -> Any:
        assert not self.asks or action[0] == np.float32(self.shown / 255)
        self.steps += 1
        success = self.steps in PLANS[self.plan]
        return self.observation(), float(success), False, self.steps == HORIZON, {"success": success}

    def observation(self) -> dict[str, np.ndarray]:
        self.shown = 10 * self.number + self.steps
        return {"observation": self.picture(self.shown), "desired_goal": self.picture(250)}

    def picture(self, value: int) -> np.ndarray:
        return np.full((self.size, self.size, 3), value, np.uint8)


gym.register("Slide-v0", entry_point="helpers.slide_env:Slide")
