"""Two processes in one directory: the second fails with a clear message, and shared results are not lost."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.counting_env import collect_numbers
from helpers.faults import run_forked, running
from helpers.small_runs import analyse_small, run_gcb, small_sweep_args, train_small

from gcb.analysis.analyse import ANALYSIS_DIR
from gcb.envs.spec import EnvSpec
from gcb.evaluation.evaluate import EvalResult, write_result
from gcb.evaluation.rollouts import Outcome
from gcb.runs.evaluations import read_results
from gcb.runs.run_dir import Run
from gcb.sweep.sweep_dir import SweepDir
from gcb.utils.files import directory_lock

WRITERS, RESULTS = 4, 25


@pytest.fixture
def check_second(record: Callable) -> Callable[[str, Callable, Callable, Path], None]:
    """Start a second process once the first has created a file."""

    def check_second(name: str, first: Callable[[], object], second: Callable[[], object], created: Path) -> None:
        with running(first, created.exists):
            ended = run_forked(second)
        assert "in use" in ended.message, ended.output
        record("lock contention", name, 1, "the second process reports that it is in use, and changes nothing")

    return check_second


def test_dataset(check_second: Callable, tmp_path: Path) -> None:
    def job() -> None:
        collect_numbers(tmp_path / "data", 4000, pause=0.02)

    check_second("directory of a dataset", job, job, tmp_path / "data" / ".partial" / "journal.json")


def test_run(check_second: Callable, tmp_path: Path, data: Path) -> None:
    def job() -> None:
        train_small(tmp_path / "run", data, steps=100_000, checkpoint_every=1000)

    check_second("directory of a run", job, job, tmp_path / "run" / "metrics.jsonl")


def test_sweep(check_second: Callable, tmp_path: Path, data: Path) -> None:
    out = tmp_path / "sweep"

    def hold() -> None:
        with SweepDir(out).lock():
            (out / ".locked").touch()
            time.sleep(600)

    def second() -> None:
        run_gcb(*small_sweep_args(out, data.parent))

    check_second("directory of a sweep", hold, second, out / ".locked")


def test_analysis(check_second: Callable, tmp_path: Path, data: Path) -> None:
    run = train_small(tmp_path / "run", data, steps=1)
    out = run / ANALYSIS_DIR

    def hold() -> None:
        out.mkdir()
        with directory_lock(out):
            (out / ".locked").touch()
            time.sleep(600)

    check_second("analysis of a run", hold, lambda: analyse_small(run), out / ".locked")


def test_concurrent_evaluations(tmp_path: Path, data: Path, record: Callable) -> None:
    """Several processes add results to one eval.json."""
    run = train_small(tmp_path / "run", data, steps=1)

    def write(writer: int) -> None:
        for number in range(RESULTS):
            outcomes = [Outcome("task", 1, True)]
            write_result(Run(run), EvalResult(f"mode-{writer}-{number}", EnvSpec("none"), 0, 1, outcomes))

    children = []
    for writer in range(WRITERS):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                write(writer)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * WRITERS
    count = WRITERS * RESULTS
    assert len(read_results(run)) == count
    record("lock contention", f"{WRITERS} evaluations of a run", count, f"all {count} results are in eval.json")
