"""Collecting: exact counts, reproducible bytes, and other directories left alone."""

from pathlib import Path

import numpy as np
import pytest
from helpers.counting_env import CountingRunner, collect_numbers, collected
from helpers.faults import files_of

from gcb.data import CollectConfig, collect, open_dataset
from gcb.errors import GCBError
from gcb.utils.files import directory_lock


def test_every_frame_is_where_the_index_says(tmp_path: Path) -> None:
    data = collected(tmp_path / "data", 12)  # lengths 3, 4 and 5 of 5: nothing is truncated

    assert data.episode_length.tolist() == [3, 4, 5]
    assert data.episode_first_frame.tolist() == [0, 5, 11]
    assert data.episode_goal_frame.tolist() == [4, 10, 17]
    assert data.frames[:, 0, 0, 0].tolist() == [0, 1, 2, 3, 255, 10, 11, 12, 13, 14, 255, 20, 21, 22, 23, 24, 25, 255]
    assert data.states is not None
    assert data.states[:, 0].tolist() == data.frames[:, 0, 0, 0].tolist()
    assert data.frame_of_transition.tolist() == [0, 1, 2, 5, 6, 7, 8, 11, 12, 13, 14, 15]
    assert data.rewards is not None
    assert np.flatnonzero(data.rewards).tolist() == [2, 11]
    assert np.flatnonzero(data.terminated).tolist() == [2, 11]
    assert data.episode_success is not None
    assert data.episode_success.tolist() == [True, False, True]
    assert data.task_names == ("button", "drawer")
    assert data.episode_task is not None
    assert data.episode_task.tolist() == [0, 1, 1]
    assert data.scene_names == ("opening", "bottom_open")
    assert data.episode_scene is not None
    assert data.episode_scene.tolist() == [[0, 0], [0.125, 1], [0.25, 0]]


@pytest.mark.parametrize("transitions", [1, 2, 3, 4, 12])
def test_the_number_of_transitions_is_exact(tmp_path: Path, transitions: int) -> None:
    data = collected(tmp_path / "data", transitions)
    assert data.transitions == transitions
    assert len(data.frames) == transitions + 2 * data.episodes


def test_a_truncated_episode_has_not_succeeded(tmp_path: Path) -> None:
    data = collected(tmp_path / "data", 2)  # episode 0 would succeed at its third transition
    assert data.episode_success is not None
    assert data.rewards is not None
    assert data.terminated.tolist() == [False, False]
    assert data.rewards.tolist() == [0, 0]
    assert data.episode_success.tolist() == [False]
    assert data.frames[:, 0, 0, 0].tolist() == [0, 1, 2, 255]


def test_workers_do_not_change_a_byte(tmp_path: Path) -> None:
    collect_numbers(tmp_path / "one", 60, workers=1)
    collect_numbers(tmp_path / "two", 60, workers=2)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")
    assert files_of(tmp_path / "one").keys() == {
        "manifest.json",
        *(f"{name}.npy" for name in open_dataset(tmp_path / "one").arrays()),
    }


def test_another_seed_gives_other_actions(tmp_path: Path) -> None:
    first, second = collected(tmp_path / "0", seed=0), collected(tmp_path / "1", seed=1)
    assert not np.array_equal(first.actions, second.actions)


def test_the_manifest_records_the_configuration(tmp_path: Path) -> None:
    manifest = collected(tmp_path / "data", 12, seed=7, side=3).manifest
    assert manifest["config"] == {
        "env": "counting", "transitions": 12, "seed": 7, "noise": 0.3, "options": {"side": 3},
    }  # fmt: skip
    assert manifest["renderer"] == "counting"
    assert manifest["versions"]["numpy"] == np.__version__
    assert manifest["counts"] == {"episodes": 3, "transitions": 12, "frames": 18}
    assert manifest["files"]["frames.npy"]["shape"] == [18, 3, 3, 3]


def test_the_manifest_records_a_clip_directory_by_name() -> None:
    assert CollectConfig(options={"video": "/home/someone/kinetics/"}).record()["options"] == {"video": "kinetics"}
    assert CollectConfig(options={"video": "builtin"}).record()["options"] == {"video": "builtin"}


def test_a_complete_dataset_is_left_alone(tmp_path: Path) -> None:
    first = collect_numbers(tmp_path / "data")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()}
    second = collect_numbers(tmp_path / "data")
    assert (first.start_transitions, second.start_transitions) == (0, 40)
    assert (second.episodes, second.transitions, second.successes) == (first.episodes, 40, first.successes)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()} == before


def test_another_dataset_is_not_overwritten(tmp_path: Path) -> None:
    collect_numbers(tmp_path / "data", seed=0)
    before = files_of(tmp_path / "data")
    with pytest.raises(GCBError, match="holds another dataset: seed is 0 there and 1 here"):
        collect_numbers(tmp_path / "data", seed=1)
    assert files_of(tmp_path / "data") == before


def test_a_directory_with_other_files_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("five years")
    with pytest.raises(GCBError, match=r"thesis\.tex"):
        collect_numbers(tmp_path)
    assert files_of(tmp_path) == {"thesis.tex": b"five years"}
    with pytest.raises(GCBError, match="is a file"):
        collect_numbers(tmp_path / "thesis.tex")


def test_a_directory_in_use_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with directory_lock(tmp_path / "data"), pytest.raises(GCBError, match="in use"):
        collect_numbers(tmp_path / "data")
    assert files_of(tmp_path / "data") == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"transitions": 0}, "transitions is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"noise": float("nan")}, "noise is nan"),
        ({"noise": -0.1}, "noise is -0.1"),
        ({"options": {"size": {1}}}, "options is"),
    ],
)
def test_invalid_settings_are_named(tmp_path: Path, change: dict, message: str) -> None:
    with pytest.raises(GCBError, match=message):
        collect(CollectConfig(**change), tmp_path / "data", make_runner=CountingRunner)
    with pytest.raises(GCBError, match="workers is 0"):
        collect(CollectConfig(), tmp_path / "data", workers=0, make_runner=CountingRunner)
    assert not (tmp_path / "data").exists()
