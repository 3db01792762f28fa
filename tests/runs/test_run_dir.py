"""A run's directory always has a complete checkpoint; reading it executes nothing; other directories are left alone."""

import io
import json
import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.tiny import tiny_config

import gcb.runs.run_dir
from gcb.errors import GCBError
from gcb.methods import Shapes
from gcb.runs.dataset_record import DatasetRecord
from gcb.runs.run_dir import CHECKPOINT, CONFIG, RECORD, Run, open_or_create
from gcb.utils.dataclass_io import to_dict
from gcb.utils.text_files import read_json

DATASET = DatasetRecord(None, "f", Shapes((32, 32, 3), 2), 100, {})


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def new_run(path: Path, *, checkpoints: int = 1, **changes: Any) -> Run:
    path.mkdir(exist_ok=True)
    run = open_or_create(path, tiny_config("gcbc", **changes), DATASET)
    for step in range(1, checkpoints + 1):
        run.save({"weight": torch.full((2, 3), float(step))}, {"note": step, "rng": torch.ones(4)}, step, 0.5, False)
    return run


def test_the_last_checkpoint_is_kept(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run", checkpoints=3)
    weights, checkpoint = run.weights()
    assert torch.equal(weights["weight"], torch.full((2, 3), 3.0))
    assert (checkpoint.step, checkpoint.seconds, checkpoint.finished) == (3, 0.5, False)
    assert run.state()["note"] == 3
    assert sorted(os.listdir(run.path)) == [
        "checkpoint.json",
        "config.yaml",
        "run.json",
        "state-00000003.pt",
        "weights-00000003.safetensors",
    ]


@pytest.mark.parametrize("survivors", [0, 1, 2])
def test_a_kill_between_two_files_leaves_the_checkpoint_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survivors: int
) -> None:
    run = new_run(tmp_path / "run")
    real, written = gcb.runs.run_dir.write_atomically, []

    def dies(path: Path, content: bytes) -> None:
        if len(written) == survivors:
            raise KeyboardInterrupt
        written.append(path)
        real(path, content)

    monkeypatch.setattr(gcb.runs.run_dir, "write_atomically", dies)
    monkeypatch.setattr(gcb.runs.run_dir, "write_json", lambda path, value: dies(path, json.dumps(value).encode()))
    with pytest.raises(KeyboardInterrupt):
        run.save({"weight": torch.zeros(2, 3)}, {"note": 2}, 2, 1.0, False)
    monkeypatch.undo()
    again = open_or_create(run.path, run.config, DATASET)
    assert again.weights()[0]["weight"][0, 0] == 1
    assert again.state()["note"] == 1
    assert not list(run.path.glob("*-00000002.*"))  # deleted when the run is opened again


def test_only_half_written_files_of_training_are_deleted(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run")
    for name in (".weights-00000009.safetensors.7.tmp", ".checkpoint.json.7.tmp", ".eval.json.8.tmp"):
        (run.path / name).write_bytes(b"half")
    run.remove_stale_files()
    assert sorted(path.name for path in run.path.glob(".*")) == [".eval.json.8.tmp"]  # an evaluation is writing it


def test_a_full_disk_keeps_the_checkpoint_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = new_run(tmp_path / "run")

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(gcb.runs.run_dir, "write_atomically", full)
    with pytest.raises(GCBError, match=r"No space left on device\. The last checkpoint is kept"):
        run.save({"weight": torch.zeros(2, 3)}, {}, 2, 1.0, False)
    assert run.weights()[1].step == 1


def test_weights_that_are_not_finite_are_not_saved(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run")
    with pytest.raises(GCBError, match=r"weight is not finite after step 2.*checkpoint of step 1 is kept"):
        run.save({"weight": torch.tensor([1.0, float("nan")])}, {}, 2, 1.0, False)
    assert run.weights()[1].step == 1


def weights_file(run: Run) -> Path:
    return next(run.path.glob("weights-*"))


def state_file(run: Run) -> Path:
    return next(run.path.glob("state-*"))


def test_truncated_altered_and_missing_files_are_detected(tmp_path: Path) -> None:
    for kind, file, read in (("weights", weights_file, Run.weights), ("state", state_file, Run.state)):
        run = new_run(tmp_path / f"cut {kind}")
        file(run).write_bytes(file(run).read_bytes()[:-1])
        with pytest.raises(GCBError, match=f"{kind}-00000001.* is damaged"):
            read(run)
        run = new_run(tmp_path / f"altered {kind}")
        content = bytearray(file(run).read_bytes())
        content[-1] ^= 1
        file(run).write_bytes(content)
        with pytest.raises(GCBError, match=f"{kind}-00000001.* is damaged"):
            read(run)
        run = new_run(tmp_path / f"missing {kind}")
        file(run).unlink()
        with pytest.raises(GCBError, match=f"{kind}-00000001.* is missing"):
            read(run)


class Malicious:
    def __reduce__(self) -> Any:
        return os.system, ("touch was-executed",)


def test_malicious_files_are_refused_even_with_a_matching_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = new_run(tmp_path / "run")
    saved = io.BytesIO()
    torch.save({"optimizer": Malicious()}, saved)
    for kind, read, content in (
        ("state", run.state, saved.getvalue()),
        ("weights", run.weights, pickle.dumps(Malicious())),
    ):
        checkpoint = read_json(run.path / CHECKPOINT)
        entry = checkpoint[kind]
        (run.path / entry["name"]).write_bytes(content)
        entry["bytes"], entry["sha256"] = len(content), gcb.runs.run_dir.hashlib.sha256(content).hexdigest()
        (run.path / CHECKPOINT).write_text(json.dumps(checkpoint))
        with pytest.raises(GCBError, match="is not a"):
            read()
    assert not (tmp_path / "was-executed").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "gcb"}, "method 'gcb', but the run's is 'gcbc'"),
        ({"step": "soon"}, "is damaged: step is 'soon'"),
        ({"finished": 1}, "is damaged: finished is 1"),
        ({"weights": {}}, r"is damaged: weights\.name is missing"),
        ({"weights": None}, "is damaged: weights is None"),
        ({"weights": {"name": "../outside", "bytes": 1, "sha256": "0"}}, "is damaged: name is '../outside'"),
    ],
)
def test_a_damaged_checkpoint_file_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    run = new_run(tmp_path / "run")
    checkpoint = read_json(run.path / CHECKPOINT)
    (run.path / CHECKPOINT).write_text(json.dumps({**checkpoint, **change}))
    with pytest.raises(GCBError, match=message):
        run.weights()


def test_weights_can_be_read_while_training_replaces_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, trainer = new_run(tmp_path / "run"), Run(tmp_path / "run")
    real, replaced = Run.checkpoint, []

    def checkpoint(self: Run) -> Any:
        checkpoint = real(self)
        if self is run and not replaced:
            replaced.append(checkpoint)
            trainer.save({"weight": torch.full((2, 3), 2.0)}, {"note": 2}, 2, 1.0, False)
        return checkpoint

    monkeypatch.setattr(Run, "checkpoint", checkpoint)
    weights, newer = run.weights()
    assert newer.step == 2
    assert weights["weight"][0, 0] == 2


def test_a_changed_configuration_is_refused_field_by_field(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run")
    before = {path.name: path.read_bytes() for path in run.path.iterdir()}
    with pytest.raises(GCBError, match=r"another run: iql\.discount is 0\.99, not 0\.5; seed is 0") as error:
        open_or_create(run.path, tiny_config("gcbc", seed=1, iql={"discount": 0.5}), DATASET)
    assert "steps" not in str(error.value)
    with pytest.raises(GCBError, match="dataset's fingerprint is 'f', not 'g'"):
        open_or_create(run.path, run.config, replace(DATASET, fingerprint="g"))
    assert before == {path.name: path.read_bytes() for path in run.path.iterdir()}


def test_directories_that_are_not_runs_are_left_alone(tmp_path: Path) -> None:
    config = tiny_config("gcbc")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").write_bytes(b"cat")
    with pytest.raises(GCBError, match=r"photos holds other files \(cat\.png\)"):
        open_or_create(tmp_path / "photos", config, DATASET)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(GCBError, match="is a file"):
        open_or_create(tmp_path / "file", config, DATASET)
    with pytest.raises(GCBError, match="is not a run: it has no run"):
        Run(tmp_path / "photos")
    with pytest.raises(GCBError, match="is not a directory"):
        Run(tmp_path / "nowhere")
    assert os.listdir(tmp_path / "photos") == ["cat.png"]


def test_a_run_killed_at_its_very_start_can_be_started_again(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run", checkpoints=0)
    (run.path / RECORD).unlink()
    (run.path / ".run.json.77.tmp").write_bytes(b"{")
    open_or_create(run.path, tiny_config("gcbc", seed=5), DATASET)  # nothing was trained: any settings will do
    assert sorted(os.listdir(run.path)) == [CONFIG, RECORD]
    with pytest.raises(GCBError, match="no checkpoint yet"):
        Run(run.path).weights()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("discount: high", r"iql\.discount is 'high'"),
        ("discount: 1.5", r"iql\.discount is 1\.5"),
        ("discont: 0.99", r"iql\.discont is not a setting; did you mean discount\?"),
        ("discount: [0.99", "is not plain YAML"),
        ("", r"it has no iql\.discount"),
    ],
)
def test_a_damaged_configuration_is_refused(tmp_path: Path, line: str, message: str) -> None:
    run = new_run(tmp_path / "run")
    path = run.path / CONFIG
    path.write_text(path.read_text().replace("discount: 0.99", line))
    with pytest.raises(GCBError, match=rf"config\.yaml.*{message}"):
        Run(run.path)


def test_a_run_whose_checkpoint_file_was_deleted_is_not_started_anew(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run", checkpoints=3, checkpoint_every=1)
    (run.path / CHECKPOINT).unlink()
    with pytest.raises(GCBError, match=r"checkpoint\.json is missing, but weights-00000003"):
        open_or_create(run.path, run.config, DATASET)
    assert weights_file(run).is_file()


def record(**changes: Any) -> bytes:
    """Return run.json with changes of the dataset's record."""
    return json.dumps({"format": "gcb-run", "version": 3, "data": {**to_dict(DATASET), **changes}}).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is not readable JSON"),
        (b"[]", "its format is not 'gcb-run'"),
        (b'{"format": "gcb-run", "version": 99}', "written by gcb None"),
        (b'{"format": "gcb-run", "version": 1, "gcb": "0.1.0", "data": {}}', r"written by gcb 0\.1\.0.*train it again"),
        (b'{"format": "gcb-run", "version": 3}', "data is None; accepted: a mapping of path, fingerprint"),
        (record(shapes=[3]), r"data\.shapes is \[3\]; accepted: a mapping of observation, action"),
        (record(shapes={"observation": [8, 8, 3], "action": 0}), "shapes is .*; accepted: "),
        (record(fingerprint=3), r"data\.fingerprint is 3; accepted: text"),
        (record(config=None), r"data\.config is None; accepted: a mapping"),
        (record(config={"env": True}), r"config\.env is True; accepted: text or none"),
        (record(config={"options": [1]}), r"config\.options is \[1\]; accepted: a mapping or none"),
        (record(colour="red"), r"data\.colour is not a setting"),
    ],
)
def test_a_damaged_or_older_record_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    run = new_run(tmp_path / "run")
    (run.path / RECORD).write_bytes(content)
    with pytest.raises(GCBError, match=message):
        Run(run.path)
