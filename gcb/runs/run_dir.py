"""The directory of a training run, and its checkpoints.

RUN/config.yaml                the complete configuration
RUN/run.json                   format version, the version of gcb, and the dataset: path, fingerprint, shapes, config
RUN/checkpoint.json            step, and the checkpoint's files with their SHA-256. It is replaced last: after a kill
                               it names either the previous checkpoint or the new one
RUN/weights-<step>.safetensors the networks
RUN/state-<step>.pt            everything else that resuming needs: optimizer, random generators, time used
RUN/metrics.jsonl              one row of metrics per log interval
RUN/eval.json                  success by mode, and earlier evaluations (gcb.runs.evaluations)
RUN/videos/

Reading a run never executes code from it: YAML is loaded safely, weights are safetensors, and the state is loaded with
`weights_only`.
"""

import hashlib
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import safetensors
import safetensors.torch
import torch
from torch import Tensor

import gcb
from gcb.errors import GCBError, short
from gcb.runs.config import TrainConfig, read_config, write_config
from gcb.runs.dataset_record import DatasetRecord
from gcb.utils.dataclass_io import check_fields, differences, from_dict, to_dict
from gcb.utils.files import write_atomically, write_json
from gcb.utils.os_errors import check_path, explain_os_errors, os_error_message
from gcb.utils.text_files import read_json, read_yaml

FORMAT, VERSION = "gcb-run", 3
CONFIG, RECORD, CHECKPOINT = "config.yaml", "run.json", "checkpoint.json"
METRICS, EVAL, VIDEOS = "metrics.jsonl", "eval.json", "videos"
READ_ATTEMPTS = 5
Content = TypeVar("Content")


@dataclass(frozen=True)
class CheckpointFile:
    """A file of a checkpoint with its size and hash, which show whether it is complete and unaltered."""

    name: str
    bytes: int
    sha256: str

    def __post_init__(self) -> None:
        check_path("name", self.name)
        check_fields(self, bytes="[0, inf)")
        if Path(self.name).name != self.name:  # a name read from a file must not lead out of the run's directory
            raise GCBError(f"name is {short(self.name)}; it must be the name of a file in the run's directory.")


@dataclass(frozen=True)
class Checkpoint:
    """How far a run has got."""

    method: str
    step: int
    seconds: float
    """Training time so far, over all sessions."""
    finished: bool
    weights: CheckpointFile
    state: CheckpointFile | None = None
    """None in an exported agent, which cannot be resumed."""

    def __post_init__(self) -> None:
        check_fields(self, step="[0, inf)", seconds="[0, inf)")


class Run:
    """The directory of an existing run; `open_or_create` makes one."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.parts[:1] == ("hf:",):
            name = Path(*self.path.parts[1:])
            raise GCBError(f"hf://{name} is on the Hub; commands need a directory: hf download {name} --local-dir DIR")
        if not self.path.is_dir():
            raise GCBError(f"{self.path} is not a directory; accepted: a run, as written by `gcb train --out`")
        if not (self.path / RECORD).is_file():
            raise GCBError(f"{self.path} is not a run: it has no {RECORD}")
        record = read_json(self.path / RECORD)
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise GCBError(f"{self.path / RECORD} does not describe a run: its format is not {FORMAT!r}")
        self.gcb_version = str(record.get("gcb"))
        if record.get("version") != VERSION:
            writer, reader = f"gcb {self.gcb_version}", f"gcb {gcb.__version__}"
            raise GCBError(f"{self.path} was written by {writer}; {reader} cannot read it: train it again")
        self.dataset = _from_dict(DatasetRecord, record.get("data"), self.path / RECORD, "data")
        self.config: TrainConfig[Any] = read_config(self.path / CONFIG)
        self.extended_from = _extended_from(record.get("extended", []), self.config.steps, self.path / RECORD)
        """Numbers of steps at which the run was finished, and then extended (`gcb.runs.extension`)."""
        if self.gcb_version == gcb.__version__:  # a later version may have more settings, with defaults
            missing = _missing_key(to_dict(self.config), read_yaml(self.path / CONFIG))
            if missing:
                raise GCBError(f"{self.path / CONFIG} is damaged: it has no {missing}")

    def checkpoint(self) -> Checkpoint | None:
        """Return the last checkpoint, or None if there is none yet."""
        path = self.path / CHECKPOINT
        if not path.exists():
            return None
        checkpoint = _from_dict(Checkpoint, read_json(path), path)
        if checkpoint.method != self.config.method:
            raise GCBError(f"{path} is of the method {checkpoint.method!r}, but the run's is {self.config.method!r}")
        return checkpoint

    def save(self, weights: Mapping[str, Tensor], state: Mapping[str, Any], step: int, seconds: float, finished: bool):
        """Write a checkpoint and delete the previous one. A failure leaves the previous one in place."""
        self._check_finite(weights, step)
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
        metadata = {"method": self.config.method, "step": str(step)}
        buffer = io.BytesIO()
        torch.save(dict(state), buffer)
        with explain_os_errors(
            self.path, "The last checkpoint is kept; free some space and run the same command again"
        ):
            files = {
                "weights": self._write(f"weights-{step:08d}.safetensors", safetensors.torch.save(tensors, metadata)),
                "state": self._write(f"state-{step:08d}.pt", buffer.getvalue()),
            }
            checkpoint = Checkpoint(self.config.method, step, seconds, finished, **files)
            write_json(self.path / CHECKPOINT, to_dict(checkpoint))
            self.remove_stale_files()

    def _write(self, name: str, content: bytes) -> CheckpointFile:
        write_atomically(self.path / name, content)
        return CheckpointFile(name, len(content), hashlib.sha256(content).hexdigest())

    def weights(self) -> tuple[dict[str, Tensor], Checkpoint]:
        """Return the weights of the last checkpoint. Works while the run is being trained."""
        content, checkpoint = self.weights_file()
        try:
            return safetensors.torch.load(content), checkpoint
        except safetensors.SafetensorError as error:
            raise GCBError(f"{self.path / checkpoint.weights.name} is not a safetensors file: {error}") from error

    def weights_file(self) -> tuple[bytes, Checkpoint]:
        """Return the content of the weights file of the last checkpoint, for a copy."""
        content, _, checkpoint = self._read("weights")
        return content, checkpoint

    def state(self) -> dict[str, Any]:
        """Return what resuming needs besides the weights."""
        content, path, _ = self._read("state")
        try:
            return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        except Exception as error:  # the hash matches, so this is a crafted file, and may raise anything
            raise GCBError(f"{path} is not a checkpoint's state, or holds more than data") from error

    def remove_stale_files(self) -> None:
        """Delete previous checkpoints and the training process's own half-written files."""
        checkpoint = self.checkpoint()
        kept = {file.name for file in (checkpoint.weights, checkpoint.state) if file} if checkpoint else set()
        temporary = [f".{name}*.tmp" for name in ("weights-", "state-", CONFIG, RECORD, CHECKPOINT, METRICS)]
        for pattern in ("weights-*.safetensors", "state-*.pt", *temporary):
            for path in self.path.glob(pattern):
                if path.name not in kept and not path.is_dir():
                    path.unlink(missing_ok=True)

    def _read(self, attribute: str) -> tuple[bytes, Path, Checkpoint]:
        """Return a file of the last checkpoint, checked against its SHA-256, its path and the checkpoint."""
        for _ in range(READ_ATTEMPTS):
            checkpoint = self.checkpoint()
            if checkpoint is None:
                raise GCBError(f"{self.path} has no checkpoint yet; train it further")
            file: CheckpointFile | None = getattr(checkpoint, attribute)
            if file is None:
                raise GCBError(f"{self.path} has no {attribute}: it is an exported agent, which cannot be resumed")
            path = self.path / file.name
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                continue  # replaced by a newer checkpoint in the meantime, or deleted by hand
            except OSError as error:
                raise GCBError(os_error_message(error)) from error
            if len(content) != file.bytes or hashlib.sha256(content).hexdigest() != file.sha256:
                raise GCBError(f"{path} is damaged: its size or SHA-256 differs from {CHECKPOINT}")
            return content, path, checkpoint
        raise GCBError(f"{path} is missing, but {self.path / CHECKPOINT} names it")

    def _check_finite(self, weights: Mapping[str, Tensor], step: int) -> None:
        broken = [name for name, tensor in weights.items() if not torch.isfinite(tensor).all()]
        if broken:
            raise GCBError(f"{broken[0]} is not finite after step {step}: the run has diverged. {self.advice()}")

    def kept(self) -> str:
        """Return a sentence that says which checkpoint is saved."""
        checkpoint = self.checkpoint()
        kept = f"The checkpoint of step {checkpoint.step} is kept" if checkpoint else "No checkpoint was written yet"
        return f"{kept} in {self.path}"

    def advice(self) -> str:
        """Return a sentence on what may help when a run has diverged."""
        return f"{self.kept()}; a smaller learning_rate, more warmup_steps or a max_grad_norm may help"


def run_exists(path: Path, config: TrainConfig[Any], dataset: DatasetRecord, *, extended: bool = False) -> bool:
    """Return whether the directory holds exactly this run; raise an error if it holds anything else.

    A run that was extended to its number of steps counts only if `extended` is true.
    """
    if not path.exists():
        return False
    if not path.is_dir():
        raise GCBError(f"{path} is a file; accepted: a new or empty directory for the run")
    if not (path / RECORD).is_file():
        # A run killed at its very start leaves its configuration alone.
        unexpected = [name for name in sorted(os.listdir(path)) if name != CONFIG and not name.endswith(".tmp")]
        if unexpected:
            raise GCBError(f"{path} holds other files ({unexpected[0]}); accepted: a new or empty directory")
        return False
    run = Run(path)
    if run.config.microbatches != config.microbatches:
        count = run.config.microbatches
        raise GCBError(
            f"{path} was started with {count} processes or microbatches, not {config.microbatches}. Resume it with "
            f"`torchrun --nproc-per-node {count}`, or in one process with --microbatches {count}"
        )
    found: list[object] = [*differences(to_dict(run.config), to_dict(config))]
    for name in ("fingerprint", "shapes"):
        old, new = (to_dict(getattr(record, name)) for record in (run.dataset, dataset))
        found += differences(old, new, f"the dataset's {name}")
    if run.extended_from and not extended:
        found.append(f"it was extended, after {run.extended_from[-1]:,} steps")
    if found:
        changes = "; ".join(map(str, found))
        raise GCBError(f"{path} holds another run: {changes}. Choose another directory, or use the run's own settings")
    return True


def open_or_create(path: Path, config: TrainConfig[Any], dataset: DatasetRecord, *, extended: bool = False) -> Run:
    """Return the run in a directory, which is created or resumed; the caller holds the directory's lock."""
    if not run_exists(path, config, dataset, extended=extended):
        with explain_os_errors(path):
            write_config(path / CONFIG, config)
            head = {"format": FORMAT, "version": VERSION, "gcb": gcb.__version__}
            write_json(path / RECORD, {**head, "data": to_dict(dataset)})
    run = Run(path)
    if run.checkpoint() is None:
        _check_never_saved(path, config)
    with explain_os_errors(path, "Nothing was lost"):
        run.remove_stale_files()
    return run


def _check_never_saved(path: Path, config: TrainConfig[Any]) -> None:
    """Raise an error if checkpoint.json was deleted: only the first checkpoint's weights can exist without it."""
    for weights in path.glob("weights-*.safetensors"):
        if weights.stem > f"weights-{config.checkpoint_every:08d}":
            raise GCBError(
                f"{path / CHECKPOINT} is missing, but {weights.name} exists: it was deleted. Restore it, or choose "
                "another directory"
            )


def _extended_from(extensions: Any, steps: int, path: Path) -> tuple[int, ...]:
    """Return where a run was extended, without an extension that was recorded but not begun."""
    try:
        return tuple(int(extension["from"]) for extension in extensions if int(extension["to"]) <= steps)
    except (LookupError, TypeError, ValueError) as error:
        raise GCBError(f"{path} is damaged: extended ({error!r})") from error


def _missing_key(expected: Any, given: Any) -> str | None:
    """Return the first key of nested mappings that `given` lacks."""
    for key, value in expected.items() if isinstance(expected, dict) else ():
        if not isinstance(given, dict) or key not in given:
            return key
        missing = _missing_key(value, given[key])
        if missing:
            return f"{key}.{missing}"
    return None


def _from_dict(cls: type[Content], values: Any, path: Path, name: str = "") -> Content:
    try:
        return from_dict(cls, values, name)
    except GCBError as error:
        raise GCBError(f"{path} is damaged: {error}") from error
