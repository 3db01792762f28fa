"""Video backgrounds: they replace only what is behind the scene, and they move."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from gcb.envs import make_env
from gcb.envs.bullet import pybullet
from gcb.envs.tabletop import TabletopEnv
from gcb.utils.media import write_video

HOLD = np.array([0, 0, 0, 0, -1.0])


@pytest.fixture(scope="module")
def video_env() -> Iterator[TabletopEnv]:
    env = make_env("gcb/ButtonDrawer-v0", video="builtin")
    yield env
    env.close()


def background_mask(env: TabletopEnv) -> np.ndarray:
    """Return the pixels where the camera sees only the table or nothing."""
    bodies = env._client.getCameraImage(64, 64, env._view, env._projection, renderer=pybullet.ER_TINY_RENDERER)[4]
    return np.isin(np.reshape(bodies, (64, 64)), (-1, env._table))


def test_robot_cabinet_and_distractors_stay_in_front(video_env):
    """In the same scene, frames with and without video agree on the foreground, also in the goal image."""
    no_video = make_env("gcb/ButtonDrawer-v0")
    with_video, _ = video_env.reset(seed=11)
    scene = video_env.scene
    assert len(scene.distractors) > 0
    without, _ = no_video.reset(options={"scene": replace(scene, clip=None)})
    for step in range(12):
        mask = background_mask(video_env)
        assert 0.2 < mask.mean() < 0.95
        np.testing.assert_array_equal(with_video["observation"][~mask], without["observation"][~mask])
        assert (with_video["observation"][mask] != without["observation"][mask]).any(axis=-1).mean() > 0.9
        action = np.array([0.5, 0.5, -1.0 if step < 6 else 0.5, 0.2, 1.0])
        with_video, without = video_env.step(action)[0], no_video.step(action)[0]
    same = (with_video["desired_goal"] == without["desired_goal"]).all(axis=-1)
    assert 0.05 < same.mean() < 0.8
    no_video.close()


def test_background_moves_during_an_episode(video_env):
    first, _ = video_env.reset(seed=11)
    mask = background_mask(video_env)
    frames = [first["observation"]] + [video_env.step(HOLD)[0]["observation"] for _ in range(10)]
    for before, after in itertools.pairwise(frames):
        assert (before[mask] != after[mask]).any(axis=-1).mean() > 0.5
    again, _ = video_env.reset(seed=11)
    np.testing.assert_array_equal(again["observation"], first["observation"])


def test_every_episode_and_example_has_its_own_clip(video_env):
    clips = []
    for seed in range(3):
        _, info = video_env.reset(seed=seed, options={"analogy": "strict"})
        clips += [video_env.scene.clip, info["example"].scene.clip]
        assert info["scene"]["clip"]["name"] == clips[-2].name
    assert len(set(clips)) == 6


def test_training_and_evaluation_clips_differ():
    """The same seed gives the same scene in front of another background."""
    names, frames = {}, {}
    for split in ("train", "eval"):
        env = make_env("gcb/Drawer-v0", video="builtin", video_split=split)
        names[split] = set()
        for seed in range(6):
            frames[split] = env.reset(seed=seed)[0]["observation"]
            assert env.scene.clip is not None
            names[split].add(env.scene.clip.name)
        env.close()
    assert len(names["train"]) > 1
    assert len(names["eval"]) > 1
    assert not names["train"] & names["eval"]
    assert (frames["train"] != frames["eval"]).any(axis=-1).mean() > 0.2


def test_clips_from_a_directory(tmp_path):
    """With one solid clip per split, the background has the colour of the split's clip."""
    for name, color in (("train", (200, 40, 40)), ("eval", (40, 40, 200))):
        write_video(tmp_path / name / "clip.mp4", np.full((30, 64, 64, 3), color, np.uint8), fps=24)
    for split, channel in (("train", 0), ("eval", 2)):
        env = make_env("gcb/Drawer-v0", video=tmp_path, video_split=split)
        observation, _ = env.reset(seed=0)
        color = observation["observation"][background_mask(env)].mean(axis=0)
        assert color.argmax() == channel
        assert color[channel] > 180
        env.close()
