"""Seeds of episodes: each depends on nothing but its stream, the user's seed and its own number."""

import numpy as np

from gcb.errors import GCBError

STREAMS = {"train": 0, "eval": 1}


def _sequence(stream: str, seed: int, index: int) -> np.random.SeedSequence:
    if stream not in STREAMS:
        raise GCBError(f"there is no stream of seeds {stream!r}; there are {', '.join(map(repr, STREAMS))}")
    if seed < 0 or index < 0:
        raise GCBError(f"seed and episode number must not be negative; they are {seed} and {index}")
    return np.random.SeedSequence([seed, index, STREAMS[stream]])


def episode_seed(stream: str, seed: int, index: int) -> int:
    """The seed to reset a world with.

    Its last bit is the stream, so that no evaluation ever meets a scene of any training set, whatever their seeds.
    """
    high, low = (int(word) for word in _sequence(stream, seed, index).generate_state(2))
    return ((high << 32 | low) >> 2 << 1) | STREAMS[stream]


def episode_noise(stream: str, seed: int, index: int) -> np.random.Generator:
    """The generator of what an agent adds to its actions in that episode."""
    return np.random.default_rng(_sequence(stream, seed, index).spawn(1)[0])
