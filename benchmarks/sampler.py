"""Sampling a batch against copying as many random images in memory."""

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.rows import Row, interleaved
from gcb.data import Dataset, GoalSampling, Sampler, write_dataset

BATCH = 256
EPISODES, LENGTH = 200, 50
ROUNDS = 60


def run() -> list[Row]:
    """Compare sampling from memory maps with copying as many random images in memory, for groups of 1 and of 2."""
    data = _images()
    with tempfile.TemporaryDirectory() as directory:
        stored = write_dataset(data, Path(directory) / "data")
        return [_compare(stored, data, group_size) for group_size in (1, 2)]


def _compare(stored: Dataset, data: Dataset, group_size: int) -> Row:
    sampler = Sampler(stored, GoalSampling(), np.random.default_rng(0), group_size=group_size)
    count = BATCH + 3 * BATCH // group_size
    rng, into = np.random.default_rng(1), np.empty((count, *data.frames.shape[1:]), np.uint8)
    sampling, copying = interleaved(
        lambda: sampler.sample(BATCH, extra_frames=["initial_state"]),
        lambda: _copy(data.frames, rng.integers(len(data.frames), size=count), into),
        rounds=ROUNDS,
    )
    text = f"{1e3 * sampling:.2f} ms for {BATCH} states with s', g and s₀, {1e3 * copying:.2f} ms for the bare copy"
    return Row(f"sample / copy, groups of {group_size}", sampling / copying, 2.0, text)


def _copy(frames: np.ndarray, index: np.ndarray, into: np.ndarray) -> None:
    """Copy the fastest way in numpy: one call, into existing memory."""
    frames.take(index, axis=0, out=into, mode="clip")


def _images() -> Dataset:
    """Return ten thousand transitions with 64×64 images, 125 MB: more than a processor's cache."""
    rng = np.random.default_rng(0)
    frames = rng.integers(256, size=(EPISODES * (LENGTH + 2), 64, 64, 3), dtype=np.uint8)
    first = np.arange(EPISODES) * (LENGTH + 2)
    return Dataset.from_arrays(
        frames,
        rng.random((EPISODES * LENGTH, 5), np.float32),
        np.full(EPISODES, LENGTH),
        rewards=np.zeros(EPISODES * LENGTH, np.float32),
        episode_first_frame=first,
        episode_goal_frame=first + LENGTH + 1,
    )
