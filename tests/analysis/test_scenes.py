"""Fresh scenes: from evaluation seeds, cached, and built again if the cache is unusable."""

from pathlib import Path

import numpy as np
import pytest

from gcb.analysis import scenes as module
from gcb.analysis.geometry import openings
from gcb.analysis.scenes import CACHE_FILE, SceneConfig, Scenes, fresh_scenes
from gcb.envs.spec import EnvSpec
from gcb.errors import GCBError
from gcb.utils.seeding import episode_seed

ENV_SPEC = EnvSpec("gcb/ButtonDrawer-v0", {"image_size": 16})
CONFIG = SceneConfig(ENV_SPEC, seed=5)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scenes")


@pytest.fixture(scope="module")
def scenes(directory: Path) -> Scenes:
    return fresh_scenes(CONFIG, 3, directory, quiet=True)


def test_a_scene_matches_its_evaluation_seed(scenes: Scenes) -> None:
    env = ENV_SPEC.make("strict")
    observation, info = env.reset(seed=episode_seed("eval", 5, 1))
    env.close()
    np.testing.assert_array_equal(scenes.state[1], observation["observation"])
    np.testing.assert_array_equal(scenes.goal[1], observation["desired_goal"])
    np.testing.assert_array_equal(scenes.example_goal[1], info["example"].goal_image)
    np.testing.assert_array_equal(scenes.hidden_goal[1][:14], info["goal_state"][:14])
    assert scenes.task[1] == info["task"]
    assert scenes.pose[1].tolist() == [*info["scene"]["cabinet_xy"], info["scene"]["cabinet_yaw"]]
    np.testing.assert_allclose(openings(scenes.hidden_state, scenes.pose)[1, 0], info["scene"]["opening"], atol=1e-4)


def test_the_button_is_pressed_only_if_the_image_shows_it(scenes: Scenes) -> None:
    pressed = scenes.hidden_goal[:, 14] < -0.145
    np.testing.assert_array_equal(pressed, scenes.task == "button")
    assert len(set(scenes.task)) == 2


def test_the_test_set_has_three_frames_of_each_scene(scenes: Scenes) -> None:
    assert scenes.frames.shape == (9, 16, 16, 3)
    assert scenes.scene.tolist() == [0, 1, 2] * 3
    np.testing.assert_array_equal(scenes.frames[6:], scenes.goal)
    np.testing.assert_array_equal(scenes.hidden[3:6], scenes.hidden_intermediate)
    assert (scenes.intermediate != scenes.state).any(axis=(1, 2, 3)).all()


def test_cached_scenes_are_not_built_again(scenes: Scenes, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SceneRunner", None)
    for count in (3, 2):
        cached = fresh_scenes(CONFIG, count, directory, quiet=True)
        assert len(cached) == count
        np.testing.assert_array_equal(
            cached.frames,
            np.concatenate([scenes.state, scenes.intermediate, scenes.goal])[np.flatnonzero(scenes.scene < count)],
        )


class FakeRunner:
    """Builds scenes without a simulator."""

    renderer = ""

    def __init__(self, config: SceneConfig) -> None:
        self.config = config

    def run(self, index: int) -> dict[str, np.ndarray]:
        row = dict.fromkeys(Scenes.__dataclass_fields__, np.array(index))
        return {**row, "task": np.array("drawer"), "pose": np.zeros(3)}

    def close(self) -> None:
        pass


@pytest.mark.parametrize("fault", ["truncated", "not an archive", "another seed", "too few", "missing"])
def test_an_unusable_cache_is_built_again(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SceneRunner", FakeRunner)
    path = tmp_path / CACHE_FILE
    config = SceneConfig(ENV_SPEC, seed=6) if fault == "another seed" else CONFIG
    if fault != "missing":
        fresh_scenes(config, 1 if fault == "too few" else 2, tmp_path, quiet=True)
    if fault == "truncated":
        path.write_bytes(path.read_bytes()[:-30])
    if fault == "not an archive":
        path.write_bytes(b"hello")
    scenes = fresh_scenes(CONFIG, 2, tmp_path, quiet=True)
    assert scenes.state.tolist() == [0, 1]
    assert [file.name for file in tmp_path.iterdir()] == [CACHE_FILE]
    monkeypatch.setattr(module, "SceneRunner", None)
    assert len(fresh_scenes(CONFIG, 2, tmp_path, quiet=True)) == 2


def test_other_environments_have_no_fresh_scenes(tmp_path: Path) -> None:
    with pytest.raises(GCBError, match=r"environment is 'mine'; .* gcb/Drawer-v0 or"):
        fresh_scenes(SceneConfig(EnvSpec("mine"), 0), 2, tmp_path, quiet=True)
    assert not list(tmp_path.iterdir())
