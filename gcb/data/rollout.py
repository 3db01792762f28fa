"""Configuration of a collection, and the runner that plays its episodes with the noisy scripted expert."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from gcb.data.episode import Episode
from gcb.errors import GCBError, short
from gcb.utils.dataclass_io import SEED, check_fields
from gcb.utils.seeding import episode_noise, episode_seed


@dataclass(frozen=True)
class CollectConfig:
    """All settings that determine the bytes of a collected dataset."""

    env: str = "gcb/ButtonDrawer-v0"
    """Gymnasium id of the environment."""
    transitions: int = 50_000
    """Exact number of transitions; the last episode is truncated to fit."""
    seed: int = 0
    """Seed of scenes and noise. The dataset does not depend on the number of workers."""
    noise: float = 0.3
    """Standard deviation of the Gaussian noise on the expert's actions, which are then clipped to [-1, 1]."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the environment, such as image_size and video."""

    def check(self) -> None:
        """Raise if a value is invalid."""
        check_fields(self, transitions="[1, 1000000000]", seed=SEED, noise="[0, inf)")
        try:
            json.dumps(self.record(), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise GCBError(
                f"options is {short(dict(self.options))}; its values must be JSON values ({error})"
            ) from error

    def record(self) -> dict[str, Any]:
        """Return the configuration for the manifest; a directory of video clips is recorded by name, not by path."""
        options = dict(self.options)
        if isinstance(options.get("video"), str | os.PathLike):
            options["video"] = Path(os.path.abspath(options["video"])).name
        return {**asdict(self), "options": options}


class ExpertRunner:
    """Plays the episodes of a collection in one environment, each from its own seed."""

    def __init__(self, config: CollectConfig) -> None:
        # Imported here so that reading a dataset does not need a simulator.
        from gcb.envs import make_env
        from gcb.envs.expert import play_expert
        from gcb.envs.tabletop import RENDERER

        self.config, self.renderer = config, RENDERER
        self.env = make_env(config.env, **config.options)
        self.play = play_expert

    def run(self, index: int) -> Episode:
        """Play episode `index` with the expert's actions plus noise until it terminates or is truncated."""
        config = self.config
        observation, start = self.env.reset(seed=episode_seed("train", config.seed, index))
        rng = episode_noise("train", config.seed, index)
        steps = list(self.play(self.env, config.noise, rng, np.float32))
        return Episode(
            frames=np.stack([observation["observation"], *(step.observation["observation"] for step in steps)]),
            states=np.stack([start["state"], *(step.info["state"] for step in steps)]),
            actions=np.stack([step.action for step in steps]),
            rewards=np.array([step.reward for step in steps], np.float32),
            terminated=np.array([step.terminated for step in steps], bool),
            goal_frame=observation["desired_goal"],
            goal_state=start["goal_state"],
            task=start["task"],
            success=bool(steps[-1].info["success"]),
            scene=dict(flatten_scene(start["scene"])),
        )

    def close(self) -> None:
        self.env.close()


def flatten_scene(scene: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of a scene by name, such as ("cabinet_xy.0", 0.61).

    Lists of objects vary in length, so only their length is included; strings are skipped.
    """
    for key, value in scene.items():
        name = prefix + key
        if isinstance(value, Real | np.bool_):
            yield name, float(value)
        elif isinstance(value, Mapping):
            yield from flatten_scene(value, f"{name}.")
        elif isinstance(value, Sequence) and not isinstance(value, str):
            if value and all(isinstance(entry, Real) for entry in value):
                yield from ((f"{name}.{index}", float(entry)) for index, entry in enumerate(value))
            else:
                yield name, float(len(value))
