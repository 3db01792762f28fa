"""Jobs in several processes: their order, their errors, and what Ctrl-C does at any moment."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from helpers.faults import blocks_interrupts, children_of, is_running, wait_until

from gcb.errors import GCBError
from gcb.utils.workers import LOOK_AHEAD, run_in_order


class Recorder:
    """Marks every job that it starts by a file, and takes as long as its configuration says."""

    renderer = ""

    def __init__(self, config: dict[str, Any]) -> None:
        if config.get("broken"):
            raise GCBError("this runner cannot be built")
        self.config, self.path = config, Path(config["path"])

    def run(self, index: int) -> tuple[int, int]:
        (self.path / str(index)).touch()
        time.sleep(self.config.get("seconds", 0.0) if index else 0.2)
        if index == self.config.get("fails_at"):
            raise ZeroDivisionError("in job", index)
        if index == self.config.get("dies_at"):
            os._exit(9)
        return index, os.getpid()

    def close(self) -> None:
        pass


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_order(tmp_path: Path, workers: int) -> None:
    with closing(run_in_order(Recorder, {"path": str(tmp_path)}, 0, workers)) as results:
        indices, processes = zip(*islice(results, 12), strict=True)
    assert indices == tuple(range(12))
    assert len(set(processes)) == workers
    started = len(list(tmp_path.iterdir()))
    assert started <= 12 + LOOK_AHEAD * workers
    assert not any(is_running(process) for process in processes if process != os.getpid())


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"fails_at": 3}, ZeroDivisionError, "in job"),
        ({"dies_at": 3}, GCBError, "a worker process died"),
        ({"broken": True}, GCBError, "this runner cannot be built"),
    ],
)
def test_errors_reach_the_caller(tmp_path: Path, change: dict[str, Any], error: type[Exception], message: str) -> None:
    results = run_in_order(Recorder, {"path": str(tmp_path), **change}, 0, 2)
    with closing(results), pytest.raises(error, match=message) as caught:
        list(islice(results, 8))
    if error is ZeroDivisionError:
        assert 'raise ZeroDivisionError("in job", index)' in str(caught.value.__cause__)


PROGRAM = """
import signal, sys
from contextlib import closing
from test_workers import Recorder
from gcb.utils.workers import run_in_order

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored if the tests run in the background of a shell
    try:
        with closing(run_in_order(Recorder, {"path": sys.argv[1], "seconds": 600.0}, 1, 2)) as results:
            print("started", flush=True)
            next(results)
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.parametrize("moment", ["starting", "running"])
def test_ctrl_c_ends_all_processes_at_once_and_silently(tmp_path: Path, moment: str) -> None:
    """Also while the workers are still importing modules, where Python would print a traceback of its own."""
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "jobs").mkdir()
    here = Path(__file__).parent
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here), str(here.parent), str(here.parents[1])])}
    command = [sys.executable, str(tmp_path / "program.py"), str(tmp_path / "jobs")]
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True, start_new_session=True)
    wanted = 0 if moment == "starting" else 2
    wait_until(lambda: len(children_of(process.pid)) >= 2 and len(os.listdir(tmp_path / "jobs")) >= wanted)
    children, start = children_of(process.pid), time.monotonic()
    assert all(map(blocks_interrupts, children)), "Ctrl-C would reach a worker"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "")
    assert time.monotonic() - start < 30  # a job takes ten minutes; the limit is for busy machines
    wait_until(lambda: not any(map(is_running, children)))
