"""Collecting through interrupts, dead workers and damaged files; tests/faults has kill -9 and full disks."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.counting_env import CountingRunner, collect_numbers, length_of
from helpers.faults import AT_WRITE, children_of, die_at_write, files_of, is_running, run_forked, wait_until

from gcb.errors import GCBError


def test_an_interrupt_keeps_every_complete_episode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: CountingRunner, index: int):
        if index == 4:
            raise KeyboardInterrupt
        return real(self, index)

    real = CountingRunner.run
    monkeypatch.setattr(CountingRunner, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        collect_numbers(tmp_path / "data", checkpoint_seconds=1e9)
    monkeypatch.undo()
    assert collect_numbers(tmp_path / "data").start_transitions == sum(length_of(index) for index in range(4))


def test_an_unfinished_dataset_is_not_mixed_with_another(tmp_path: Path) -> None:
    ended = run_forked(die_at_write(40, lambda: collect_numbers(tmp_path / "data")))
    before = files_of(tmp_path / "data")
    assert ended.code == AT_WRITE
    with pytest.raises(GCBError, match="another, unfinished dataset: transitions is 40 there and 41 here"):
        collect_numbers(tmp_path / "data", 41)
    assert files_of(tmp_path / "data") == before


def test_a_truncated_partial_file_is_refused(tmp_path: Path) -> None:
    run_forked(die_at_write(40, lambda: collect_numbers(tmp_path / "data")))
    os.truncate(tmp_path / "data/.partial/frames.npy", 130)
    with pytest.raises(GCBError, match=r"frames\.npy is damaged: it has 130 bytes"):
        collect_numbers(tmp_path / "data")


def test_modified_rows_of_an_unfinished_dataset_are_refused(tmp_path: Path) -> None:
    run_forked(die_at_write(40, lambda: collect_numbers(tmp_path / "data")))
    with open(tmp_path / "data/.partial/actions.npy", "r+b") as handle:
        handle.seek(140)
        handle.write(b"\x7f")
    with pytest.raises(GCBError, match=r"actions\.npy is damaged: its rows differ from the SHA-256 in the journal"):
        collect_numbers(tmp_path / "data")


def test_a_dead_worker_is_reported_and_nothing_lost(tmp_path: Path) -> None:
    with pytest.raises(GCBError, match="worker process died"):
        collect_numbers(tmp_path / "data", 60, workers=2, die_at=3)
    # In this process the same episode does not die.
    collect_numbers(tmp_path / "data", 60, workers=1, die_at=3)
    collect_numbers(tmp_path / "uninterrupted", 60, workers=1, die_at=3)
    assert files_of(tmp_path / "data") == files_of(tmp_path / "uninterrupted")


COMMAND = """
from pathlib import Path
from helpers.counting_env import collect_numbers
if __name__ == "__main__":
    collect_numbers(Path({out!r}), 400, workers=2, pause=0.02)
"""


def test_kill_9_of_a_parallel_collection(tmp_path: Path) -> None:
    """The workers end with their parent, the next call resumes, and the bytes match an uninterrupted collection."""
    out, script = tmp_path / "data", tmp_path / "command.py"
    script.write_text(COMMAND.format(out=str(out)))
    paths = os.pathsep.join(str(Path(__file__).parents[level]) for level in (1, 2))  # tests/helpers, gcb
    environment = {**os.environ, "PYTHONPATH": paths}
    process = subprocess.Popen([sys.executable, str(script)], env=environment)
    try:
        journal = out / ".partial" / "journal.json"
        wait_until(lambda: journal.is_file() and json.loads(journal.read_bytes())["transitions"] > 40)
        with pytest.raises(GCBError, match="in use"):
            collect_numbers(out, 400, pause=0.02)
        children = children_of(process.pid)
        assert len(children) >= 2
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    wait_until(lambda: not any(map(is_running, children)))

    again = collect_numbers(out, 400, workers=2, pause=0.02)
    assert again.start_transitions > 40
    collect_numbers(tmp_path / "uninterrupted", 400, workers=1, pause=0.02)
    assert files_of(out) == files_of(tmp_path / "uninterrupted")
