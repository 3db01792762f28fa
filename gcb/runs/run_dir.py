"""A run's folder: what was asked, what was learned so far, and how to go on from there.

RUN/config.yaml                the whole configuration
RUN/run.json                   what the run stands on: the dataset and its fingerprint, shapes, the world, versions, and
                               the SHA-256 of config.yaml
RUN/checkpoint.json            which files are the checkpoint, with their SHA-256: replaced last, so that a kill
                               leaves the older checkpoint or the newer, never halves
RUN/weights-<step>.safetensors the networks
RUN/state-<step>.pt            what going on needs besides: optimiser, generators, time used
RUN/metrics.jsonl              one row of figures for each log interval
RUN/eval.json                  success, by mode (gcb.evaluation.evaluate)
RUN/videos/

Nothing in a folder is executed when it is read: YAML is loaded safely, weights are safetensors, the state is loaded
with `weights_only`.
"""

import hashlib
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

import gcb
from gcb.errors import GCBError
from gcb.runs.config import TrainConfig, read_config, write_config
from gcb.utils.dataclass_io import differences, to_dict
from gcb.utils.files import explain_os_errors, read_json, sha256, write_atomically, write_json

FORMAT, VERSION = "gcb-run", 1
CONFIG, RECORD, POINTER = "config.yaml", "run.json", "checkpoint.json"
METRICS, EVAL, VIDEOS = "metrics.jsonl", "eval.json", "videos"
READ_ATTEMPTS = 5


@dataclass(frozen=True)
class Checkpoint:
    """Where a run stands."""

    step: int
    seconds: float
    """Time spent on training so far, over all sittings."""
    finished: bool
    files: Mapping[str, Mapping[str, Any]]
    """For "weights" and "state" the file's name, size and SHA-256; an exported agent has no "state"."""


class Run:
    """The folder of a run that exists; `open_or_create` makes one."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            raise GCBError(f"{self.path} is not a folder; a run is a folder that `gcb train --out` has written")
        if not (self.path / RECORD).is_file():
            raise GCBError(f"{self.path} is not a run: it has no {RECORD}")
        self.record = read_json(self.path / RECORD)
        if not isinstance(self.record, dict) or self.record.get("format") != FORMAT:
            raise GCBError(f"{self.path / RECORD} does not describe a run: its format is not {FORMAT!r}")
        if self.record.get("version") != VERSION:
            found = self.record.get("version")
            raise GCBError(f"{self.path} has format version {found!r}; this gcb reads version {VERSION}")
        self.config: TrainConfig[Any] = read_config(self.path / CONFIG)
        if self.record.get("config_sha256", digest := sha256(self.path / CONFIG)) != digest:
            raise GCBError(
                f"{self.path / CONFIG} is not what the run began with, by its SHA-256 in {RECORD}: it is damaged, or "
                "was edited. For other settings begin another run: gcb train --settings"
            )

    def checkpoint(self) -> Checkpoint | None:
        """The last checkpoint, if there is one yet."""
        if not (self.path / POINTER).exists():
            return None
        pointer = read_json(self.path / POINTER)
        try:
            files = {kind: dict(pointer["files"][kind]) for kind in ("weights", "state") if kind in pointer["files"]}
            if "weights" not in files:
                raise ValueError("it names no weights")
            for entry in files.values():
                # A name from a file is not to lead out of the folder.
                if Path(entry["name"]).name != entry["name"] or not isinstance(entry["sha256"], str):
                    raise ValueError(f"there is no file {entry['name']!r}")
            if pointer["method"] != self.config.method:
                raise GCBError(
                    f"{self.path / POINTER} is a checkpoint of the method {pointer['method']!r}, "
                    f"but the run's is {self.config.method!r}"
                )
            return Checkpoint(int(pointer["step"]), float(pointer["seconds"]), bool(pointer["finished"]), files)
        except (KeyError, TypeError, ValueError) as error:
            raise GCBError(f"{self.path / POINTER} is damaged ({error!r})") from error

    def save(self, weights: Mapping[str, Tensor], state: Mapping[str, Any], step: int, seconds: float, finished: bool):
        """Write a checkpoint; until the last moment the one before stays the run's."""
        self._check_finite(weights, step)
        facts = {"method": self.config.method, "step": step}
        plain = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
        buffer = io.BytesIO()
        torch.save(dict(state), buffer)
        contents = {
            "weights": (f"weights-{step:08d}.safetensors", safetensors.torch.save(plain, _as_text(facts))),
            "state": (f"state-{step:08d}.pt", buffer.getvalue()),
        }
        files = {}
        with explain_os_errors(self.path, "The last checkpoint is kept; once there is room, the same command goes on"):
            for kind, (name, content) in contents.items():
                write_atomically(self.path / name, content)
                digest = hashlib.sha256(content).hexdigest()
                files[kind] = {"name": name, "bytes": len(content), "sha256": digest}
            pointer = {**facts, "seconds": seconds, "finished": finished, "files": files, "gcb": gcb.__version__}
            write_json(self.path / POINTER, pointer)
            self.remove_stale_files()

    def weights(self) -> tuple[dict[str, Tensor], Checkpoint]:
        """The networks of the last checkpoint. A run in training may replace it meanwhile; then the newer one."""
        content, checkpoint = self._read("weights")
        name = self.path / checkpoint.files["weights"]["name"]
        try:
            return safetensors.torch.load(content), checkpoint
        except safetensors.SafetensorError as error:
            raise GCBError(f"{name} is not a safetensors file: {error}") from error

    def weights_file(self) -> tuple[bytes, Checkpoint]:
        """The file of the networks as it is, for a copy."""
        return self._read("weights")

    def state(self) -> dict[str, Any]:
        """What going on needs besides the networks."""
        content, checkpoint = self._read("state")
        try:
            return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        except Exception as error:  # the bytes are what was hashed: this is whatever a crafted file provokes
            name = self.path / checkpoint.files["state"]["name"]
            raise GCBError(f"{name} is not a checkpoint's state, or holds more than data") from error

    def remove_stale_files(self) -> None:
        """Remove checkpoints that are not the last, and what a kill left half-written; only a trainer's own files."""
        checkpoint = self.checkpoint()
        kept = {entry["name"] for entry in checkpoint.files.values()} if checkpoint else set()
        halves = [f".{name}*.tmp" for name in ("weights-", "state-", CONFIG, RECORD, POINTER, METRICS)]
        for pattern in ("weights-*.safetensors", "state-*.pt", *halves):
            for path in self.path.glob(pattern):
                if path.name not in kept and not path.is_dir():
                    path.unlink(missing_ok=True)

    def _read(self, kind: str) -> tuple[bytes, Checkpoint]:
        """One file of the checkpoint, whole and unaltered."""
        for _ in range(READ_ATTEMPTS):
            checkpoint = self.checkpoint()
            if checkpoint is None:
                raise GCBError(f"{self.path} has no checkpoint yet; train it further")
            if kind not in checkpoint.files:
                raise GCBError(f"{self.path} holds no {kind}: it was exported to be used, not to be trained further")
            entry = checkpoint.files[kind]
            path = self.path / entry["name"]
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                continue  # the trainer has put a newer one in its place, or somebody has removed it
            except OSError as error:
                raise GCBError(f"{path} could not be read: {error.strerror}") from error
            if len(content) != entry.get("bytes") or hashlib.sha256(content).hexdigest() != entry["sha256"]:
                raise GCBError(f"{path} is damaged: it differs from the size or the SHA-256 in {POINTER}")
            return content, checkpoint
        raise GCBError(f"{path} is missing, but {self.path / POINTER} names it")

    def _check_finite(self, weights: Mapping[str, Tensor], step: int) -> None:
        broken = [name for name, tensor in weights.items() if not torch.isfinite(tensor).all()]
        if broken:
            raise GCBError(f"{broken[0]} is not finite after step {step}: the run has diverged. {self.advice()}")

    def kept(self) -> str:
        """Which work is safe."""
        checkpoint = self.checkpoint()
        kept = f"The checkpoint of step {checkpoint.step} is kept" if checkpoint else "No checkpoint was written yet"
        return f"{kept} in {self.path}"

    def advice(self) -> str:
        """What to say when a run has diverged."""
        return f"{self.kept()}; a smaller learning rate, a warm-up or a max_grad_norm may help"


def read_results(run: str | os.PathLike[str]) -> dict[str, Any]:
    """What RUN/eval.json says, by mode; empty before the first evaluation."""
    path = Path(run) / EVAL
    found = read_json(path) if path.exists() else {}
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise GCBError(f"{path} is not a table of evaluations by mode")
    return found


def run_exists(path: Path, config: TrainConfig[Any], record: Mapping[str, Any]) -> bool:
    """Whether the run asked for stands in the folder already. Nothing is touched; another's folder is an error."""
    if not path.exists():
        return False
    if not path.is_dir():
        raise GCBError(f"{path} is a file; a run needs a new or an empty folder")
    if not (path / RECORD).is_file():
        # A kill in a run's first moments leaves its configuration alone.
        strangers = [name for name in sorted(os.listdir(path)) if name != CONFIG and not name.endswith(".tmp")]
        if strangers:
            raise GCBError(f"{path} holds other files ({strangers[0]}); name a new or an empty folder")
        return False
    run = Run(path)
    if run.config.microbatches != config.microbatches:
        parts = run.config.microbatches
        raise GCBError(
            f"{path} was begun with {parts} processes or microbatches, not {config.microbatches}. Resume it with "
            f"`torchrun --nproc-per-node {parts}`, or in one process with --microbatches {parts}"
        )
    found = differences(to_dict(run.config), to_dict(config))
    for what in ("fingerprint", "shapes"):
        found += differences(run.record["data"].get(what), record["data"].get(what), f"the dataset's {what}")
    if found:
        raise GCBError(
            f"{path} holds another run: {'; '.join(map(str, found))}. Name another folder, or repeat its own settings"
        )
    return True


def open_or_create(path: Path, config: TrainConfig[Any], record: Mapping[str, Any]) -> Run:
    """The run in this folder, new or as it was left; the caller holds the folder's lock."""
    if not run_exists(path, config, record):
        with explain_os_errors(path):
            write_config(path / CONFIG, config)
            facts = {"format": FORMAT, "version": VERSION, "gcb": gcb.__version__}
            write_json(path / RECORD, {**record, **facts, "config_sha256": sha256(path / CONFIG)})
    run = Run(path)
    if run.checkpoint() is None:
        _check_never_saved(path, config)
    with explain_os_errors(path, "Nothing was lost"):
        run.remove_stale_files()
    return run


def _check_never_saved(path: Path, config: TrainConfig[Any]) -> None:
    """A kill in the first checkpoint leaves weights that nothing points to; before later ones there was a pointer."""
    for found in path.glob("weights-*.safetensors"):
        if found.stem > f"weights-{config.checkpoint_every:08d}":
            raise GCBError(
                f"{path / POINTER} is missing, but {found.name} is there: it was removed. Put it back, or name another "
                "folder to begin anew"
            )


def _as_text(facts: Mapping[str, Any]) -> dict[str, str]:
    """safetensors' own metadata are text."""
    return {name: str(value) for name, value in facts.items()}
