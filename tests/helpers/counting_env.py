"""A world whose every byte can be worked out by hand, for tests of what writes and runs episodes.

Episode i has 3 + i % 4 transitions; frame t of it is full of (10 i + t) % 256 and its goal frame of 255.
It succeeds at its last transition unless i is odd. Options: `side` of the frames, `pause` in seconds, and `die_at`,
an episode at which a worker process dies.
"""

import multiprocessing
import os
import time
from pathlib import Path

import numpy as np

from gcb.data import CollectConfig, Collected, Dataset, Episode, collect, open_dataset
from gcb.utils.seeding import episode_noise


def length_of(index: int) -> int:
    return 3 + index % 4


class CountingRunner:
    renderer = "counting"

    def __init__(self, config: CollectConfig) -> None:
        self.config = config

    def run(self, index: int) -> Episode:
        options = self.config.options
        time.sleep(options.get("pause", 0))
        if options.get("die_at") == index and multiprocessing.parent_process() is not None:
            os._exit(1)
        length, side = length_of(index), options.get("side", 2)
        numbers = (10 * index + np.arange(length + 1)) % 256
        reached = np.arange(length) == (length - 1 if index % 2 == 0 else -1)
        return Episode(
            frames=np.broadcast_to(numbers[:, None, None, None], (length + 1, side, side, 3)).astype(np.uint8),
            states=np.stack([numbers, numbers / 2], axis=1).astype(np.float32),
            actions=episode_noise("train", self.config.seed, index).random((length, 5), np.float32),
            rewards=reached.astype(np.float32),
            terminated=reached,
            goal_frame=np.full((side, side, 3), 255, np.uint8),
            goal_state=np.array([255, 0], np.float32),
            task="button" if index % 3 == 0 else "drawer",
            success=bool(reached.any()),
            scene={"opening": index / 8, "bottom_open": float(index % 2)},
        )

    def close(self) -> None:
        pass


def collect_numbers(
    out: Path, transitions: int = 40, *, workers: int = 1, every: float = 0.0, seed: int = 0, **options
) -> Collected:
    """Collect from this world, making sure of every episode at once."""
    config = CollectConfig(env="counting", transitions=transitions, seed=seed, options=options)
    return collect(config, out, workers=workers, quiet=True, checkpoint_seconds=every, make_runner=CountingRunner)


def collected(out: Path, *arguments, **options) -> Dataset:
    collect_numbers(out, *arguments, **options)
    return open_dataset(out)
