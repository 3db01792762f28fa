"""How an environment that nobody here wrote is played with a goal.

An adapter says what of a gymnasium environment the agent sees, what its goal is and when that is reached. Four are
built in (`ADAPTERS`); an own one overrides what differs:

```python
class Torch(Adapter):
    def goal(self, observation, info):
        return info["target_picture"]
```
"""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from gcb.errors import GCBError, lookup


class Adapter:
    """A goal-conditioned environment as gymnasium-robotics defines them: what is seen and what is wanted in a Dict."""

    modes: tuple[str, ...] = ("goal",)
    """The ways in which it can tell the agent what to do: "goal", and "strict" or "loose" if it shows examples."""
    max_steps = 1000
    """Steps after which an episode ends that the environment does not end."""
    eval_temperature = 0.0
    """An evaluation draws actions with so much of the policy's own spread; 0 takes their mean."""

    flipped_actions: tuple[int, ...] = ()
    """Dimensions of the action (from 0) that change sign when left and right of the picture change places; none where a
    mirrored scene is no scene. Training may mirror samples then (`TrainConfig.horizontal_flip`)."""

    def env_options(self, options: Mapping[str, Any], mode: str) -> dict[str, Any]:
        """What `gymnasium.make` is given beside the environment's id, for one mode of evaluation."""
        return dict(options)

    def reset(self, env: gym.Env, seed: int) -> tuple[Any, dict[str, Any]]:
        """Begin the episode that belongs to this seed."""
        return env.reset(seed=seed)

    def observation(self, observation: Any, info: Mapping[str, Any]) -> np.ndarray:
        """What the agent sees: as one frame of the data that it was trained on."""
        return observation["observation"]

    def goal(self, observation: Any, info: Mapping[str, Any]) -> np.ndarray:
        """What the agent shall see at the end, from the first observation and info of an episode."""
        return observation["desired_goal"]

    def example(self, observation: Any, info: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """An example of the task from another scene, before and after."""
        raise NotImplementedError(f"{type(self).__name__} shows no examples")

    def success(self, reward: float, info: Mapping[str, Any]) -> bool:
        """Whether the goal is reached after a step."""
        return bool(info.get("success", info.get("is_success", reward > 0)))

    def task(self, info: Mapping[str, Any]) -> str:
        """The kind of task of an episode, from its first info: results are given for each."""
        return str(info.get("task", "all"))

    def action(self, env: gym.Env, action: np.ndarray) -> np.ndarray:
        """The policy's action in [-1, 1] as the environment wants it: stretched to the bounds of its space."""
        space = env.action_space
        if not isinstance(space, gym.spaces.Box) or not (np.isfinite(space.low) & np.isfinite(space.high)).all():
            return action
        if (space.low == -1).all() and (space.high == 1).all():
            return action
        return (space.low + (action + 1) / 2 * (space.high - space.low)).astype(space.dtype)

    def observation_shape(self, env: gym.Env) -> tuple[int, ...] | None:
        """The shape of what the agent sees, if the environment's spaces say it."""
        space = env.observation_space
        return space["observation"].shape if isinstance(space, gym.spaces.Dict) else None


class AchievedGoalAdapter(Adapter):
    """The same, where goals are no whole observations: the agent sees the achieved goal instead."""

    def observation(self, observation: Any, info: Mapping[str, Any]) -> np.ndarray:
        return observation["achieved_goal"]

    def observation_shape(self, env: gym.Env) -> tuple[int, ...] | None:
        space = env.observation_space
        return space["achieved_goal"].shape if isinstance(space, gym.spaces.Dict) else None


class InfoGoalAdapter(Adapter):
    """OGBench's environments: the observation is plain, the goal is in the info, the tasks are numbered from 1."""

    def reset(self, env: gym.Env, seed: int) -> tuple[Any, dict[str, Any]]:
        tasks = getattr(env.unwrapped, "num_tasks", 0)
        if not tasks:
            return env.reset(seed=seed)
        number = 1 + (seed >> 1) % tasks  # the last bit is the same in all seeds of evaluations
        observation, info = env.reset(seed=seed, options={"task_id": number})
        return observation, {**info, "task": f"task {number}"}

    def observation(self, observation: Any, info: Mapping[str, Any]) -> np.ndarray:
        return observation

    def goal(self, observation: Any, info: Mapping[str, Any]) -> np.ndarray:
        return info["goal"]

    def observation_shape(self, env: gym.Env) -> tuple[int, ...] | None:
        return env.observation_space.shape


class TabletopAdapter(Adapter):
    """The worlds of `gcb.envs`: they go on after success, show clips that training never saw, and give examples."""

    modes = ("goal", "strict", "loose")
    flipped_actions = (1, 3)  # the way to the side and the turn; the camera stands in the plane of symmetry
    eval_temperature = 0.5
    """A mean can come to rest above the handle where a draw goes on: docs/method.md."""

    def env_options(self, options: Mapping[str, Any], mode: str) -> dict[str, Any]:
        import gcb.envs  # noqa: F401 (registers the worlds)

        given = {**options, "terminate_at_success": False}
        if given.get("video"):
            given["video_split"] = "eval"
        if mode != "goal":
            given["analogy"] = mode
        return given

    def example(self, observation: Any, info: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        return info["example"].state_image, info["example"].goal_image


ADAPTERS: dict[str, Adapter] = {
    "gcb": TabletopAdapter(),
    "goal": Adapter(),
    "achieved": AchievedGoalAdapter(),
    "info": InfoGoalAdapter(),
}
"""By the names that a dataset may record: nothing that a file names is imported."""


def get_adapter(name: str) -> Adapter:
    """The built-in adapter of this name."""
    return lookup(ADAPTERS, name, "adapter")


def adapter_name(adapter: Adapter) -> str:
    """What to call an adapter in a file."""
    known = [name for name, one in ADAPTERS.items() if type(one) is type(adapter)]
    return known[0] if known else f"{type(adapter).__module__}:{type(adapter).__qualname__}"


def load_adapter(name: str) -> Adapter:
    """The built-in adapter of this name, or for module:name the class (or instance) of a user's own module."""
    if ":" not in name:
        return get_adapter(name)
    from importlib import import_module

    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise GCBError(f"adapter is {name!r}, but {error}") from error
    made = found() if isinstance(found, type) else found
    if not isinstance(made, Adapter):
        raise GCBError(f"adapter is {name!r}, which is a {type(made).__name__}; accepted: a gcb.envs.adapters.Adapter")
    return made
