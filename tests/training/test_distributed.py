"""One run in two processes is the run of one process: the same gradients, the same agent, one writer."""

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

TOLERANCE = 1e-6
"""Relative to the largest entry of a gradient: the order of summation is all that differs."""


@pytest.fixture(scope="module")
def data() -> Dataset:
    return tiny_dataset()


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs that two processes have trained."""
    folder = tmp_path_factory.mktemp("team")
    tests = Path(__file__).parents[1]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{tests.parent}{os.pathsep}{tests}"}
    command = [*torchrun, str(tests / "helpers" / "distributed_member.py"), str(folder)]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def assert_close(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor], tolerance: float) -> None:
    assert one.keys() == other.keys()
    for name in one:
        scale = float(one[name].abs().max())
        torch.testing.assert_close(one[name], other[name], rtol=0, atol=tolerance * max(scale, 1e-8), msg=name)


@pytest.mark.parametrize("name", CONFIGS)
def test_gradients_and_weights_are_those_of_one_process(
    team: Path, data: Dataset, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    first, second = (torch.load(team / f"{name}-{rank}.pt", weights_only=True) for rank in (0, 1))
    assert_close(first, second, 0.0)
    alone = first_gradients(replace(CONFIGS[name], microbatches=2), data, tmp_path / "alone")
    assert_close(first, alone, TOLERANCE)
    assert_close(Run(team / name).weights()[0], Run(tmp_path / "alone").weights()[0], 1e-5)
    losses = [[row["actor_loss"] for row in read_metrics(path)] for path in (team / name, tmp_path / "alone")]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_without_pairs_and_noise_the_parts_are_the_whole_batch(team: Path, data: Dataset, tmp_path: Path) -> None:
    whole = first_gradients(CONFIGS["gcbc"], data, tmp_path / "whole")
    assert_close(torch.load(team / "gcbc-0.pt", weights_only=True), whole, TOLERANCE)


def test_all_stop_after_the_same_step_and_go_on(team: Path) -> None:
    assert (team / "stopped-0").exists()
    assert (team / "stopped-1").exists()
    assert_close(Run(team / "stopped").weights()[0], Run(team / "gcb").weights()[0], 0.0)
    rows = [[{**row, "seconds": 0} for row in read_metrics(team / name)] for name in ("stopped", "gcb")]
    assert rows[0] == rows[1]


def test_an_error_of_the_first_is_an_error_of_all(team: Path) -> None:
    texts = {(team / f"refused-{rank}").read_text() for rank in (0, 1)}
    assert len(texts) == 1
    assert "bc holds another run: seed is 0 there and 5 here" in texts.pop()


def test_another_number_of_processes_is_refused(team: Path, data: Dataset) -> None:
    with pytest.raises(GCBError, match=r"begun with 2 processes .* --nproc-per-node 2`, or in one .* --microbatches 2"):
        train(CONFIGS["gcbc"], data, team / "gcbc", quiet=True)
    assert train(replace(CONFIGS["gcbc"], microbatches=2), data, team / "gcbc", quiet=True).start_step == 3


def test_parts_must_fit() -> None:
    with pytest.raises(GCBError, match="batch_size is 8; it must be a multiple of 3 parts of at least 2 each"):
        tiny_config(microbatches=3)
    with pytest.raises(GCBError, match="multiple of 8 parts"):
        tiny_config(microbatches=8)
    with pytest.raises(GCBError, match="microbatches is 4; with 2 processes accepted: 2"):
        config_for_processes(tiny_config(microbatches=4), 2)
    assert config_for_processes(tiny_config(), 2).microbatches == 2
    assert config_for_processes(tiny_config(microbatches=4), 1).microbatches == 4


def test_the_parts_of_a_batch_are_all_of_it() -> None:
    assert SINGLE.rows(8) == slice(0, 8)
    assert [Distributed(rank, 4).rows(8) for rank in range(4)] == [slice(0, 2), slice(2, 4), slice(4, 6), slice(6, 8)]
