"""Episodes of the real environments, as a collection plays them."""

from pathlib import Path

import numpy as np
import pytest
from helpers.faults import files_of

from gcb.data import CollectConfig, collect, open_dataset
from gcb.data.rollout import ExpertRunner, flatten_scene
from gcb.errors import GCBError
from gcb.utils.seeding import episode_noise, episode_seed

pytest.importorskip("pybullet")

SMALL = {"image_size": 16, "video": None}


def test_workers_do_not_change_a_byte_of_an_environment(tmp_path: Path) -> None:
    config = CollectConfig("gcb/ButtonDrawer-v0", transitions=150, seed=5, options=SMALL)
    collect(config, tmp_path / "one", workers=1, quiet=True)
    collect(config, tmp_path / "two", workers=2, quiet=True)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")
    data = open_dataset(tmp_path / "one")
    assert data.transitions == 150
    assert data.frames.shape[1:] == (16, 16, 3)
    assert data.manifest["renderer"] == "tiny"


def test_an_episode_is_the_noisy_expert_from_its_own_seed() -> None:
    """Replaying the stored actions from the episode's seed reproduces its frames, states and rewards."""
    runner = ExpertRunner(CollectConfig("gcb/ButtonDrawer-v0", seed=3, options=SMALL))
    runner.run(0)  # an earlier episode must not matter
    episode = runner.run(1)
    env = runner.env
    observation, info = env.reset(seed=episode_seed("train", 3, 1))
    assert episode.states is not None
    assert episode.rewards is not None
    np.testing.assert_array_equal(episode.goal_frame, observation["desired_goal"])
    np.testing.assert_array_equal(episode.goal_state, info["goal_state"])
    assert episode.task == info["task"]
    for step, action in enumerate(episode.actions):
        np.testing.assert_array_equal(episode.frames[step], observation["observation"])
        np.testing.assert_array_equal(episode.states[step], info["state"])
        observation, reward, terminated, _, info = env.step(action)
        assert (episode.rewards[step], episode.terminated[step]) == (reward, terminated)
    np.testing.assert_array_equal(episode.frames[-1], observation["observation"])
    assert episode.success == info["success"] == bool(episode.rewards[-1])
    runner.close()


def test_the_noise_has_the_configured_scale() -> None:
    """The first actions with and without noise differ by exactly the episode's own samples."""
    noise = episode_noise("train", 0, 0).standard_normal(5)
    noise_free, noisy = (
        ExpertRunner(CollectConfig("gcb/Drawer-v0", noise=scale, options=SMALL)) for scale in (0.0, 0.3)
    )
    expected = np.clip(noise_free.run(0).actions[0] + 0.3 * noise, -1, 1)
    np.testing.assert_allclose(noisy.run(0).actions[0], expected, rtol=1e-6)
    noise_free.close()
    noisy.close()


def test_scenes_are_flattened_to_numbers() -> None:
    scene = {
        "task": "drawer",
        "cabinet_xy": (0.5, -0.25),
        "bottom_open": np.bool_(True),
        "colors": {"frame": (0.1, 0.2, 0.3)},
        "distractors": [{"shape": 3}, {"shape": 4}],
        "clip": None,
    }
    assert dict(flatten_scene(scene)) == {
        "cabinet_xy.0": 0.5,
        "cabinet_xy.1": -0.25,
        "bottom_open": 1.0,
        "colors.frame.0": 0.1,
        "colors.frame.1": 0.2,
        "colors.frame.2": 0.3,
        "distractors": 2.0,
    }


@pytest.mark.parametrize(
    ("env", "options", "message"),
    [
        ("gcb/Kitchen-v0", {}, "'gcb/Kitchen-v0'.*gcb/Drawer-v0, gcb/ButtonDrawer-v0"),
        ("gcb/Drawer-v0", {"colour": "red"}, "unexpected keyword argument 'colour'"),
        ("gcb/Drawer-v0", {"task": "button"}, "task is 'button'"),
    ],
)
def test_unknown_envs_and_options_fail_before_anything_is_written(
    tmp_path: Path, env: str, options: dict, message: str
) -> None:
    with pytest.raises(GCBError, match=message):
        collect(CollectConfig(env, options=options), tmp_path / "data", quiet=True)
    assert not (tmp_path / "data").exists()
