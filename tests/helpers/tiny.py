"""A dataset and a configuration small enough that a whole training run takes a second."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gcb.data import Dataset, open_dataset, write_dataset
from gcb.runs.config import TrainConfig, make_config

SIZE = 32


def tiny_dataset(episodes: int = 6, size: int = SIZE, actions: int = 2, seed: int = 0) -> Dataset:
    """Episodes that move a bright bar in a noisy image to the goal's position; action 0 is the direction."""
    rng = np.random.default_rng(seed)
    frames, moves, rewards, first, goals, lengths = [], [], [], [], [], []
    for _ in range(episodes):
        place, goal = rng.permutation(size - 4)[:2]
        steps = int(abs(place - goal))
        first.append(len(frames))
        for _ in range(steps):
            frames.append(picture(rng, place, size))
            direction = np.sign(goal - place)
            moves.append([float(direction), *rng.uniform(-1, 1, actions - 1)])
            place += direction
            rewards.append(float(place == goal))
        frames += [picture(rng, place, size), picture(rng, goal, size)]
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
    )


def picture(rng: np.random.Generator, place: int, size: int) -> np.ndarray:
    image = rng.integers(0, 100, size=(size, size, 3), dtype=np.uint8)
    image[:, place : place + 4] += 150
    return image


def tiny_config(method: str = "gcb", **changes: Any) -> TrainConfig[Any]:
    """A run of twelve steps; nested settings are given as mappings."""
    defaults: Mapping[str, Any] = {"steps": 12, "batch_size": 8, "log_every": 4, "checkpoint_every": 5, "device": "cpu"}
    return make_config(method, "smoke", {**defaults, **changes})


def tiny_data_folder(folder: Path, **settings: Any) -> Path:
    """A tiny dataset on disk."""
    return open_dataset(write_dataset(tiny_dataset(**settings), folder / "data").path or folder).path or folder
