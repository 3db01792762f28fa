"""Fresh scenes for a test set: sampled with evaluation seeds, so no training set contains them."""

import hashlib
import io
import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from gcb.analysis.geometry import as_shown
from gcb.data.formats.npz import Archive
from gcb.data.rollout import flatten_scene
from gcb.envs import ENVS
from gcb.envs.spec import EnvSpec
from gcb.errors import GCBError
from gcb.utils.files import write_atomically
from gcb.utils.os_errors import explain_os_errors
from gcb.utils.progress import Progress
from gcb.utils.seeding import episode_noise, episode_seed
from gcb.utils.workers import run_in_order

CACHE_FILE, VERSION = "scenes.npz", 3
MAX_STEPS = 25
"""Largest number of steps to the intermediate frame: the mean length of the expert's episodes."""


@dataclass(frozen=True, eq=False)
class Scenes:
    """n scenes, one in each row: s, an intermediate frame, g, an analogous pair (s_a, g_a), and the hidden states."""

    state: np.ndarray
    """(n, H, W, 3) the first frame."""
    intermediate: np.ndarray
    """(n, H, W, 3) a frame of the noisy expert's episode, after a random number of steps."""
    goal: np.ndarray
    """(n, H, W, 3) the goal image."""
    example_state: np.ndarray
    """(n, H, W, 3) s_a"""
    example_goal: np.ndarray
    """(n, H, W, 3) g_a"""
    hidden_state: np.ndarray
    """(n, D)"""
    hidden_intermediate: np.ndarray
    """(n, D)"""
    hidden_goal: np.ndarray
    """(n, D) as the goal image shows it."""
    pose: np.ndarray
    """(n, 3) the cabinet's x, y and yaw."""
    task: np.ndarray
    """(n,) the task's name."""

    def __len__(self) -> int:
        return len(self.task)

    @property
    def frames(self) -> np.ndarray:
        """(3 n, H, W, 3) the test set: first frames, intermediate frames, goals; no frame of any example."""
        return np.concatenate([self.state, self.intermediate, self.goal])

    @property
    def hidden(self) -> np.ndarray:
        """(3 n, D) the hidden states of `frames`."""
        return np.concatenate([self.hidden_state, self.hidden_intermediate, self.hidden_goal])

    @property
    def scene(self) -> np.ndarray:
        """(3 n,) the scene of each of `frames`."""
        return np.tile(np.arange(len(self)), 3)


FIELDS = tuple(field.name for field in fields(Scenes))


@dataclass(frozen=True)
class SceneConfig:
    """Everything that determines the scenes of a test set, except their number."""

    env_spec: EnvSpec
    seed: int
    noise: float = 0.3


def fresh_scenes(config: SceneConfig, count: int, directory: Path, *, workers: int = 1, quiet: bool = False) -> Scenes:
    """Return the first `count` scenes, from the cache in `directory` if it has enough of them."""
    path, key = directory / CACHE_FILE, _cache_key(config)
    columns = _read_cache(path, key)
    if columns is None or len(columns["task"]) < count:
        SceneRunner(config).close()  # fail early, with a clear message instead of a dead worker
        rows: list[Mapping[str, Any]] = []
        results = run_in_order(SceneRunner, config, 0, min(workers, count))
        with closing(results), Progress("fresh scenes", count, "scenes", quiet=quiet) as bar:
            for row in islice(results, count):
                rows.append(row)
                bar.advance()
        columns = {name: np.stack([row[name] for row in rows]) for name in FIELDS}
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **{"key": np.array(key), **columns})  # pyright: ignore[reportArgumentType]
        with explain_os_errors(path):
            directory.mkdir(parents=True, exist_ok=True)
            write_atomically(path, buffer.getvalue())
    return Scenes(**{name: column[:count] for name, column in columns.items()})


class SceneRunner:
    """Builds scenes one after another, each from its own seed."""

    renderer = ""

    def __init__(self, config: SceneConfig) -> None:
        env = config.env_spec.env
        if env not in ENVS:
            raise GCBError(f"the agent's environment is {env!r}; fresh scenes need {' or '.join(ENVS)}")
        self.config, self.env = config, config.env_spec.make("strict")

    def run(self, index: int) -> dict[str, Any]:
        seed = self.config.seed
        observation, info = self.env.reset(seed=episode_seed("eval", seed, index))
        example, numbers = info["example"], dict(flatten_scene(info["scene"]))
        button_task = np.array([info["task"] == "button"])
        image, hidden = self._play(episode_noise("eval", seed, index))
        return {
            "state": observation["observation"],
            "intermediate": image,
            "goal": observation["desired_goal"],
            "example_state": example.state_image,
            "example_goal": example.goal_image,
            "hidden_state": info["state"],
            "hidden_intermediate": hidden,
            "hidden_goal": as_shown(info["goal_state"][None], info["state"][None], button_task)[0],
            "pose": np.array([numbers["cabinet_xy.0"], numbers["cabinet_xy.1"], numbers["cabinet_yaw"]]),
            "task": np.array(info["task"]),
        }

    def close(self) -> None:
        self.env.close()

    def _play(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Play the noisy expert for a random number of steps or until success; return image and hidden state."""
        from gcb.envs.expert import play_expert

        steps = int(rng.integers(1, MAX_STEPS + 1))
        env: Any = self.env.unwrapped
        for step in islice(play_expert(env, self.config.noise, rng), steps):
            if step.info["success"]:
                break
        return step.observation["observation"], step.info["state"]


def _cache_key(config: SceneConfig) -> str:
    """Return a hash that differs for another environment, seed or noise."""
    env_spec = config.env_spec
    values = {"env": env_spec.env, "options": dict(env_spec.options), "seed": config.seed, "noise": config.noise}
    text = json.dumps({**values, "version": VERSION}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _read_cache(path: Path, key: str) -> dict[str, np.ndarray] | None:
    """Return the cached columns; None if there are none, they are damaged, or they have another key."""
    try:
        archive = Archive(path)
        return {name: archive.array(name) for name in FIELDS} if str(archive.array("key")) == key else None
    except (GCBError, KeyError):
        return None
