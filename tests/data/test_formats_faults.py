"""Invalid and damaged sources are refused before anything is written; tests/faults has malicious ones."""

import io
import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_formats import ogbench_file, trajectories

from gcb.data import Dataset, ImportOptions, export_data, from_episodes, import_data
from gcb.data.writer import EpisodeWriter
from gcb.errors import GCBError

minari = pytest.importorskip("minari")

RNG = np.random.default_rng(0)


def assert_refused(source: Path, message: str, **options: Any) -> None:
    """Check that the import fails with this message and leaves no files."""
    before = sorted(source.parent.iterdir())
    with pytest.raises(GCBError, match=message):
        import_data(source, source.parent / "out", ImportOptions(**options), quiet=True)
    assert sorted(source.parent.iterdir()) == before


@pytest.fixture
def source_file(tmp_path: Path) -> Path:
    return ogbench_file(tmp_path / "in.npz", trajectories(np.random.default_rng(0), (3, 2), vectors=True))


def arrays_of(path: Path) -> dict[str, Any]:
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def with_nan(array: np.ndarray) -> np.ndarray:
    array[4, 1] = np.nan
    return array


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("actions", lambda a: a[:-1], r"different lengths: observations \(7, 4\), actions \(6, 2\), terminals \(7,\)"),
        ("actions", lambda a: a[:, 0], r"actions are float32 \(3,\); accepted: floating point \(T, A\)"),
        ("actions", lambda a: a.astype(int), "actions are int64"),
        ("actions", lambda a: 3 * a, "largest action is 2.*; accepted: "),
        ("actions", with_nan, r"trajectory 1 of .*actions is nan at \(0, 1\); accepted: finite"),
        ("observations", with_nan, r"observations is nan at \(0, 1\)"),
        ("observations", lambda a: a.astype(np.int32), r"observations are int32 \(4, 4\); accepted: uint8"),
        ("observations", lambda a: a[:, None, None, None], r"observations are float32 \(4, 1, 1, 1, 4\)"),
        ("terminals", lambda a: 0 * a, "the last trajectory has no end"),
        ("terminals", lambda a: a + 1, "terminals are float32"),
        ("terminals", lambda a: np.ones_like(a), "trajectory 0 has one observation"),
        ("terminals", lambda a: np.float32(1), "different lengths"),
    ],
)
def test_inconsistent_arrays(source_file: Path, name: str, change: Callable, message: str) -> None:
    arrays = arrays_of(source_file)
    np.savez(source_file, **{**arrays, name: change(arrays[name])})
    assert_refused(source_file, message)


def test_missing_or_unsuitable_input(source_file: Path, tmp_path: Path) -> None:
    arrays = arrays_of(source_file)
    np.savez(source_file, observations=arrays["observations"])
    assert_refused(source_file, "has no actions, terminals; it has observations")
    np.savez(source_file, **arrays, next_observations=arrays["observations"])
    assert_refused(source_file, "saved after loading")
    np.savez(source_file, **arrays, qpos=np.full((7, 1), 0.1))
    assert_refused(source_file, "qpos does not fit into single precision")
    np.savez(source_file, **arrays, rewards=np.full(7, np.nan))
    assert_refused(source_file, r"trajectory 0 of .*rewards is nan at \(0,\); accepted: finite")
    np.savez(source_file, **arrays, rewards=np.zeros(6))
    assert_refused(source_file, r"different lengths: .*rewards \(6,\)")
    np.savez(source_file, **arrays, masks=np.full(7, 0.5))
    assert_refused(source_file, r"masks are float64 \(7,\); accepted: \(N,\), 0 where a goal is reached")
    assert_refused(tmp_path / "nowhere.npz", "does not exist; accepted: an .npz file")
    (tmp_path / "empty").mkdir()
    assert_refused(tmp_path / "empty", r"has no \.npz file")
    assert_refused(source_file, "only Minari's and LeRobot's observations have names", observation="rgb")


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ("[" * 100_000, "gcb_about is not readable JSON"),
        ('{"config": {"noise": NaN}}', "'NaN' is not a finite number"),
        ('{"config": [1]}', r"gcb_about.config is \[1\]; accepted: a mapping"),
        ('{"config": {"env": 5}}', "gcb_about.config.env is 5; accepted: text"),
        ('{"config": {"action_bound": 0}}', "action_bound is 0; it must be above 0"),
        ('{"scene_names": 3}', "gcb_about.scene_names is 3; accepted: a list"),
    ],
)
def test_wrong_types_in_the_entries_of_gcb(source_file: Path, about: str, message: str) -> None:
    np.savez(source_file, **arrays_of(source_file), gcb_about=np.array(about))
    assert_refused(source_file, message)


def test_states_of_another_shape_are_not_exported(tmp_path: Path) -> None:
    dataset = from_episodes(trajectories(RNG, (2, 3), vectors=True))
    states = np.zeros((len(dataset.frames), 2), np.float32)
    for entry in (["a", [3], "<f4"], ["a", [2], "no"], ["a", [-2], "<f4"]):
        wrong = replace(dataset, states=states, config={"states": [entry]})
        with pytest.raises(GCBError, match="but the states have 2 columns"):
            export_data(wrong, tmp_path / "out.npz", quiet=True)
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_file(source_file: Path, fraction: float) -> None:
    os.truncate(source_file, int(fraction * source_file.stat().st_size))
    assert_refused(source_file, "is damaged or not an .npz file")


def test_every_flipped_bit_is_found_or_harmless(source_file: Path, tmp_path: Path) -> None:
    """A flipped bit gives an error or (for example in a date) the same dataset, never a different one."""
    good, content = import_data(source_file, tmp_path / "good", quiet=True).dataset, source_file.read_bytes()
    harmless = 0
    for offset in RNG.choice(len(content), 60, replace=False):
        damaged = bytearray(content)
        damaged[offset] ^= 1 << int(RNG.integers(8))
        source_file.write_bytes(bytes(damaged))
        try:
            imported = import_data(source_file, tmp_path / f"out{offset}", quiet=True).dataset
        except GCBError:
            assert not (tmp_path / f"out{offset}").exists()
            continue
        harmless += 1
        for name, array in good.arrays().items():
            np.testing.assert_array_equal(imported.arrays()[name], array)
    assert harmless < 40


def test_a_member_with_a_wrong_size(source_file: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    content = buffer.getvalue().replace(b"(3,)", b"(9,)")
    with zipfile.ZipFile(source_file, "a") as archive:
        archive.writestr("more.npy", content)
    assert_refused(source_file, r"more.npy has 152 bytes, its header says 200")
    with zipfile.ZipFile(source_file, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("actions.npy", buffer.getvalue())
    assert_refused(source_file, "more.npy has|holds actions twice")


def test_episodes_with_different_layouts() -> None:
    first, second = trajectories(RNG, (2, 3), vectors=True)
    for change, message in (
        ({"observations": np.zeros((4, 5))}, r"episode 1: frames is float64 \(5,\).* float32 \(4,\)"),
        ({"actions": np.zeros((3, 1), np.float32)}, r"actions is float32 \(1,\).* float32 \(2,\)"),
        ({"rewards": np.zeros(3)}, "rewards is float32 .* missing"),
        ({"success": True}, "episode_success is .* missing"),
        ({"actions": np.zeros((5, 2))}, "observations has 4 rows; 5 actions need 6"),
        ({"rewards": np.zeros(2)}, "rewards has 2 rows; 3 actions need 3"),
        ({"rewards": np.full(3, 7.0)}, "rewards range from 7 to 7"),
        ({"goal": np.zeros(3, np.float32)}, r"goal is float32 \(3,\); accepted: float32 \(4,\)"),
        ({"goal_state": np.zeros(2)}, "goal_state is float64"),
        ({"reward": np.zeros(3)}, "episode 1 has reward; accepted: observations, actions"),
        ({"observations": np.zeros((4, 3, 32, 32), np.uint8)}, "channels first"),
    ):
        with pytest.raises(GCBError, match=message):
            from_episodes([first, {**second, **change}])
    scenes = ({"x": 1.0, "y": 2.0}, {"y": 2.0, "x": 1.0})  # in another order, the columns would be swapped
    with pytest.raises(GCBError, match="scene names"):
        from_episodes([{**first, "scene": scenes[0]}, {**second, "scene": scenes[1]}])
    with pytest.raises(GCBError, match="there are no episodes"):
        from_episodes([])
    with pytest.raises(GCBError, match="episode 0 has no actions; it has observations"):
        from_episodes([{"observations": first["observations"]}])


def test_an_interrupted_import_resumes(source_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    complete = import_data(source_file, tmp_path / "complete", quiet=True).dataset
    real = EpisodeWriter.append

    def append(self: EpisodeWriter, episode: Any) -> None:
        if self.journal.episodes == 1:
            raise KeyboardInterrupt
        real(self, episode)

    with monkeypatch.context() as patch:
        patch.setattr(EpisodeWriter, "append", append)
        with pytest.raises(KeyboardInterrupt):
            import_data(source_file, tmp_path / "resumed", quiet=True)
    assert not (tmp_path / "resumed" / "manifest.json").exists()
    resumed = import_data(source_file, tmp_path / "resumed", quiet=True).dataset
    for name in resumed.manifest["files"]:
        assert resumed.manifest["files"][name] == complete.manifest["files"][name]


def test_a_failed_export_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data: Dataset = from_episodes(trajectories(RNG, (2, 2)))

    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "ascontiguousarray", full)
    with pytest.raises(GCBError, match="No space left on device"):
        export_data(data, tmp_path / "out.npz")
    monkeypatch.undo()
    import minari.dataset.minari_storage as storage

    monkeypatch.setattr(storage.MinariStorage, "update_metadata", full)
    with pytest.raises(GCBError, match="No space left on device"):
        export_data(data, tmp_path / "out-v0", quiet=True)
    assert list(tmp_path.iterdir()) == []


# ---- Minari ------------------------------------------------------------------------------------------------------


@pytest.fixture
def minari_dir(tmp_path: Path) -> Path:
    export_data(from_episodes(trajectories(RNG, (2, 3), vectors=True)), tmp_path / "in-v0", quiet=True)
    return tmp_path / "in-v0"


def edit_metadata(path: Path, **changes: Any) -> None:
    path = path / "data" / "metadata.json"
    metadata = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({name: value for name, value in metadata.items() if value is not None}))


def test_minari_without_spaces_is_refused(minari_dir: Path) -> None:
    edit_metadata(minari_dir, observation_space=None, env_spec=json.dumps({"id": "X-v0", "entry_point": "os:abort"}))
    assert_refused(minari_dir, "observation_space")


def test_damaged_minari(minari_dir: Path) -> None:
    edit_metadata(minari_dir, total_episodes=5)
    assert_refused(minari_dir, "episode 2 of .* could not be read")
    edit_metadata(minari_dir, total_episodes="two")
    assert_refused(minari_dir, "has no total_episodes")
    edit_metadata(minari_dir, total_episodes=2, data_format="pickle")
    assert_refused(minari_dir, "could not be opened as a Minari dataset")
    edit_metadata(minari_dir, data_format="hdf5", gcb=[1])
    assert_refused(minari_dir, r"gcb is \[1\]; accepted: a mapping")
    edit_metadata(minari_dir, gcb=None, observation_space="{}")
    assert_refused(minari_dir, "could not be opened as a Minari dataset")
    file = minari_dir / "data" / "main_data.hdf5"
    content = file.read_bytes()
    file.write_bytes(content[:364] + b"\xff" * 64 + content[428:])  # the first group: h5py raises a RuntimeError
    assert_refused(minari_dir, "is damaged or not an HDF5 file")
    os.truncate(file, 500)
    assert_refused(minari_dir, "is damaged or not an HDF5 file")
    (minari_dir / "data" / "metadata.json").write_text("{")
    assert_refused(minari_dir, "not readable JSON")


def test_hdf5_links_to_other_files_are_refused(minari_dir: Path, tmp_path: Path) -> None:
    import h5py

    path = minari_dir / "data" / "main_data.hdf5"
    (tmp_path / "secret").write_bytes(bytes(range(24)))
    with h5py.File(path, "a") as file:
        del file["episode_1/actions"]
        file.create_dataset("episode_1/actions", (3, 2), np.float32, external=[(str(tmp_path / "secret"), 0, 24)])
    assert_refused(minari_dir, "episode_1/actions stores its data in another file")
    with h5py.File(path, "a") as file:
        del file["episode_1/actions"]
        file["episode_1/actions"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/actions")
    assert_refused(minari_dir, "episode_1/actions is a link")


def test_minari_id_and_missing_package(minari_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = from_episodes(trajectories(RNG, (2,)))
    with pytest.raises(GCBError, match=r"play is not a Minari dataset id; .* play-v0"):
        export_data(data, tmp_path / "play")
    with pytest.raises(GCBError, match="already exists"):
        export_data(data, minari_dir)
    with pytest.raises(GCBError, match="only OGBench"):
        export_data(data, tmp_path / "other-v0", val_episodes=1)
    monkeypatch.setattr("gcb.data.formats.minari.find_spec", lambda name: None)
    assert_refused(minari_dir, r"pip install 'gcb\[minari\]'")
