"""Two processes train the same agent as one process: the same gradients, one writer."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from helpers.distributed_member import CONFIGS, first_gradients
from helpers.tiny import tiny_config, tiny_dataset

from gcb.data import Dataset
from gcb.errors import GCBError
from gcb.runs.run_dir import Run
from gcb.training.distributed import SINGLE, Distributed, config_for_processes
from gcb.training.loggers import read_metrics
from gcb.training.trainer import train

TOLERANCE = 3e-6
"""Relative to the largest entry of a gradient: only the order of summation differs."""


@pytest.fixture(scope="module")
def data() -> Dataset:
    return tiny_dataset()


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of runs trained by two processes."""
    path = tmp_path_factory.mktemp("distributed")
    tests = Path(__file__).parents[1]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{tests.parent}{os.pathsep}{tests}"}
    command = [*torchrun, str(tests / "helpers" / "distributed_member.py"), str(path)]
    finished = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=600, check=False)
    assert finished.returncode == 0, finished.stderr
    return path


def assert_close(actual: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], tolerance: float) -> None:
    assert actual.keys() == expected.keys()
    for name in actual:
        scale = float(actual[name].abs().max())
        torch.testing.assert_close(actual[name], expected[name], rtol=0, atol=tolerance * max(scale, 1e-8), msg=name)


@pytest.mark.parametrize("name", CONFIGS)
def test_gradients_and_weights_match_a_single_process(
    two_processes: Path, data: Dataset, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    first, second = (torch.load(two_processes / f"{name}-{rank}.pt", weights_only=True) for rank in (0, 1))
    assert_close(first, second, 0.0)
    single = first_gradients(replace(CONFIGS[name], microbatches=2), data, tmp_path / "single")
    assert_close(first, single, TOLERANCE)
    assert_close(Run(two_processes / name).weights()[0], Run(tmp_path / "single").weights()[0], 1e-5)
    losses = [[row["actor_loss"] for row in read_metrics(path)] for path in (two_processes / name, tmp_path / "single")]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_without_pairs_and_noise_microbatches_match_the_whole_batch(
    two_processes: Path, data: Dataset, tmp_path: Path
) -> None:
    whole = first_gradients(CONFIGS["gcbc"], data, tmp_path / "whole")
    assert_close(torch.load(two_processes / "gcbc-0.pt", weights_only=True), whole, TOLERANCE)


def test_all_processes_stop_after_the_same_step_and_resume(two_processes: Path) -> None:
    assert (two_processes / "stopped-0").exists()
    assert (two_processes / "stopped-1").exists()
    assert_close(Run(two_processes / "stopped").weights()[0], Run(two_processes / "gcb").weights()[0], 0.0)
    rows = [[{**row, "seconds": 0} for row in read_metrics(two_processes / name)] for name in ("stopped", "gcb")]
    assert rows[0] == rows[1]


def test_an_error_of_the_main_process_is_raised_in_all(two_processes: Path) -> None:
    texts = {(two_processes / f"refused-{rank}").read_text() for rank in (0, 1)}
    assert len(texts) == 1
    assert "seed is 0, not 5" in texts.pop()


def test_another_number_of_processes_is_refused(two_processes: Path, data: Dataset) -> None:
    with pytest.raises(GCBError, match=r"--nproc-per-node 2.* --microbatches 2"):
        train(CONFIGS["gcbc"], data, two_processes / "gcbc", quiet=True)
    assert train(replace(CONFIGS["gcbc"], microbatches=2), data, two_processes / "gcbc", quiet=True).start_step == 3


def test_microbatches_must_divide_the_batch_and_match_the_processes() -> None:
    unit = r"\(2 × transitions_per_episode × microbatches\)"
    for microbatches, each in ((3, 12), (4, 16)):
        with pytest.raises(GCBError, match=rf"batch_size is 8; it must be a multiple of {each} {unit}"):
            tiny_config(microbatches=microbatches)
    with pytest.raises(GCBError, match="microbatches is 4; with 2 processes"):
        config_for_processes(tiny_config(microbatches=4, batch_size=16), 2)
    assert config_for_processes(tiny_config(), 2).microbatches == 2
    assert config_for_processes(tiny_config(microbatches=4, transitions_per_episode=1), 1).microbatches == 4


def test_processes_divide_the_rows_of_a_batch() -> None:
    assert SINGLE.rows(8) == slice(0, 8)
    assert [Distributed(rank, 4).rows(8) for rank in range(4)] == [slice(0, 2), slice(2, 4), slice(4, 6), slice(6, 8)]
