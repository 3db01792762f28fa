"""Loggers of a run's metrics: metrics.jsonl always, TensorBoard and Weights & Biases on request."""

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
from gcb.utils.files import sync, write_atomically
from gcb.utils.os_errors import explain_os_errors, explain_read_errors
from gcb.utils.text_files import parse_json

KEPT = "The last checkpoint is kept; free some space and run the same command again to resume"


class Logger(Protocol):
    """Writes rows of metrics."""

    def write(self, step: int, row: Mapping[str, float]) -> None: ...

    def sync(self) -> None:
        """Flush all rows to disk; called before every checkpoint."""

    def close(self) -> None: ...


class JsonLines:
    """Writes one JSON object per line, after removing the rows beyond the checkpoint that a run resumes from."""

    def __init__(self, run_dir: Path, last_step: int) -> None:
        self.path = run_dir / METRICS
        with explain_os_errors(self.path):
            rows = [line for line, row in _lines(self.path) if row["step"] <= last_step]
            kept = b"".join(rows)
            if not self.path.exists() or kept != self.path.read_bytes():
                write_atomically(self.path, kept)
            self._file = open(self.path, "ab")  # noqa: SIM115 (closed by close)

    def write(self, step: int, row: Mapping[str, float]) -> None:
        # JSON has neither NaN nor infinity.
        values = {name: value if math.isfinite(value) else None for name, value in row.items()}
        with explain_os_errors(self.path, KEPT):
            self._file.write((json.dumps({"step": step, **values}) + "\n").encode())
            self._file.flush()

    def sync(self) -> None:
        with explain_os_errors(self.path, KEPT):
            sync(self._file)

    def close(self) -> None:
        self._file.close()


def read_metrics(run_dir: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return all rows of a run's metrics, without a last line that is incomplete; a damaged file is an error."""
    return [row for _, row in _lines(Path(run_dir) / METRICS)]


def _lines(path: Path) -> list[tuple[bytes, dict[str, Any]]]:
    """Return the lines of a file with the rows they hold, without a last line that is incomplete."""
    with explain_read_errors(path):
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = parse_json(line)
        except (ValueError, RecursionError):
            row = None
        if line.endswith(b"\n") and isinstance(row, dict) and isinstance(row.get("step"), int) and _is_numeric(row):
            rows.append((line, row))
        elif number < len(lines):
            raise GCBError(f"{path} is damaged in line {number}. Only the plots need this file: delete it")
    return rows


def _is_numeric(row: Mapping[str, Any]) -> bool:
    return all(value is None or (isinstance(value, int | float) and math.isfinite(value)) for value in row.values())


class TensorBoard:
    """Writes event files to RUN/tensorboard."""

    def __init__(self, run_dir: Path, last_step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        # When a run resumes, TensorBoard hides the rows from `purge_step` on.
        self._writer = SummaryWriter(str(run_dir / "tensorboard"), purge_step=last_step + 1)

    def write(self, step: int, row: Mapping[str, float]) -> None:
        for name, value in row.items():
            self._writer.add_scalar(name, value, step)

    def sync(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class WeightsAndBiases:
    """Writes a Weights & Biases run to RUN/wandb; offline, unless the environment variable WANDB_MODE is set."""

    def __init__(self, run_dir: Path, config: Mapping[str, Any]) -> None:
        import wandb  # pyright: ignore[reportMissingImports]

        mode = os.environ.get("WANDB_MODE", "offline")
        self._run = wandb.init(project="gcb", name=run_dir.name, dir=str(run_dir), config=dict(config), mode=mode)

    def write(self, step: int, row: Mapping[str, float]) -> None:
        self._run.log(dict(row), step=step)

    def sync(self) -> None:
        """Weights & Biases writes in the background."""

    def close(self) -> None:
        self._run.finish()


def check_extras(config: TrainConfig[Any]) -> None:
    """Raise if the package of a logger is missing."""
    for name in ("tensorboard", "wandb"):
        if getattr(config, name) and find_spec(name) is None:
            raise GCBError(f"{name} is on but not installed: pip install 'gcb[{name}]', or leave it off.")


def open_loggers(run: Run, last_step: int) -> list[Logger]:
    """Open the loggers of a run that resumes after `last_step`."""
    loggers: list[Logger] = [JsonLines(run.path, last_step)]
    if run.config.tensorboard:
        loggers.append(TensorBoard(run.path, last_step))
    if run.config.wandb:
        loggers.append(WeightsAndBiases(run.path, to_dict(run.config)))
    return loggers
