"""Fresh scenes: of seeds that no training set uses, kept, and made anew when what was kept is of no use."""

from pathlib import Path

import numpy as np
import pytest

from gcb.analysis import scenes as module
from gcb.analysis.geometry import openings
from gcb.analysis.scenes import KEPT, Job, Scenes, fresh_scenes
from gcb.envs.spec import EnvSpec
from gcb.errors import GCBError
from gcb.utils.seeding import episode_seed

WORLD = EnvSpec("gcb/ButtonDrawer-v0", {"image_size": 16})
JOB = Job(WORLD, seed=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scenes")


@pytest.fixture(scope="module")
def scenes(folder: Path) -> Scenes:
    return fresh_scenes(JOB, 3, folder, quiet=True)


def test_a_scene_is_that_of_its_evaluation_seed(scenes: Scenes) -> None:
    env = WORLD.make("strict")
    observation, info = env.reset(seed=episode_seed("eval", 5, 1))
    env.close()
    np.testing.assert_array_equal(scenes.state[1], observation["observation"])
    np.testing.assert_array_equal(scenes.goal[1], observation["desired_goal"])
    np.testing.assert_array_equal(scenes.example_goal[1], info["example"].goal_image)
    np.testing.assert_array_equal(scenes.hidden_goal[1][:14], info["goal_state"][:14])
    assert scenes.task[1] == info["task"]
    assert scenes.pose[1].tolist() == [*info["scene"]["cabinet_xy"], info["scene"]["cabinet_yaw"]]
    np.testing.assert_allclose(openings(scenes.hidden_state, scenes.pose)[1, 0], info["scene"]["opening"], atol=1e-4)


def test_the_button_is_pressed_only_where_the_picture_shows_it(scenes: Scenes) -> None:
    pressed = scenes.hidden_goal[:, 14] < -0.145
    np.testing.assert_array_equal(pressed, scenes.task == "button")
    assert len(set(scenes.task)) == 2


def test_the_test_set_is_three_frames_of_each_scene(scenes: Scenes) -> None:
    assert scenes.frames.shape == (9, 16, 16, 3)
    assert scenes.scene.tolist() == [0, 1, 2] * 3
    np.testing.assert_array_equal(scenes.frames[6:], scenes.goal)
    np.testing.assert_array_equal(scenes.hidden[3:6], scenes.hidden_between)
    assert (scenes.between != scenes.state).any(axis=(1, 2, 3)).all()


def test_what_was_kept_is_not_made_again(scenes: Scenes, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SceneRunner", None)
    for count in (3, 2):
        kept = fresh_scenes(JOB, count, folder, quiet=True)
        assert len(kept) == count
        np.testing.assert_array_equal(
            kept.frames,
            np.concatenate([scenes.state, scenes.between, scenes.goal])[np.flatnonzero(scenes.scene < count)],
        )


class Marked:
    """In the place of the world: scenes that are known to be new."""

    renderer = ""

    def __init__(self, job: Job) -> None:
        self.job = job

    def run(self, index: int) -> dict[str, np.ndarray]:
        row = dict.fromkeys(Scenes.__dataclass_fields__, np.array(index))
        return {**row, "task": np.array("drawer"), "pose": np.zeros(3)}

    def close(self) -> None:
        pass


@pytest.mark.parametrize("fault", ["cut", "not a file of ours", "another seed", "too few", "missing"])
def test_what_is_of_no_use_is_made_anew(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SceneRunner", Marked)
    path = tmp_path / KEPT
    job = Job(WORLD, seed=6) if fault == "another seed" else JOB
    if fault != "missing":
        fresh_scenes(job, 1 if fault == "too few" else 2, tmp_path, quiet=True)
    if fault == "cut":
        path.write_bytes(path.read_bytes()[:-30])
    if fault == "not a file of ours":
        path.write_bytes(b"hello")
    found = fresh_scenes(JOB, 2, tmp_path, quiet=True)
    assert found.state.tolist() == [0, 1]
    assert [one.name for one in tmp_path.iterdir()] == [KEPT]
    monkeypatch.setattr(module, "SceneRunner", None)
    assert len(fresh_scenes(JOB, 2, tmp_path, quiet=True)) == 2


def test_other_worlds_have_no_fresh_scenes(tmp_path: Path) -> None:
    with pytest.raises(GCBError, match=r"fresh scenes are made in gcb/Drawer-v0 or .*; the agent's world is 'mine'"):
        fresh_scenes(Job(EnvSpec("mine"), 0), 2, tmp_path, quiet=True)
    assert not list(tmp_path.iterdir())
