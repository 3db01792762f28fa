"""Appending episodes: optional fields may be missing, and all episodes must have the same layout."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gcb.data import Episode, open_dataset
from gcb.data.writer import EpisodeWriter
from gcb.errors import GCBError


def bare_episode(length: int) -> Episode:
    """Return an episode with vectors as frames, integer actions, and no goal, reward or task."""
    frames = np.arange(3 * (length + 1), dtype=np.float32).reshape(length + 1, 3)
    return Episode(frames=frames, actions=np.arange(length), terminated=np.zeros(length, bool))


def test_episodes_may_lack_goals_rewards_and_states(tmp_path: Path) -> None:
    with EpisodeWriter(tmp_path / "data", {"config": {}}) as writer:
        writer.append(bare_episode(2))
        writer.append(bare_episode(1))
        writer.finish({"config": {"source": "elsewhere"}})
    data = open_dataset(tmp_path / "data")
    assert data.verify()
    assert data.frames[:, 0].tolist() == [0, 3, 6, 0, 3]
    assert data.actions.tolist() == [0, 1, 0]
    assert data.episode_first_frame.tolist() == [0, 3]
    assert data.episode_goal_frame.tolist() == [-1, -1]
    assert data.rewards is data.states is data.episode_task is data.episode_scene is None
    assert data.config == {"source": "elsewhere"}


def test_an_episode_with_another_layout_is_rejected_and_the_others_kept(tmp_path: Path) -> None:
    first = bare_episode(2)
    for other, message in (
        (replace(first, frames=first.frames[:, :2]), "episode 1: frames is"),
        (replace(first, rewards=np.zeros(2)), "episode 1: rewards is"),
        (replace(first, scene={"opening": 0.5}), "episode 1: "),
    ):
        out = tmp_path / message / str(len(other.scene)) / str(other.frames.shape)
        with EpisodeWriter(out, {}) as writer:
            writer.append(first)
            with pytest.raises(GCBError, match=message):
                writer.append(other)
        with EpisodeWriter(out, {}) as writer:
            assert writer.saved == 2
            writer.finish({})
        assert open_dataset(out).transitions == 2


def test_a_truncated_episode_succeeds_only_if_its_last_reward_is_positive() -> None:
    episode = replace(bare_episode(4), rewards=np.array([0, 1, 0, 1], np.float32), success=True)
    assert [episode.truncate(length).success for length in (1, 2, 3, 4, 5)] == [False, True, False, True, True]
    assert episode.truncate(3).frames.shape == (4, 3)
    assert bare_episode(4).truncate(2).success is None
