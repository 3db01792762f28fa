"""Seeds of episodes, which depend only on the stream (train or eval), the user's seed and the episode's index."""

import numpy as np

from gcb.errors import lookup
from gcb.utils.dataclass_io import SEED, check_interval

STREAMS = {"train": 0, "eval": 1}


def _sequence(stream: str, seed: int, index: int) -> np.random.SeedSequence:
    check_interval("seed", seed, SEED)
    check_interval("the episode's index", index, "[0, inf)")
    return np.random.SeedSequence([seed, index, lookup(STREAMS, stream, "stream of seeds")])


def episode_seed(stream: str, seed: int, index: int) -> int:
    """Return the seed to reset the environment with.

    Its last bit is the stream, so that no evaluation scene ever occurs in a training set, whatever the user's seeds.
    """
    high, low = (int(word) for word in _sequence(stream, seed, index).generate_state(2))
    return ((high << 32 | low) >> 2 << 1) | STREAMS[stream]


def episode_noise(stream: str, seed: int, index: int) -> np.random.Generator:
    """Return the generator of the noise on an agent's actions in an episode."""
    return np.random.default_rng(_sequence(stream, seed, index).spawn(1)[0])
