"""An environment whose episodes are determined by their seed, for tests of the evaluation.

Importing this module registers it.
"""

from collections import namedtuple
from typing import Any

import gymnasium as gym
import numpy as np

HORIZON = 6
ENV = "helpers.slide_env:Slide-v0"
ENV_ANY_ACTION = "helpers.slide_env:SlideAnyAction-v0"
"""The same without `check_actions`, for agents that are trained."""
PLANS = {"never": (), "at the end": (4, 5, 6), "on the way": (2, 3), "last": (6,)}
"""Types of episodes, and the steps at which the goal is reached."""

Pair = namedtuple("Pair", ["state_image", "goal_image"])


def episode_and_step(image: np.ndarray) -> tuple[int, int]:
    """Return the number of the episode and the step that an image shows."""
    number, step = divmod(int(image.flat[0]), 10)
    return number, step


def ragged_length(number: int) -> int:
    """Return the length of an episode in the environment with `ragged`: 3 to 6 steps."""
    return 3 + number % 4


class Slide(gym.Env):
    """Every image has one constant value, which encodes the episode and the step.

    With `check_actions` the environment asserts that the action matches the image, to detect mixed-up rows of a batch.
    With `ragged` episodes have different lengths.
    """

    def __init__(
        self,
        terminate_at_success: bool,
        analogy: str | None = None,
        size: int = 32,
        check_actions: bool = True,
        ragged: bool = False,
    ) -> None:
        assert not terminate_at_success
        self.analogy, self.size, self.check_actions, self.ragged = analogy, size, check_actions, ragged
        box = gym.spaces.Box(0, 255, (size, size, 3), np.uint8)
        self.observation_space = gym.spaces.Dict({"observation": box, "desired_goal": box})
        self.action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.number, self.steps = int(self.np_random.integers(20)), 0
        self.plan = list(PLANS)[self.number % len(PLANS)]
        info: dict[str, Any] = {"task": self.plan, "success": False}
        if self.analogy:
            info["example"] = Pair(self.image(100), self.image(200))
        return self.observation(), info

    def step(self, action: np.ndarray) -> Any:
        assert not self.check_actions or action[0] == np.float32(self.shown / 255)
        self.steps += 1
        success = self.steps in PLANS[self.plan]
        length = ragged_length(self.number) if self.ragged else HORIZON
        return self.observation(), float(success), False, self.steps == length, {"success": success}

    def observation(self) -> dict[str, np.ndarray]:
        self.shown = 10 * self.number + self.steps
        return {"observation": self.image(self.shown), "desired_goal": self.image(250)}

    def image(self, value: int) -> np.ndarray:
        return np.full((self.size, self.size, 3), value, np.uint8)


gym.register("Slide-v0", entry_point="helpers.slide_env:Slide")
gym.register("SlideAnyAction-v0", entry_point="helpers.slide_env:Slide", kwargs={"check_actions": False})
