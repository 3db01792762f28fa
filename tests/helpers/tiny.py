"""A dataset and a configuration so small that a whole training run takes a second."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gcb.data import Dataset, write_dataset
from gcb.runs.config import TrainConfig, make_config

SIZE = 32


def tiny_dataset(episodes: int = 6, size: int = SIZE, actions: int = 2, seed: int = 0) -> Dataset:
    """Episodes that move a bright bar in a noisy image to the goal's position; action 0 is the direction."""
    rng = np.random.default_rng(seed)
    frames, moves, rewards, first, goals, lengths = [], [], [], [], [], []
    for _ in range(episodes):
        position, goal = rng.permutation(size - 4)[:2]
        steps = int(abs(position - goal))
        first.append(len(frames))
        for _ in range(steps):
            frames.append(bar_image(rng, position, size))
            direction = np.sign(goal - position)
            moves.append([float(direction), *rng.uniform(-1, 1, actions - 1)])
            position += direction
            rewards.append(float(position == goal))
        frames += [bar_image(rng, position, size), bar_image(rng, goal, size)]
        goals.append(len(frames) - 1)
        lengths.append(steps)
    return Dataset.from_arrays(
        np.stack(frames),
        np.array(moves, np.float32),
        lengths,
        rewards=np.array(rewards),
        terminated=np.array(rewards, bool),
        episode_first_frame=first,
        episode_goal_frame=goals,
        episode_success=np.ones(episodes, bool),
    )


def bar_image(rng: np.random.Generator, position: int, size: int) -> np.ndarray:
    image = rng.integers(0, 100, size=(size, size, 3), dtype=np.uint8)
    image[:, position : position + 4] += 150
    return image


def tiny_config(method: str = "gcb", **changes: Any) -> TrainConfig[Any]:
    """Return the configuration of a run of twelve steps; nested settings are mappings."""
    defaults: Mapping[str, Any] = {"steps": 12, "batch_size": 8, "log_every": 4, "checkpoint_every": 5, "device": "cpu"}
    return make_config(method, "smoke", {**defaults, **changes})


def write_tiny_dataset(path: Path, **settings: Any) -> Path:
    """Write a tiny dataset to `path`/data and return its directory."""
    write_dataset(tiny_dataset(**settings), path / "data")
    return path / "data"
