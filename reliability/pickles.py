"""Files that would run code, or lead out of their folder, if anything in them was believed."""

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
import torch

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
from gcb.utils.files import read_json, write_json
from reliability import stage
from reliability.rows import Row, row

Offer = tuple[str, Callable[[], object]]
"""What is offered as what, and the use that is made of it."""


class Harmful:
    """Whoever unpickles it makes a file."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.trace}",)


def run(folder: Path, quick: bool) -> Iterator[Row]:
    """Every file that is read, with harm in it."""
    trace = folder / "executed"
    data = stage.slide_data(folder / "data" / "slide")
    made = stage.trained(folder / "run", data, steps=1)
    harm = Harmful(trace)
    yield _refused("pickle as a checkpoint", trace, _checkpoints(made, folder / "checkpoints", harm))
    yield _refused("pickle as a dataset, or in one that is imported", trace, _datasets(data, folder, harm))
    yield _refused("YAML with Python in it, pickle as YAML or JSON", trace, _texts(made, folder, harm))
    yield _refused("names that lead out of the folder", trace, _ways_out(made, data, folder))


def _refused(tried: str, trace: Path, offers: Iterator[Offer]) -> Row:
    wrong, names = [], []
    for name, use in offers:
        names.append(name)
        try:
            use()
            wrong.append(f"{name}: it was taken")
        except GCBError:
            pass
        except Exception as error:  # a refusal, but not one for a user
            wrong.append(f"{name}: {type(error).__name__}: {error}")
        if trace.exists():
            wrong.append(f"{name}: it was EXECUTED")
            trace.unlink()
    return row("harm", tried, len(names), f"all refused with a message, nothing executed: {', '.join(names)}", wrong)


def _checkpoints(made: Path, place: Path, harm: Harmful) -> Iterator[Offer]:
    """With hashes that fit, as whoever means harm would see to."""
    saved, old = io.BytesIO(), io.BytesIO()
    torch.save({"optimizer": harm}, saved)
    torch.save({"optimizer": harm}, old, _use_new_zipfile_serialization=False)
    contents = {"pickle": pickle.dumps(harm), "torch's zip": saved.getvalue(), "torch's older format": old.getvalue()}
    for number, (kind, content) in enumerate(contents.items()):
        for role, use in (("weights", gcb.load), ("state", lambda path: Run(path).state())):
            copy = shutil.copytree(made, place / f"{role}{number}")
            pointer = read_json(copy / CHECKPOINT)
            entry = pointer[role]
            (copy / entry["name"]).write_bytes(content)
            entry |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            write_json(copy / CHECKPOINT, pointer)
            yield f"{kind} as {role}", lambda use=use, copy=copy: use(copy)


def _datasets(data: Path, folder: Path, harm: Harmful) -> Iterator[Offer]:
    objects = np.array([harm, None], object)
    copy = shutil.copytree(data, folder / "objects")
    np.save(copy / "actions.npy", objects, allow_pickle=True)
    _sign(copy, "actions.npy", objects)
    yield ".npy of objects", lambda: open_dataset(copy)
    yield "the same, in memory", lambda: open_dataset(copy, preload=True)
    bare = shutil.copytree(data, folder / "bare")
    (bare / "actions.npy").write_bytes(pickle.dumps(harm))
    _sign(bare, "actions.npy", objects)
    yield "pickle as .npy", lambda: open_dataset(bare)
    np.savez(folder / "objects.npz", observations=objects, actions=objects, terminals=objects)
    yield ".npz of objects", lambda: import_data(folder / "objects.npz", folder / "out", quiet=True)
    (folder / "episodes").mkdir()
    np.savez(folder / "episodes" / "0.npz", observations=objects, actions=objects)
    yield "folder of such episodes", lambda: import_data(folder / "episodes", folder / "out", quiet=True)
    (folder / "bare.npz").write_bytes(pickle.dumps(harm))
    yield "pickle as .npz", lambda: import_data(folder / "bare.npz", folder / "out", quiet=True)
    kept: dict[str, Any] = {name: objects for name in scenes.Scenes.__dataclass_fields__}
    job = scenes.SceneConfig(EnvSpec("none"), 0)
    np.savez(folder / scenes.CACHE_FILE, key=np.array(scenes._cache_key(job)), **kept)
    yield "kept scenes of objects", lambda: scenes.fresh_scenes(job, 1, folder, quiet=True)


def _sign(folder: Path, name: str, array: np.ndarray) -> None:
    """Let the manifest say of a file what it is now."""
    manifest = read_json(folder / MANIFEST)
    manifest["files"][name] = file_entry(folder / name, array.dtype, array.shape)
    write_json(folder / MANIFEST, manifest)


def _texts(made: Path, folder: Path, harm: Harmful) -> Iterator[Offer]:
    tags = {
        "object/apply": f"method: !!python/object/apply:os.system ['touch {harm.trace}']\n",
        "object/new": f"!!python/object/new:os.system ['touch {harm.trace}']\n",
        "name": "method: !!python/name:os.system ''\n",
    }
    path = folder / "own.yaml"
    for kind, text in tags.items():
        for role, use in (("settings", read_config), ("grid", lambda path: read_grid(str(path)))):
            yield f"!!python/{kind} as {role}", lambda use=use, text=text: (path.write_text(text), use(path))
        yield (
            f"!!python/{kind} as a run's config",
            lambda text=text: _with(made, folder, CONFIG, text.encode(), gcb.load),
        )
        yield (
            f"!!python/{kind} as the config of a sweep's run",
            lambda text=text: _with(made, folder, CONFIG, text.encode(), lambda run: list(run_rows(run))),
        )
    content = pickle.dumps(harm)
    for name, use in (
        (CONFIG, gcb.load),
        (RECORD, gcb.load),
        (CHECKPOINT, gcb.load),
        (EVAL, lambda path: write_report([path], folder / "report.html")),
    ):
        yield f"pickle as {name}", lambda name=name, use=use: _with(made, folder, name, content, use)


def _with(made: Path, folder: Path, name: str, content: bytes, use: Callable[[Path], object]) -> None:
    copy = folder / "with"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(made, copy)
    (copy / name).write_bytes(content)
    use(copy)


def _ways_out(made: Path, data: Path, folder: Path) -> Iterator[Offer]:
    """Names in files and archives that point elsewhere; whatever they point at is left alone."""
    for number, name in enumerate(("../weights.safetensors", "/etc/hostname", "sub/weights.safetensors")):
        copy = shutil.copytree(made, folder / f"out{number}")
        pointer = read_json(copy / CHECKPOINT)
        pointer["weights"]["name"] = name
        write_json(copy / CHECKPOINT, pointer)
        yield f"{name} in checkpoint.json", lambda copy=copy: gcb.load(copy)
    for number, name in enumerate(("../frames.npy", "/frames.npy")):
        copy = shutil.copytree(data, folder / f"listed{number}")
        manifest = read_json(copy / MANIFEST)
        manifest["files"][name] = manifest["files"].pop("frames.npy")
        write_json(copy / MANIFEST, manifest)
        yield f"{name} in manifest.json", lambda copy=copy: open_dataset(copy)
    for number, name in enumerate(("../../escaped.npy", "/tmp/escaped.npy", "a/escaped.npy", "..\\escaped.npy")):
        path = folder / f"members{number}.npz"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, b"\x93NUMPY")
        yield f"{name} in .npz", lambda path=path: import_data(path, folder / "out", quiet=True)
    record = read_json(made / RECORD)
    record["data"]["config"] = {**record["data"].get("config", {}), "adapter": "os:system"}
    content = json.dumps(record).encode()
    yield "adapter os:system in run.json", lambda: _with(made, folder, RECORD, content, _played)


def _played(path: Path) -> None:
    evaluate_run(path, ["goal"], episodes=1, videos=False, quiet=True)
