"""A fake environment with known bytes, for tests that write and run episodes.

Episode i has 3 + i % 4 transitions. All pixels of its frame t are (10 i + t) % 256, those of its goal are 255.
Even episodes succeed at their last transition. Options: `side` of the frames, `pause` in seconds, and `die_at`,
an episode at which a worker process dies.
"""

import multiprocessing
import os
import time
from pathlib import Path

import numpy as np

from gcb.data import CollectConfig, CollectResult, Dataset, Episode, collect, open_dataset
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
        pixels = (10 * index + np.arange(length + 1)) % 256
        reached = np.arange(length) == (length - 1 if index % 2 == 0 else -1)
        return Episode(
            frames=np.broadcast_to(pixels[:, None, None, None], (length + 1, side, side, 3)).astype(np.uint8),
            states=np.stack([pixels, pixels / 2], axis=1).astype(np.float32),
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
    out: Path, transitions: int = 40, *, workers: int = 1, checkpoint_seconds: float = 0.0, seed: int = 0, **options
) -> CollectResult:
    """Collect from this environment with a checkpoint after every episode."""
    config = CollectConfig(env="counting", transitions=transitions, seed=seed, options=options)
    return collect(
        config, out, workers=workers, quiet=True, checkpoint_seconds=checkpoint_seconds, make_runner=CountingRunner
    )


def collected(out: Path, *arguments, **options) -> Dataset:
    collect_numbers(out, *arguments, **options)
    return open_dataset(out)
