"""Datasets in memory and on disk: lossless round trips, and errors that name the damaged file."""

import json
import os
import resource
from pathlib import Path

import numpy as np
import pytest
from helpers.by_hand import two_episodes
from helpers.faults import files_of, run_forked

from gcb.data import Dataset, open_dataset, write_dataset
from gcb.data.format import HEADER_BYTES, npy_header
from gcb.errors import GCBError
from gcb.utils.text_files import read_json


def test_the_index() -> None:
    data = two_episodes()
    assert (data.episodes, data.transitions) == (2, 5)
    assert data.first_transition.tolist() == [0, 3]
    assert data.episode_of_transition.tolist() == [0, 0, 0, 1, 1]
    assert data.frame_of_transition.tolist() == [0, 1, 2, 5, 6]


def test_defaults_of_optional_fields() -> None:
    data = Dataset.from_arrays(np.zeros((7, 4)), np.zeros((5, 1)), [3, 2])
    assert data.episode_first_frame.tolist() == [0, 4]
    assert data.episode_goal_frame.tolist() == [-1, -1]
    assert not data.terminated.any()
    assert data.rewards is None
    assert data.states is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rewards": [0, 0, 1]}, "rewards has 3 rows, but there are 5 transitions"),
        ({"episode_goal_frame": [4]}, "episode_goal_frame has 1 rows, but there are 2 episodes"),
        ({"episode_length": [3, 1]}, "episode_length .* 5 transitions.* 1, its sum 4"),
        ({"episode_length": [5, 0]}, "episode_length .*minimum is 0"),
        ({"episode_first_frame": [0, 7]}, "episode_first_frame .* 9 frames"),
        ({"episode_goal_frame": [4, 9]}, "episode_goal_frame .*-1 … 8; .*4 … 9"),
        ({"episode_task": [0, 1], "task_names": ("drawer",)}, "episode_task .* 1 task names"),
        ({"episode_scene": [[1.0], [2.0]]}, r"shape \(2, 1\) for 0 scene names"),
        ({"colour": 3}, "no field colour"),
        ({"actions": np.zeros((0, 1)), "terminated": [], "rewards": []}, "is empty"),
    ],
)
def test_inconsistent_arrays_are_named(changes: dict, message: str) -> None:
    with pytest.raises(GCBError, match=message):
        two_episodes(**changes)


def test_a_written_dataset_opens_unchanged(tmp_path: Path) -> None:
    data = two_episodes(
        episode_task=[0, 1], task_names=("drawer", "button"), episode_scene=[[0.5], [1.5]], scene_names=("opening",),
        episode_success=[True, False], states=np.arange(18).reshape(9, 2), config={"source": "by hand"},
    )  # fmt: skip
    opened = write_dataset(data, tmp_path / "new" / "data")
    assert data.arrays().keys() == opened.arrays().keys()
    for name, array in data.arrays().items():
        assert isinstance(opened.arrays()[name], np.memmap)
        np.testing.assert_array_equal(opened.arrays()[name], array)
        assert opened.arrays()[name].dtype == array.dtype
    assert (opened.task_names, opened.scene_names, opened.config) == (data.task_names, data.scene_names, data.config)
    assert len(opened.verify()) == 11
    assert os.listdir(tmp_path / "new") == ["data"]
    preloaded = open_dataset(tmp_path / "new" / "data", preload=True)
    assert not isinstance(preloaded.frames, np.memmap)


def test_frames_may_be_vectors_of_any_dtype(tmp_path: Path) -> None:
    frames = np.linspace(0, 1, 9 * 4).reshape(9, 4)
    opened = write_dataset(two_episodes(frames=frames), tmp_path / "data")
    assert opened.frames.dtype == np.float64
    np.testing.assert_array_equal(opened.frames, frames)


def test_headers_have_the_same_length_for_any_number_of_rows() -> None:
    for rows in (0, 1, 10**15):
        assert len(npy_header(np.dtype(np.uint8), (rows, 64, 64, 3))) == HEADER_BYTES
    with pytest.raises(GCBError, match="too many axes"):
        npy_header(np.dtype(np.uint8), (10**9,) * 10)


def test_only_an_empty_directory_may_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write_dataset(two_episodes(), tmp_path / "empty")
    before = files_of(tmp_path)
    with pytest.raises(GCBError, match="not an empty directory"):
        write_dataset(two_episodes(), tmp_path / "empty")
    assert files_of(tmp_path) == before


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    def limit_file_size() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, resource.RLIM_INFINITY))
        write_dataset(two_episodes(), tmp_path / "data")

    assert "data could not be written: File too large" in run_forked(limit_file_size).message
    assert os.listdir(tmp_path) == []


def test_a_killed_write_can_be_repeated(tmp_path: Path) -> None:
    (tmp_path / ".data.partial").mkdir()
    (tmp_path / ".data.partial" / "frames.npy").write_bytes(b"half")
    write_dataset(two_episodes(), tmp_path / "data").verify()
    assert os.listdir(tmp_path) == ["data"]


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    write_dataset(two_episodes(), tmp_path / "data")
    return tmp_path / "data"


def test_a_truncated_file_is_found_on_opening(stored: Path) -> None:
    os.truncate(stored / "frames.npy", 150)
    with pytest.raises(GCBError, match=r"frames\.npy has 150 bytes, its manifest says 236"):
        open_dataset(stored)


def test_a_changed_byte_is_found_by_verify(stored: Path) -> None:
    content = bytearray((stored / "actions.npy").read_bytes())
    content[-1] ^= 1
    (stored / "actions.npy").write_bytes(content)
    data = open_dataset(stored)
    with pytest.raises(GCBError, match=r"damaged: actions\.npy differs"):
        data.verify()


def test_a_changed_header_is_found_on_opening(stored: Path) -> None:
    content = (stored / "rewards.npy").read_bytes()
    (stored / "rewards.npy").write_bytes(content.replace(b"<f4", b"<i4"))
    with pytest.raises(GCBError, match=r"rewards\.npy holds <i4 \[5\], its manifest says <f4 \[5\]"):
        open_dataset(stored)
    (stored / "rewards.npy").write_bytes(bytes(len(content)))
    with pytest.raises(GCBError, match=r"rewards\.npy could not be read"):
        open_dataset(stored)


def test_a_missing_file_is_named(stored: Path) -> None:
    (stored / "terminated.npy").unlink()
    with pytest.raises(GCBError, match=r"terminated\.npy is missing"):
        open_dataset(stored)


def edit_manifest(path: Path, **changes) -> None:
    manifest = read_json(path / "manifest.json")
    (path / "manifest.json").write_text(json.dumps({**manifest, **changes}))


def test_an_invalid_manifest_is_named(stored: Path, tmp_path: Path) -> None:
    with pytest.raises(GCBError, match="is not a directory"):
        open_dataset(tmp_path / "nowhere")
    with pytest.raises(GCBError, match=r"has no manifest\.json"):
        open_dataset(tmp_path)
    edit_manifest(stored, version=2)
    with pytest.raises(GCBError, match="format version 2; this gcb reads version 1"):
        open_dataset(stored)
    edit_manifest(stored, version=1, format="other")
    with pytest.raises(GCBError, match="format is not 'gcb-dataset'"):
        open_dataset(stored)
    edit_manifest(stored, format="gcb-dataset", files={})
    with pytest.raises(GCBError, match="does not list"):
        open_dataset(stored)
    edit_manifest(stored, files=None)
    with pytest.raises(GCBError, match=r"manifest\.json is damaged: files is None; accepted: a mapping"):
        open_dataset(stored)
    (stored / "manifest.json").write_text("{")
    with pytest.raises(GCBError, match="not readable JSON"):
        open_dataset(stored)


def test_a_dataset_in_memory_cannot_be_verified() -> None:
    with pytest.raises(GCBError, match="in memory"):
        two_episodes().verify()


def test_a_dataset_shows_what_it_is(stored: Path) -> None:
    dataset = open_dataset(stored)
    assert repr(dataset).startswith(
        f"<Dataset {stored}: {dataset.transitions} transitions, {dataset.episodes} episodes, "
    )
    assert repr(two_episodes()).startswith("<Dataset in memory: ")
