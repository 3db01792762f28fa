"""The small worlds, datasets and runs on which faults are tried: those of the tests."""

import multiprocessing
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from reliability.attempts import ForkedProcess, command

TESTS = Path(__file__).parents[1] / "tests"
for folder in (TESTS, TESTS / "data", TESTS / "sweep"):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))

from helpers.counting_env import collect_numbers  # noqa: E402 (the tests' folder is on the path only now)
from helpers.faults import dying_at, files_of  # noqa: E402
from helpers.slide_env import ENV  # noqa: E402
from helpers.tiny import tiny_config, tiny_dataset  # noqa: E402

from gcb.analysis.analyse import AnalysisSize  # noqa: E402
from gcb.data import Dataset, write_dataset  # noqa: E402
from gcb.runs.config import TrainConfig  # noqa: E402
from gcb.runs.run_dir import Run  # noqa: E402
from gcb.training.loggers import read_metrics  # noqa: E402
from gcb.training.trainer import train  # noqa: E402

__all__ = ["collect_numbers", "dying_at", "files_of", "write_dataset"]

STEPS = 12
LITTLE = AnalysisSize(samples=6, pool=20, scenes=2, points=12, rows=1)
"""An analysis of a moment."""
SIZES = (
    "steps=6",
    "batch_size=4",
    "log_every=1",
    "checkpoint_every=1",
    "device=cpu",
    "method_config.size=8",
    "threads=1",
)


def slide_data(folder: Path, seed: int = 0) -> Path:
    """A dataset of a world without a simulator, in which agents can be evaluated."""
    arrays = tiny_dataset(episodes=4, seed=seed).arrays()
    write_dataset(Dataset.from_arrays(**arrays, config={"env": ENV, "options": {"check_actions": False}}), folder)
    return folder


def small_config(**changes: Any) -> TrainConfig[Any]:
    """A run that makes sure of every step."""
    given = {"steps": STEPS, "batch_size": 4, "log_every": 1, "checkpoint_every": 1, "method_config": {"size": 8}}
    return tiny_config("gcb", **{**given, **changes})


def trained(folder: Path, data: Path, **changes: Any) -> Path:
    """A finished run."""
    train(small_config(**changes), data, folder, quiet=True)
    return folder


def learned(run: Path) -> tuple[Any, ...]:
    """All that a run has learned, to compare bit by bit: weights, and every figure but the time."""
    weights, checkpoint = Run(run).weights()  # not the file's bytes: safetensors orders its metadata at random
    figures = [{**line, "seconds": 0} for line in read_metrics(run)]
    plain = {name: tensor.numpy().tobytes() for name, tensor in weights.items()}
    return checkpoint.step, checkpoint.finished, plain, figures


def sweep_words(out: Path, data_root: Path, seeds: int = 2, workers: int = 2) -> tuple[object, ...]:
    """The words of a `gcb sweep` of small runs in the world without a simulator."""
    what = (
        "--methods",
        "goal_agnostic_bc",
        "--envs",
        "slide",
        "--preset",
        "smoke",
        "--modes",
        "goal",
        "--episodes",
        3,
    )
    how = ("--seeds", seeds, "--workers", workers)
    return ("sweep", "--out", out, "--data-root", data_root, *what, *how, "--overrides", *SIZES)


def sweep(out: Path, data_root: Path, seeds: int = 2, workers: int = 2) -> None:
    """Run that sweep, with forked workers."""
    with forked_workers():
        command(*sweep_words(out, data_root, seeds, workers))()


@contextmanager
def forked_workers() -> Iterator[None]:
    """`gcb sweep` forks its workers; they find the tests' worlds."""
    with (
        mock.patch("gcb.sweep.pools.CONTEXT", SimpleNamespace(Pipe=multiprocessing.Pipe, Process=ForkedProcess)),
        mock.patch.dict(os.environ, PYTHONPATH=str(TESTS)),
    ):
        yield


def rows_of_sweep(out: Path) -> list[tuple[Any, ...]]:
    """results.csv, but for the time."""
    from dataclasses import astuple, replace

    from gcb.report.rows import read_rows

    return [astuple(replace(line, train_seconds=0.0)) for line in read_rows([out / "results.csv"])]
