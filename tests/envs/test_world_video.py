"""Video distractors: only what lies behind the scene changes, and it moves."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from gcb.envs import TabletopEnv, make_env
from gcb.envs.bullet import pybullet
from gcb.utils.media import write_video

HOLD = np.array([0, 0, 0, 0, -1.0])


@pytest.fixture(scope="module")
def video() -> Iterator[TabletopEnv]:
    env = make_env("gcb/ButtonDrawer-v0", video="builtin")
    yield env
    env.close()


def behind(env: TabletopEnv) -> np.ndarray:
    """Where the camera sees nothing but the table or the void."""
    seen = env._client.getCameraImage(64, 64, env._view, env._projection, renderer=pybullet.ER_TINY_RENDERER)[4]
    return np.isin(np.reshape(seen, (64, 64)), (-1, env._table))


def test_robot_cabinet_and_distractors_stay_in_front(video):
    """From the same scene, frames with and without video agree wherever anything stands, goal image included."""
    plain = make_env("gcb/ButtonDrawer-v0")
    with_video, _ = video.reset(seed=11)
    scene = video.scene
    assert len(scene.distractors) > 0
    without, _ = plain.reset(options={"scene": replace(scene, clip=None)})
    for step in range(12):
        mask = behind(video)
        assert 0.2 < mask.mean() < 0.95
        np.testing.assert_array_equal(with_video["observation"][~mask], without["observation"][~mask])
        assert (with_video["observation"][mask] != without["observation"][mask]).any(axis=-1).mean() > 0.9
        action = np.array([0.5, 0.5, -1.0 if step < 6 else 0.5, 0.2, 1.0])
        with_video, without = video.step(action)[0], plain.step(action)[0]
    same = (with_video["desired_goal"] == without["desired_goal"]).all(axis=-1)
    assert 0.05 < same.mean() < 0.8
    plain.close()


def test_the_background_moves_as_the_episode_goes(video):
    first, _ = video.reset(seed=11)
    mask = behind(video)
    frames = [first["observation"]] + [video.step(HOLD)[0]["observation"] for _ in range(10)]
    for before, after in itertools.pairwise(frames):
        assert (before[mask] != after[mask]).any(axis=-1).mean() > 0.5
    again, _ = video.reset(seed=11)
    np.testing.assert_array_equal(again["observation"], first["observation"])


def test_each_episode_and_each_example_has_its_clip(video):
    clips = []
    for seed in range(3):
        _, info = video.reset(seed=seed, options={"analogy": "strict"})
        clips += [video.scene.clip, info["example"].scene.clip]
        assert info["scene"]["clip"]["name"] == clips[-2].name
    assert len(set(clips)) == 6


def test_training_and_evaluation_clips_differ():
    """The same seed gives the same scene before another picture."""
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


def test_own_clips_from_a_folder(tmp_path):
    """A folder of two solid clips: the background is the colour of the split's own one."""
    for name, color in (("train", (200, 40, 40)), ("eval", (40, 40, 200))):
        write_video(tmp_path / name / "clip.mp4", np.full((30, 64, 64, 3), color, np.uint8), fps=24)
    for split, channel in (("train", 0), ("eval", 2)):
        env = make_env("gcb/Drawer-v0", video=tmp_path, video_split=split)
        observation, _ = env.reset(seed=0)
        color = observation["observation"][behind(env)].mean(axis=0)
        assert color.argmax() == channel
        assert color[channel] > 180
        env.close()
