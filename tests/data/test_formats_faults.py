"""What does not fit, is damaged or means harm is told before anything is written; nothing foreign is executed."""

import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
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


def refused(source: Path, message: str, **options: Any) -> None:
    """The import fails with this message, and leaves no trace."""
    before = sorted(source.parent.iterdir())
    with pytest.raises(GCBError, match=message):
        import_data(source, source.parent / "out", ImportOptions(**options), quiet=True)
    assert sorted(source.parent.iterdir()) == before


@pytest.fixture
def whole(tmp_path: Path) -> Path:
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
        ("actions", lambda a: 3 * a, "an action has size 2.*; accepted: in"),
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
def test_arrays_that_do_not_go_together(whole: Path, name: str, change: Callable, message: str) -> None:
    arrays = arrays_of(whole)
    np.savez(whole, **{**arrays, name: change(arrays[name])})
    refused(whole, message)


def test_what_is_not_there_or_not_that(whole: Path, tmp_path: Path) -> None:
    arrays = arrays_of(whole)
    np.savez(whole, observations=arrays["observations"])
    refused(whole, "has no actions, terminals; it has observations")
    np.savez(whole, **arrays, next_observations=arrays["observations"])
    refused(whole, "saved after loading")
    np.savez(whole, **arrays, qpos=np.full((7, 1), 0.1))
    refused(whole, "qpos does not fit into single precision without a loss")
    refused(tmp_path / "nowhere.npz", "is not there; accepted: an .npz file")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", r"holds no \.npz file")
    refused(whole, "only Minari's observations have named entries", observation="rgb")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_file(whole: Path, share: float) -> None:
    os.truncate(whole, int(share * whole.stat().st_size))
    refused(whole, "is damaged or not an .npz file")


def test_every_damaged_byte_is_found_or_harmless(whole: Path, tmp_path: Path) -> None:
    """A changed byte gives an error, or (in a date or the like) the same dataset: never another one."""
    good, content = import_data(whole, tmp_path / "good", quiet=True).dataset, whole.read_bytes()
    harmless = 0
    for place in RNG.choice(len(content), 60, replace=False):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(RNG.integers(8))
        whole.write_bytes(bytes(damaged))
        try:
            found = import_data(whole, tmp_path / f"out{place}", quiet=True).dataset
        except GCBError:
            assert not (tmp_path / f"out{place}").exists()
            continue
        harmless += 1
        for name, array in good.arrays().items():
            np.testing.assert_array_equal(found.arrays()[name], array)
    assert harmless < 40


class Harmful:
    """Unpickling it would make a file."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return (Path.touch, (self.trace,))


def test_pickled_objects_are_refused(whole: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    arrays = {**arrays_of(whole), "actions": np.array([Harmful(trace)] * 7, dtype=object)}
    np.savez(whole, **arrays)
    refused(whole, "actions.npy holds pickled objects, which can run code: refused")
    (tmp_path / "episodes").mkdir()
    np.savez(tmp_path / "episodes" / "0.npz", task=np.array(Harmful(trace), dtype=object))
    refused(tmp_path / "episodes", "task.npy holds pickled objects")
    whole.write_bytes(pickle.dumps(Harmful(trace)))
    refused(whole, "not an .npz file")
    assert not trace.exists()


@pytest.mark.parametrize("name", ["../escaped.npy", "/escaped.npy", "a/b.npy", "..\\escaped.npy", "notes.txt"])
def test_members_that_lead_elsewhere_are_refused(whole: Path, name: str) -> None:
    with zipfile.ZipFile(whole, "a") as archive:
        archive.writestr(name, b"x")
    refused(whole, "accepted: arrays, as numpy's savez writes them")


def test_a_member_that_lies_about_its_size(whole: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    content = buffer.getvalue().replace(b"(3,)", b"(9,)")
    with zipfile.ZipFile(whole, "a") as archive:
        archive.writestr("more.npy", content)
    refused(whole, r"more.npy has 152 bytes, its header says 200")
    with zipfile.ZipFile(whole, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("actions.npy", buffer.getvalue())
    refused(whole, "more.npy has|holds actions twice")


def test_episodes_that_are_not_alike() -> None:
    one, other = trajectories(RNG, (2, 3), vectors=True)
    for change, message in (
        ({"observations": np.zeros((4, 5))}, r"episode 1 has frames float64 \(5,\), the first episode float32 \(4,\)"),
        ({"actions": np.zeros((3, 1), np.float32)}, r"actions float32 \(1,\), the first episode float32 \(2,\)"),
        ({"rewards": np.zeros(3)}, "rewards float64 .*, the first episode missing|rewards given, the first"),
        ({"success": True}, "differ in whether they say their success"),
        ({"actions": np.zeros((5, 2))}, "observations has 4 rows, but for 5 actions there must be 6"),
        ({"rewards": np.zeros(2)}, "rewards has 2 rows, but for 3 actions there must be 3"),
        ({"rewards": np.full(3, 7.0)}, "rewards lie in 7 … 7"),
        ({"goal": np.zeros(3, np.float32)}, r"goal is float32 \(3,\); accepted: as one observation, float32 \(4,\)"),
        ({"goal_state": np.zeros(2)}, "goal_state is float64"),
        ({"reward": np.zeros(3)}, "episode 1 has reward; accepted: observations, actions"),
        ({"observations": np.zeros((4, 3, 32, 32), np.uint8)}, "channels first, it seems"),
    ):
        with pytest.raises(GCBError, match=message):
            from_episodes([one, {**other, **change}])
    with pytest.raises(GCBError, match="there are no episodes"):
        from_episodes([])
    with pytest.raises(GCBError, match="episode 0 has no actions; it has observations"):
        from_episodes([{"observations": one["observations"]}])


def test_killed_on_the_way_it_goes_on(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole_import = import_data(whole, tmp_path / "whole", quiet=True).dataset
    real = EpisodeWriter.append

    def append(self: EpisodeWriter, episode: Any) -> None:
        if self.journal.episodes == 1:
            raise KeyboardInterrupt
        real(self, episode)

    with monkeypatch.context() as patch:
        patch.setattr(EpisodeWriter, "append", append)
        with pytest.raises(KeyboardInterrupt):
            import_data(whole, tmp_path / "parts", quiet=True)
    assert not (tmp_path / "parts" / "manifest.json").exists()
    parts = import_data(whole, tmp_path / "parts", quiet=True).dataset
    for name in parts.manifest["files"]:
        assert parts.manifest["files"][name] == whole_import.manifest["files"][name]


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
def folder(tmp_path: Path) -> Path:
    export_data(from_episodes(trajectories(RNG, (2, 3), vectors=True)), tmp_path / "in-v0", quiet=True)
    return tmp_path / "in-v0"


def edited(folder: Path, **changes: Any) -> None:
    path = folder / "data" / "metadata.json"
    metadata = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({name: value for name, value in metadata.items() if value is not None}))


def test_minari_without_spaces_would_run_its_environment(folder: Path) -> None:
    edited(folder, observation_space=None, env_spec=json.dumps({"id": "X-v0", "entry_point": "os:abort"}))
    refused(folder, "would have to run the environment that it names")


def test_minari_that_is_damaged(folder: Path) -> None:
    edited(folder, total_episodes=5)
    refused(folder, "episode 2 of .* could not be read")
    edited(folder, total_episodes="two")
    refused(folder, "has no total_episodes")
    edited(folder, total_episodes=2, data_format="pickle")
    refused(folder, "could not be opened as a Minari dataset")
    edited(folder, data_format="hdf5", gcb=[1])
    refused(folder, "gcb is not a JSON object")
    edited(folder, gcb=None, observation_space="{}")
    refused(folder, "could not be opened as a Minari dataset")
    os.truncate(folder / "data" / "main_data.hdf5", 500)
    refused(folder, "is damaged or not an HDF5 file")
    (folder / "data" / "metadata.json").write_text("{")
    refused(folder, "not readable JSON")


def test_links_out_of_an_hdf5_file_are_refused(folder: Path, tmp_path: Path) -> None:
    import h5py

    path = folder / "data" / "main_data.hdf5"
    (tmp_path / "secret").write_bytes(bytes(range(24)))
    with h5py.File(path, "a") as file:
        del file["episode_1/actions"]
        file.create_dataset("episode_1/actions", (3, 2), np.float32, external=[(str(tmp_path / "secret"), 0, 24)])
    refused(folder, "episode_1/actions keeps its data in another file: refused")
    with h5py.File(path, "a") as file:
        del file["episode_1/actions"]
        file["episode_1/actions"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/actions")
    refused(folder, "episode_1/actions is a link to elsewhere: refused")


def test_minari_names_and_missing_package(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = from_episodes(trajectories(RNG, (2,)))
    with pytest.raises(GCBError, match="play is not the id of a Minari dataset; accepted: such as play-v0"):
        export_data(data, tmp_path / "play")
    with pytest.raises(GCBError, match="is there already"):
        export_data(data, folder)
    with pytest.raises(GCBError, match="only OGBench has a file for them"):
        export_data(data, tmp_path / "other-v0", val_episodes=1)
    monkeypatch.setattr("gcb.data.formats.minari_files.find_spec", lambda name: None)
    refused(folder, r"pip install 'gcb\[minari\]'")
