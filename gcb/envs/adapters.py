"""Adapters: how to evaluate an agent in any goal-conditioned Gymnasium environment.

An adapter says which part of an environment's output is the agent's observation, what the goal is, and when it is
reached. Four are built in (`ADAPTERS`); a custom one overrides what differs:

```python
class ImageGoal(Adapter):
    def goal(self, observation, info):
        return info["target_image"]
```
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import gymnasium as gym
import numpy as np

from gcb.errors import GCBError, lookup


class Adapter:
    """For environments in the style of gymnasium-robotics: a Dict with "observation" and "desired_goal"."""

    modes: tuple[str, ...] = ("goal",)
    """Supported evaluation modes: "goal", and "strict", "loose" or "free" if the environment provides analogies."""
    max_steps = 1000
    """Maximum length of an episode, for environments without a time limit of their own."""
    eval_temperature = 0.0
    """Factor on the policy's standard deviation during evaluation; 0 takes the mean action."""

    flipped_actions: tuple[int, ...] = ()
    """Indices of the action dimensions that change sign when the image is mirrored left to right. Leave empty if a
    mirrored scene is not a valid scene; otherwise training may mirror samples (`TrainConfig.horizontal_flip`)."""

    def env_options(self, options: Mapping[str, Any], mode: str) -> dict[str, Any]:
        """Return the keyword arguments for `gymnasium.make` in one evaluation mode."""
        return dict(options)

    def reset(self, env: gym.Env, seed: int) -> tuple[Any, dict[str, Any]]:
        """Start the episode of this seed."""
        return env.reset(seed=seed)

    def observation(self, observation: Any, info: Mapping[str, Any]) -> np.ndarray:
        """Return the agent's observation, in the format of the frames it was trained on."""
        return observation["observation"]

    def goal(self, observation: Any, info: Mapping[str, Any]) -> np.ndarray:
        """Return the goal, given the first observation and info of an episode."""
        return observation["desired_goal"]

    def example(self, observation: Any, info: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """Return an example of the task from another scene: its state and its goal."""
        raise NotImplementedError(f"{type(self).__name__} shows no examples")

    def success(self, reward: float, info: Mapping[str, Any]) -> bool:
        """Return whether the goal is reached after a step."""
        return bool(info.get("success", info.get("is_success", reward > 0)))

    def task(self, info: Mapping[str, Any]) -> str:
        """Return the name of the task, given the first info of an episode. Results are reported per task."""
        return str(info.get("task", "all"))

    def action(self, env: gym.Env, action: np.ndarray) -> np.ndarray:
        """Rescale the policy's action from [-1, 1] to the bounds of the environment's action space."""
        space = env.action_space
        if not isinstance(space, gym.spaces.Box) or not (np.isfinite(space.low) & np.isfinite(space.high)).all():
            return action
        if (space.low == -1).all() and (space.high == 1).all():
            return action
        return (space.low + (action + 1) / 2 * (space.high - space.low)).astype(space.dtype)

    def observation_shape(self, env: gym.Env) -> tuple[int, ...] | None:
        """Return the shape of the agent's observation, or None if the observation space does not define it."""
        space = env.observation_space
        return space["observation"].shape if isinstance(space, gym.spaces.Dict) else None


class AchievedGoalAdapter(Adapter):
    """For environments whose goals are not full observations: the agent observes "achieved_goal" instead."""

    def observation(self, observation: Any, info: Mapping[str, Any]) -> np.ndarray:
        return observation["achieved_goal"]

    def observation_shape(self, env: gym.Env) -> tuple[int, ...] | None:
        space = env.observation_space
        return space["achieved_goal"].shape if isinstance(space, gym.spaces.Dict) else None


class InfoGoalAdapter(Adapter):
    """For OGBench: the observation is an array, the goal is in the info, and tasks are numbered from 1."""

    def reset(self, env: gym.Env, seed: int) -> tuple[Any, dict[str, Any]]:
        tasks = getattr(env.unwrapped, "num_tasks", 0)
        if not tasks:
            return env.reset(seed=seed)
        number = 1 + (seed >> 1) % tasks  # all evaluation seeds share their last bit
        observation, info = env.reset(seed=seed, options={"task_id": number})
        return observation, {**info, "task": f"task {number}"}

    def observation(self, observation: Any, info: Mapping[str, Any]) -> np.ndarray:
        return observation

    def goal(self, observation: Any, info: Mapping[str, Any]) -> np.ndarray:
        return info["goal"]

    def observation_shape(self, env: gym.Env) -> tuple[int, ...] | None:
        return env.observation_space.shape


class TabletopAdapter(Adapter):
    """For the environments in `gcb.envs`: no termination at success, held-out video clips, and analogies."""

    modes = ("goal", "strict", "loose", "free")
    flipped_actions = (1, 3)  # y and yaw; the camera looks along the plane of symmetry
    eval_temperature = 0.5
    """The mean action can get stuck above the handle where a sampled one moves on: see docs/method.md."""

    def env_options(self, options: Mapping[str, Any], mode: str) -> dict[str, Any]:
        import gcb.envs  # noqa: F401 (registers the environments)

        options = {**options, "terminate_at_success": False}
        if options.get("video"):
            options["video_split"] = "eval"
        if mode != "goal":
            options["analogy"] = mode
        return options

    def example(self, observation: Any, info: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        return info["example"].state_image, info["example"].goal_image


ADAPTERS: dict[str, Adapter] = {
    "gcb": TabletopAdapter(),
    "goal": Adapter(),
    "achieved": AchievedGoalAdapter(),
    "info": InfoGoalAdapter(),
}
"""The built-in adapters by name. A dataset may only name one of these: reading a file never imports code."""


def get_adapter(name: str) -> Adapter:
    """Return a built-in adapter."""
    return lookup(ADAPTERS, name, "adapter")


def adapter_name(adapter: Adapter) -> str:
    """Return the name under which an adapter is recorded: its key in `ADAPTERS`, or module:class."""
    names = [name for name, built_in in ADAPTERS.items() if type(built_in) is type(adapter)]
    return names[0] if names else f"{type(adapter).__module__}:{type(adapter).__qualname__}"


def load_adapter(name: str) -> Adapter:
    """Return a built-in adapter, or import module:name, a subclass or an instance of `Adapter`."""
    if ":" not in name:
        return get_adapter(name)
    module, _, attribute = name.partition(":")
    try:
        adapter = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise GCBError(f"adapter is {name!r}, but {error}") from error
    if isinstance(adapter, type):
        adapter = adapter()
    if not isinstance(adapter, Adapter):
        kind = type(adapter).__name__
        raise GCBError(f"adapter is {name!r}, which is a {kind}; accepted: a gcb.envs.adapters.Adapter")
    return adapter
