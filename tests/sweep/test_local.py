"""Sweeps in real processes: they end, they are stopped, and they go on."""

import os
import signal
from pathlib import Path

import pytest
from small_sweeps import gcb, wait_until, words

from gcb.errors import GCBError
from gcb.files import folder_lock
from gcb.runs import Run
from gcb.sweep.rows import read_rows

STEPS = 150
LONG = (f"steps={STEPS}", "checkpoint_every=1", "log_every=1")
"""Long enough to be met on the way."""


def step_of(run: Path) -> int:
    checkpoint = Run(run).checkpoint() if (run / "run.json").exists() else None
    return checkpoint.step if checkpoint else 0


def is_free(folder: Path) -> bool:
    """Whether nobody holds the folder any more."""
    try:
        with folder_lock(folder):
            return True
    except GCBError:
        return False


def test_two_workers_make_one_table_and_redo_nothing(tmp_path: Path, data_root: Path) -> None:
    out = tmp_path / "out"
    asked = words(out, data_root, "--video", "plain", "video", "--workers", "2")
    assert gcb(*asked) == 0
    rows = [row for row in read_rows([out / "results.csv"]) if row.task == "all" and row.mode == "goal"]
    assert [(row.world, row.video, row.episodes) for row in rows] == [("slide", False, 4), ("slide", True, 4)]
    assert len({row.dataset for row in rows}) == 2
    assert len({row.config for row in rows}) == 1
    before = {path: path.stat().st_mtime_ns for path in sorted((out / "runs").rglob("*"))}
    content = (out / "results.csv").read_bytes()
    (out / "results.csv").unlink()
    assert gcb(*asked) == 0
    assert {path: path.stat().st_mtime_ns for path in sorted((out / "runs").rglob("*"))} == before
    assert (out / "results.csv").read_bytes() == content


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_stopped_sweep_goes_on_where_it_was(tmp_path: Path, data_root: Path, begin, number: signal.Signals) -> None:
    out = tmp_path / "out"
    run = out / "runs" / "slide-blind-s0"
    asked = words(out, data_root, "--modes", "goal", settings=LONG)
    process = begin(*asked)
    wait_until(lambda: step_of(run) >= 3)
    os.kill(process.pid, number)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == (-9 if number == signal.SIGKILL else 130), complaint
    wait_until(lambda: is_free(run), 10)
    reached = step_of(run)
    assert 3 <= reached < STEPS
    assert not (out / "failed" / "slide-blind-s0.txt").exists()
    assert gcb(*asked) == 0
    assert (out / "logs" / "slide-blind-s0.log").read_text().count(" process ") == 2
    assert {row.steps for row in read_rows([out / "results.csv"])} == {STEPS}


def test_a_worker_that_is_killed_is_started_again(tmp_path: Path, data_root: Path, begin) -> None:
    out = tmp_path / "out"
    run, log = out / "runs" / "slide-blind-s0", out / "logs" / "slide-blind-s0.log"
    process = begin(*words(out, data_root, "--modes", "goal", settings=LONG))
    wait_until(lambda: step_of(run) >= 3)
    os.kill(int(log.read_text().split(" process ")[1].split()[0]), signal.SIGKILL)
    said, complaint = process.communicate(timeout=120)
    assert process.returncode == 0, complaint
    assert b"slide-blind-s0 goes on: its process was ended by SIGKILL" in said
    assert log.read_text().count(" process ") == 2
    assert {row.steps for row in read_rows([out / "results.csv"])} == {STEPS}
