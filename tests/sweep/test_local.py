"""Sweeps in real processes: they end, they are stopped, and they go on."""

import os
import signal
import textwrap
from pathlib import Path

import pytest
from helpers.small_sweeps import gcb, step_of, wait_until, words, worker_of

from gcb.errors import GCBError
from gcb.report.rows import read_rows
from gcb.utils.files import directory_lock

RUN = "slide-blind-s0"
STEPS = 150
LONG = (f"steps={STEPS}", "checkpoint_every=1", "log_every=1")
"""Long enough to be met on the way."""


def is_free(folder: Path) -> bool:
    """Whether nobody holds the folder any more."""
    try:
        with directory_lock(folder):
            return True
    except GCBError:
        return False


def test_two_workers_make_one_table_and_redo_nothing(tmp_path: Path, data_root: Path) -> None:
    out = tmp_path / "out"
    asked = words(out, data_root, "--video", "plain", "video", "--workers", "2")
    assert gcb(*asked) == 0
    rows = [row for row in read_rows([out / "results.csv"]) if row.task == "all" and row.mode == "goal"]
    assert [(row.env, row.video, row.episodes) for row in rows] == [("slide", False, 4), ("slide", True, 4)]
    assert len({row.dataset_hash for row in rows}) == 2
    assert len({row.config_hash for row in rows}) == 1
    before = {path: path.stat().st_mtime_ns for path in sorted((out / "runs").rglob("*"))}
    content = (out / "results.csv").read_bytes()
    (out / "results.csv").unlink()
    assert gcb(*asked) == 0
    assert {path: path.stat().st_mtime_ns for path in sorted((out / "runs").rglob("*"))} == before
    assert (out / "results.csv").read_bytes() == content


def test_a_sweep_that_is_stopped_and_then_killed_goes_on_where_it_was(tmp_path: Path, data_root: Path, begin) -> None:
    out, reached = tmp_path / "out", 0
    run = out / "runs" / RUN
    asked = words(out, data_root, "--modes", "goal", settings=LONG)
    for number, code in ((signal.SIGTERM, 130), (signal.SIGKILL, -9)):
        process = begin(*asked)
        wait_until(lambda reached=reached: step_of(run) >= reached + 3)
        os.kill(process.pid, number)
        _, complaint = process.communicate(timeout=300)
        assert process.returncode == code, complaint
        wait_until(lambda: is_free(run))  # its worker ends with it
        assert reached + 3 <= step_of(run) < STEPS
        reached = step_of(run)
        assert not (out / "failed" / f"{RUN}.txt").exists()
    assert gcb(*asked) == 0
    assert (out / "logs" / f"{RUN}.log").read_text().count(" process ") == 3
    assert {row.steps for row in read_rows([out / "results.csv"])} == {STEPS}


def test_a_worker_that_is_killed_is_started_again(tmp_path: Path, data_root: Path, begin) -> None:
    out = tmp_path / "out"
    process = begin(*words(out, data_root, "--modes", "goal", settings=LONG))
    wait_until(lambda: step_of(out / "runs" / RUN) >= 3)
    os.kill(worker_of(out, RUN), signal.SIGKILL)
    said, complaint = process.communicate(timeout=300)
    assert process.returncode == 0, complaint
    assert f"{RUN} goes on: its process was ended by SIGKILL".encode() in said
    assert (out / "logs" / f"{RUN}.log").read_text().count(" process ") == 2
    assert {row.steps for row in read_rows([out / "results.csv"])} == {STEPS}


def test_workers_know_the_methods_of_plugins(
    tmp_path: Path, data_root: Path, begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """
        from gcb.methods import register
        from gcb.methods.bc import GoalAgnosticBC

        @register
        class Mine(GoalAgnosticBC):
            name = "mine"
    """
    (tmp_path / "own_methods.py").write_text(textwrap.dedent(source))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]]))
    monkeypatch.setenv("GCB_PLUGINS", "own_methods")
    process = begin(*words(tmp_path / "out", data_root, "--methods", "mine", "--modes", "goal"))
    _, said = process.communicate()
    assert process.returncode == 0, said.decode()
    assert {row.method for row in read_rows([tmp_path / "out" / "results.csv"])} == {"mine"}
    monkeypatch.setenv("GCB_PLUGINS", "own_methods, not_there")
    process = begin("methods")
    _, said = process.communicate()
    assert process.returncode == 2
    assert said.decode().strip() == (
        "gcb: GCB_PLUGINS names 'not_there', which cannot be imported: No module named 'not_there'."
    )
