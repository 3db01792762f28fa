"""Small datasets, runs and sweeps for fault injection, in an environment without a simulator."""

import os
import warnings
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any
from unittest import mock

from gcb.analysis.analyse import AnalysisSize, analyse
from gcb.cli.main import main
from gcb.data import Dataset, write_dataset
from gcb.report.rows import read_rows
from gcb.runs.config import TrainConfig
from gcb.runs.run_dir import Run
from gcb.training.collapse import CollapseWarning
from gcb.training.loggers import read_metrics
from gcb.training.trainer import OnCheckpoint, train
from helpers.faults import forked_workers
from helpers.slide_env import ENV_ANY_ACTION
from helpers.small_sweeps import sweep_args
from helpers.tiny import tiny_config, tiny_dataset

TESTS = Path(__file__).parents[1]
SMALL_ANALYSIS = AnalysisSize(samples=6, pool=20, scenes=2, points=12, rows=1)


def write_slide_dataset(path: Path, episodes: int = 4, seed: int = 0) -> Path:
    """Write a dataset of the slide environment, in which agents can be evaluated."""
    arrays = tiny_dataset(episodes=episodes, seed=seed).arrays()
    write_dataset(Dataset.from_arrays(**arrays, config={"env": ENV_ANY_ACTION}), path)
    return path


def small_config(**changes: Any) -> TrainConfig[Any]:
    """Return the configuration of a run with a checkpoint after every step."""
    defaults = {"steps": 12, "batch_size": 4, "log_every": 1, "checkpoint_every": 1, "method_config": {"size": 8}}
    return tiny_config("gcb", **{**defaults, **changes})


def train_small(out: Path, data: Path, on_checkpoint: OnCheckpoint | None = None, **changes: Any) -> Path:
    """Train a small run, or resume it, and return its directory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)  # it is too small to learn anything
        train(small_config(**changes), data, out, quiet=True, on_checkpoint=on_checkpoint)
    return out


def content_of_run(run: Path) -> tuple[Any, ...]:
    """Return all that a run has learned, to compare bit by bit: the weights, and the metrics except the time."""
    weights, checkpoint = Run(run).weights()  # not the file's bytes: safetensors orders its metadata at random
    arrays = {name: tensor.numpy().tobytes() for name, tensor in weights.items()}
    metrics = [{**row, "seconds": 0} for row in read_metrics(run)]
    return checkpoint.step, checkpoint.finished, arrays, metrics


def analyse_small(run: Path, seed: int = 0) -> None:
    analyse(run, size=SMALL_ANALYSIS, seed=seed, workers=1, quiet=True)


def run_gcb(*arguments: object) -> None:
    """Run a command; `gcb sweep` forks its workers, and they can import the tests' environments."""
    with forked_workers(), mock.patch.dict(os.environ, PYTHONPATH=str(TESTS)):
        main([str(argument) for argument in arguments])


def small_sweep_args(out: Path, data_root: Path, runs: int = 1) -> list[str]:
    """Return the arguments of a sweep of small runs, all at once, with a checkpoint after every step."""
    options = ("--modes", "goal", "--episodes", "3", "--seeds", str(runs), "--workers", str(runs))
    overrides = ("steps=6", "log_every=1", "checkpoint_every=1", "threads=1")
    return sweep_args(out, data_root, *options, overrides=overrides)


def results_of_sweep(out: Path) -> list[tuple[Any, ...]]:
    """Return the rows of results.csv without the time."""
    return [astuple(replace(row, train_seconds=0.0)) for row in read_rows([out / "results.csv"])]
