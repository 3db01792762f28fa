"""Where a run's figures go: metrics.jsonl always, TensorBoard and Weights & Biases by choice."""

import json
import math
import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from gcb.errors import GCBError
from gcb.runs.config import TrainConfig
from gcb.runs.run_dir import METRICS, Run
from gcb.utils.dataclass_io import to_dict
from gcb.utils.files import explain_os_errors, sync, write_atomically

KEPT = "The last checkpoint is kept; once there is room, the same command goes on"


class Logger(Protocol):
    """Takes rows of figures."""

    def write(self, step: int, row: Mapping[str, float]) -> None: ...

    def sync(self) -> None:
        """Make sure of all rows so far; called before every checkpoint."""

    def close(self) -> None: ...


class JsonLines:
    """One JSON object per line. Rows from after the checkpoint that a run goes on from are cut off first."""

    def __init__(self, folder: Path, last_step: int) -> None:
        self.path = folder / METRICS
        with explain_os_errors(self.path):
            rows = [line for line, row in _lines(self.path) if row["step"] <= last_step]
            kept = b"".join(rows)
            if not self.path.exists() or kept != self.path.read_bytes():
                write_atomically(self.path, kept)
            self._file = open(self.path, "ab")  # noqa: SIM115 (closed by close)

    def write(self, step: int, row: Mapping[str, float]) -> None:
        # JSON knows neither NaN nor infinity.
        plain = {name: value if math.isfinite(value) else None for name, value in row.items()}
        with explain_os_errors(self.path, KEPT):
            self._file.write((json.dumps({"step": step, **plain}) + "\n").encode())
            self._file.flush()

    def sync(self) -> None:
        with explain_os_errors(self.path, KEPT):
            sync(self._file)

    def close(self) -> None:
        self._file.close()


def read_metrics(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """All rows of a run's metrics; a last line that is not whole yet is left out, a damaged file is an error."""
    return [row for _, row in _lines(Path(folder) / METRICS)]


def _lines(path: Path) -> list[tuple[bytes, dict[str, Any]]]:
    """Return the lines of a file with the rows they hold, without a last line that is incomplete."""
    try:
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    except OSError as error:
        raise GCBError(f"{path} could not be read: {error.strerror}") from error
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if line.endswith(b"\n") and isinstance(row, dict) and isinstance(row.get("step"), int):
            rows.append((line, row))
        elif number < len(lines):
            raise GCBError(f"{path} is damaged in line {number}. Only the plots need this file: delete it")
    return rows


class TensorBoard:
    """Event files in RUN/tensorboard."""

    def __init__(self, folder: Path, last_step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        # Event files of a run that is gone on with hide what they hold from `purge_step` on.
        self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=last_step + 1)

    def write(self, step: int, row: Mapping[str, float]) -> None:
        for name, value in row.items():
            self._writer.add_scalar(name, value, step)

    def sync(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class WeightsAndBiases:
    """A Weights & Biases run in RUN/wandb; offline, unless the environment variable WANDB_MODE says otherwise."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        import wandb  # pyright: ignore[reportMissingImports]

        mode = os.environ.get("WANDB_MODE", "offline")
        self._run = wandb.init(project="gcb", name=folder.name, dir=str(folder), config=dict(config), mode=mode)

    def write(self, step: int, row: Mapping[str, float]) -> None:
        self._run.log(dict(row), step=step)

    def sync(self) -> None:
        """It writes in its own time."""

    def close(self) -> None:
        self._run.finish()


def check_extras(config: TrainConfig[Any]) -> None:
    """Say which package is missing for the loggers asked for."""
    for name in ("tensorboard", "wandb"):
        if getattr(config, name) and find_spec(name) is None:
            raise GCBError(f"{name} is on, but not installed: pip install 'gcb[{name}]', or leave it off.")


def open_loggers(run: Run, last_step: int) -> list[Logger]:
    """The loggers that a run asks for, to be written to from `last_step` on."""
    loggers: list[Logger] = [JsonLines(run.path, last_step)]
    if run.config.tensorboard:
        loggers.append(TensorBoard(run.path, last_step))
    if run.config.wandb:
        loggers.append(WeightsAndBiases(run.path, to_dict(run.config)))
    return loggers
