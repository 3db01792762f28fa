"""Sweeps in worker processes that finish, are stopped or killed, and resume."""

import os
import signal
import textwrap
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers.faults import blocks_interrupts, wait_until
from helpers.small_sweeps import checkpoint_step, gcb, sweep_args, worker_pid

from gcb.errors import GCBError
from gcb.report.rows import read_rows
from gcb.sweep.pools import Finished, LocalPool
from gcb.sweep.sweep_dir import SweepDir
from gcb.utils.files import directory_lock

RUN = "slide-goal_agnostic_bc-s0"
STEPS = 150
LONG = (f"steps={STEPS}", "checkpoint_every=1", "log_every=1")
"""Long enough to be interrupted."""


def is_free(path: Path) -> bool:
    """Return whether no process holds the lock of a directory."""
    try:
        with directory_lock(path):
            return True
    except GCBError:
        return False


def test_two_workers_write_one_table_and_repeat_nothing(tmp_path: Path, data_root: Path) -> None:
    out = tmp_path / "out"
    arguments = sweep_args(out, data_root, "--video", "off", "on", "--workers", "2")
    assert gcb(*arguments) == 0
    rows = [row for row in read_rows([out / "results.csv"]) if row.task == "all" and row.mode == "goal"]
    assert [(row.env, row.video, row.episodes) for row in rows] == [("slide", False, 4), ("slide", True, 4)]
    assert len({row.dataset_hash for row in rows}) == 2
    assert len({row.config_hash for row in rows}) == 1
    before = {path: path.stat().st_mtime_ns for path in sorted((out / "runs").rglob("*"))}
    content = (out / "results.csv").read_bytes()
    (out / "results.csv").unlink()
    assert gcb(*arguments) == 0
    assert {path: path.stat().st_mtime_ns for path in sorted((out / "runs").rglob("*"))} == before
    assert (out / "results.csv").read_bytes() == content


def test_a_sweep_that_is_stopped_and_then_killed_resumes(tmp_path: Path, data_root: Path, start_gcb) -> None:
    out, step = tmp_path / "out", 0
    run = out / "runs" / RUN
    arguments = sweep_args(out, data_root, "--modes", "goal", overrides=LONG)
    for number, code in ((signal.SIGTERM, 130), (signal.SIGKILL, -9)):
        process = start_gcb(*arguments)
        wait_until(lambda step=step: checkpoint_step(run) >= step + 3)
        os.kill(process.pid, number)
        _, errors = process.communicate(timeout=300)
        assert process.returncode == code, errors
        wait_until(lambda: is_free(run))  # the worker ends with its parent
        assert step + 3 <= checkpoint_step(run) < STEPS
        step = checkpoint_step(run)
        assert not (out / "failed" / f"{RUN}.txt").exists()
    assert gcb(*arguments) == 0
    assert (out / "logs" / f"{RUN}.log").read_text().count(" process ") == 3
    assert {row.steps for row in read_rows([out / "results.csv"])} == {STEPS}


def test_a_killed_worker_is_retried(tmp_path: Path, data_root: Path, start_gcb) -> None:
    out = tmp_path / "out"
    process = start_gcb(*sweep_args(out, data_root, "--modes", "goal", overrides=LONG))
    wait_until(lambda: checkpoint_step(out / "runs" / RUN) >= 3)
    os.kill(worker_pid(out, RUN), signal.SIGKILL)
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert f"{RUN} is retried: its process was killed by SIGKILL".encode() in output
    assert (out / "logs" / f"{RUN}.log").read_text().count(" process ") == 2
    assert {row.steps for row in read_rows([out / "results.csv"])} == {STEPS}


def test_workers_import_plugins(tmp_path: Path, data_root: Path, start_gcb, monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
        from gcb.methods import register
        from gcb.methods.bc import GoalAgnosticBC

        @register
        class Mine(GoalAgnosticBC):
            name = "mine"
    """
    (tmp_path / "own_methods.py").write_text(textwrap.dedent(source))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]]))
    monkeypatch.setenv("GCB_PLUGINS", "own_methods, helpers.slide_env")
    process = start_gcb(*sweep_args(tmp_path / "out", data_root, "--methods", "mine", "--modes", "goal"))
    _, errors = process.communicate()
    assert process.returncode == 0, errors.decode()
    assert {row.method for row in read_rows([tmp_path / "out" / "results.csv"])} == {"mine"}
    monkeypatch.setenv("GCB_PLUGINS", "own_methods, not_there")
    process = start_gcb("methods")
    _, errors = process.communicate()
    assert process.returncode == 2
    assert errors.decode().startswith("gcb: GCB_PLUGINS names 'not_there'")
    assert "Traceback" not in errors.decode()


@dataclass(frozen=True)
class FakeJob:
    """A job that fails with a message, or ends its process."""

    message: str
    name = "fake"

    def run(self, workers: int = 1) -> None:
        if not self.message:
            os._exit(3)
        raise GCBError(self.message)


@pytest.mark.parametrize("message", ["no luck", "x" * 200_000, ""])
def test_the_reason_of_a_failure_reaches_the_sweep(tmp_path: Path, data_root: Path, message: str) -> None:
    sweep_dir = SweepDir(tmp_path / "out")
    with sweep_dir.lock(), closing(LocalPool(sweep_dir, workers=2)) as pool:
        pool.start(FakeJob(message))  # pyright: ignore[reportArgumentType]
        pid = pool._running[0][2].pid
        assert pid is not None
        assert blocks_interrupts(pid), "Ctrl-C would reach a job that is still importing modules"
        assert pool.has_room()
        assert not pool.has_room(2)
        results: list[Finished] = []
        wait_until(lambda: bool(results.extend(pool.finished()) or results))
    assert results[0].died == (not message)
    assert results[0].error == message or "exited with code 3" in str(results[0].error)
    assert "process" in sweep_dir.log("fake").read_text()
