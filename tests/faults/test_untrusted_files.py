"""Untrusted files: nothing in them is executed, and no name in them leads out of their directory."""

import hashlib
import io
import json
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.faults import files_of
from helpers.small_runs import train_small

import gcb
from gcb.analysis import scenes
from gcb.data import import_data, open_dataset
from gcb.data.format import MANIFEST, file_entry
from gcb.envs.spec import EnvSpec
from gcb.errors import GCBError
from gcb.evaluation.evaluate import evaluate_run
from gcb.report.report import write_report
from gcb.runs.config import read_config
from gcb.runs.run_dir import CHECKPOINT, CONFIG, EVAL, RECORD, Run
from gcb.sweep.grid import read_grid
from gcb.sweep.results import run_rows
from gcb.utils.files import write_json
from gcb.utils.text_files import read_json

Case = tuple[str, Callable[[], object]]
"""A description of an untrusted file, and the function that reads it."""


class Malicious:
    """Unpickling it runs a command that creates a file."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.trace}",)


@pytest.fixture
def malicious(tmp_path: Path) -> Malicious:
    return Malicious(tmp_path / "executed")


@pytest.fixture
def check_refused(tmp_path: Path, malicious: Malicious, record: Callable) -> Callable[[str, Iterator[Case]], None]:
    """Check that every file is refused with a GCBError, and that nothing is executed or written."""

    def check_refused(name: str, cases: Iterator[Case]) -> None:
        descriptions = []
        for description, read in cases:
            before = files_of(tmp_path)
            with pytest.raises(GCBError):
                read()
            assert not malicious.trace.exists(), f"{description} was EXECUTED"
            assert files_of(tmp_path) == before, description
            descriptions.append(description)
        outcome = f"all refused with a message, nothing executed: {', '.join(descriptions)}"
        record("untrusted file", name, len(descriptions), outcome)

    return check_refused


@pytest.fixture(scope="module")
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_small(tmp_path_factory.mktemp("trusted") / "run", data, steps=1)


def copy_with(source: Path, copy: Path, name: str, content: bytes) -> Path:
    """Copy a directory and replace one file."""
    shutil.copytree(source, copy)
    (copy / name).write_bytes(content)
    return copy


def edit_json(path: Path, change: Callable[[Any], object]) -> None:
    value = read_json(path)
    change(value)
    write_json(path, value)


def test_pickles_as_checkpoints(check_refused: Callable, run: Path, tmp_path: Path, malicious: Malicious) -> None:
    """The hashes match, as an attacker would ensure."""

    def cases() -> Iterator[Case]:
        zipped, legacy = io.BytesIO(), io.BytesIO()
        torch.save({"optimizer": malicious}, zipped)
        torch.save({"optimizer": malicious}, legacy, _use_new_zipfile_serialization=False)
        raw = pickle.dumps(malicious, protocol=2)
        contents = {"pickle": raw, "torch zip": zipped.getvalue(), "legacy torch file": legacy.getvalue()}
        for kind, content in contents.items():
            for role, read in (("weights", gcb.load), ("state", lambda path: Run(path).state())):
                name = read_json(run / CHECKPOINT)[role]["name"]
                entry = {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
                copy = copy_with(run, tmp_path / f"{kind} {role}", name, content)
                edit_json(copy / CHECKPOINT, lambda value, role=role, entry=entry: value.update({role: entry}))
                yield f"{kind} as {role}", lambda read=read, copy=copy: read(copy)

    check_refused("pickle as a checkpoint", cases())


def test_pickles_in_datasets(check_refused: Callable, data: Path, tmp_path: Path, malicious: Malicious) -> None:
    objects, raw = np.array([malicious, None], object), pickle.dumps(malicious)

    def import_(name: str) -> Callable[[], object]:
        return lambda: import_data(tmp_path / name, tmp_path / "out", quiet=True)

    def cases() -> Iterator[Case]:
        buffer = io.BytesIO()
        np.save(buffer, objects, allow_pickle=True)
        for name, content in (("npy", buffer.getvalue()), ("raw", raw)):
            copy = copy_with(data, tmp_path / name, "actions.npy", content)
            entry = file_entry(copy / "actions.npy", objects.dtype, objects.shape)
            edit_json(copy / MANIFEST, lambda value, entry=entry: value["files"].update({"actions.npy": entry}))
        yield ".npy of objects", lambda: open_dataset(tmp_path / "npy")
        yield ".npy of objects, preloaded", lambda: open_dataset(tmp_path / "npy", preload=True)
        yield "pickle as .npy", lambda: open_dataset(tmp_path / "raw")
        (tmp_path / "episodes").mkdir()
        for name in ("objects.npz", "episodes/0.npz"):
            np.savez(tmp_path / name, observations=objects, actions=objects, terminals=objects)
        (tmp_path / "raw.npz").write_bytes(raw)
        yield ".npz of objects", import_("objects.npz")
        yield "directory of .npz of objects", import_("episodes")
        yield "pickle as .npz", import_("raw.npz")

    check_refused("pickle in a dataset or in a file to import", cases())


def test_pickles_in_cached_scenes(data: Path, tmp_path: Path, malicious: Malicious) -> None:
    config = scenes.SceneConfig(EnvSpec("none"), 0)
    arrays: dict[str, Any] = dict.fromkeys(scenes.Scenes.__dataclass_fields__, np.array([malicious], object))
    np.savez(tmp_path / scenes.CACHE_FILE, key=np.array(scenes._cache_key(config)), **arrays)
    assert scenes._read_cache(tmp_path / scenes.CACHE_FILE, scenes._cache_key(config)) is None
    assert not malicious.trace.exists()


def test_python_in_text_files(check_refused: Callable, run: Path, tmp_path: Path, malicious: Malicious) -> None:
    def cases() -> Iterator[Case]:
        tags = {
            "object/apply": f"method: !!python/object/apply:os.system ['touch {malicious.trace}']\n",
            "object/new": f"!!python/object/new:os.system ['touch {malicious.trace}']\n",
            "name": "method: !!python/name:os.system ''\n",
        }
        for number, (tag, text) in enumerate(tags.items()):
            path = tmp_path / f"{number}.yaml"
            path.write_text(text)
            copy = copy_with(run, tmp_path / f"tag {number}", CONFIG, text.encode())
            yield f"!!python/{tag} as settings", lambda path=path: read_config(path)
            yield f"!!python/{tag} as a grid", lambda path=path: read_grid(str(path))
            yield f"!!python/{tag} as a run's config", lambda copy=copy: gcb.load(copy)
            yield f"!!python/{tag} as the config of a sweep's run", lambda copy=copy: list(run_rows(copy))
        for name in (CONFIG, RECORD, CHECKPOINT, EVAL):
            copy = copy_with(run, tmp_path / f"pickle {name}", name, pickle.dumps(malicious))
            read = gcb.load if name != EVAL else lambda copy: write_report([copy], tmp_path / "report.html")
            yield f"pickle as {name}", lambda read=read, copy=copy: read(copy)

    check_refused("YAML with Python tags, pickle as YAML or JSON", cases())


def test_names_that_lead_elsewhere(check_refused: Callable, run: Path, data: Path, tmp_path: Path) -> None:
    def cases() -> Iterator[Case]:
        for number, name in enumerate(("../weights.safetensors", "/etc/hostname", "sub/weights.safetensors")):
            copy = shutil.copytree(run, tmp_path / f"run {number}")
            edit_json(copy / CHECKPOINT, lambda value, name=name: value["weights"].update(name=name))
            yield f"{name} in checkpoint.json", lambda copy=copy: gcb.load(copy)
        for number, name in enumerate(("../frames.npy", "/frames.npy")):
            copy = shutil.copytree(data, tmp_path / f"data {number}")
            manifest = read_json(copy / MANIFEST)
            manifest["files"][name] = manifest["files"].pop("frames.npy")
            write_json(copy / MANIFEST, manifest)
            yield f"{name} in manifest.json", lambda copy=copy: open_dataset(copy)
        for number, name in enumerate(("../../x.npy", "/tmp/x.npy", "a/x.npy", "..\\x.npy", "notes.txt")):
            path = tmp_path / f"{number}.npz"
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr(name, b"\x93NUMPY")
            yield f"{name} in .npz", lambda path=path: import_data(path, tmp_path / "out", quiet=True)
        record = read_json(run / RECORD)
        record["data"]["config"] = {**record["data"].get("config", {}), "adapter": "os:system"}
        copy = copy_with(run, tmp_path / "adapter", RECORD, json.dumps(record).encode())
        yield (
            "adapter os:system in run.json",
            lambda: evaluate_run(copy, ["goal"], episodes=1, videos=False, quiet=True),
        )

    check_refused("name that leads out of the directory", cases())
