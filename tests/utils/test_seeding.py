"""Seeds of episodes never change, are all different, and are not shared by training and evaluation."""

import pytest

from gcb.errors import GCBError
from gcb.utils.seeding import episode_noise, episode_seed


def test_training_and_evaluation_never_share_a_seed() -> None:
    train = {episode_seed("train", seed, index) for seed in range(20) for index in range(50)}
    evaluation = {episode_seed("eval", seed, index) for seed in range(20) for index in range(50)}
    assert len(train) == len(evaluation) == 1000
    assert {seed % 2 for seed in train} == {0}
    assert {seed % 2 for seed in evaluation} == {1}
    assert max(train | evaluation) < 2**63


def test_seeds_never_change() -> None:
    """If these change, a published seed no longer gives the published dataset."""
    assert episode_seed("train", 0, 0) == 6375474603054492658
    assert episode_seed("eval", 0, 0) == 8227443068371210697
    assert episode_noise("train", 0, 0).integers(1000, size=3).tolist() == [802, 942, 5]


def test_noise_differs_between_episodes_and_streams() -> None:
    draws = {episode_noise(stream, 0, index).random() for stream in ("train", "eval") for index in range(50)}
    assert len(draws) == 100


def test_invalid_seeds_are_named() -> None:
    with pytest.raises(GCBError, match="no stream of seeds 'test'; accepted: train, eval"):
        episode_seed("test", 0, 0)
    with pytest.raises(GCBError, match="seed is -1"):
        episode_seed("train", -1, 0)
