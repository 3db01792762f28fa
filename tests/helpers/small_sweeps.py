"""Sweeps of runs that take a moment: in this process, or in processes of their own."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gcb.cli.main import main
from gcb.runs.run_dir import Run
from gcb.sweep.folder import Folder
from gcb.sweep.jobs import Job
from gcb.sweep.pool import Ended
from gcb.sweep.worker import do

QUICK = ["steps=4", "batch_size=4", "log_every=2", "checkpoint_every=2", "device=cpu", "method_config.size=8"]


def words(out: Path, data_root: Path, *more: str, settings: tuple[str, ...] = ()) -> list[str]:
    """The words of `gcb sweep` for blind runs in the slide world, or what `more` says instead."""
    defaults = {"--methods": "goal_agnostic_bc", "--worlds": "slide", "--episodes": "4", "--preset": "smoke"}
    given = [word for name, value in defaults.items() if name not in more for word in (name, value)]
    return ["sweep", "--out", str(out), "--data-root", str(data_root), *given, *more, "--set", *QUICK, *settings]


def step_of(run: Path) -> int:
    """Step of a run's last checkpoint."""
    checkpoint = Run(run).checkpoint() if (run / "run.json").exists() else None
    return checkpoint.step if checkpoint else 0


def worker_of(out: Path, name: str) -> int:
    """The process that does a job, or did it last."""
    return int((out / "logs" / f"{name}.log").read_text().rpartition(" process ")[2].split()[0])


def gcb(*arguments: str) -> int:
    """Run a command here; its exit code."""
    try:
        main(list(arguments))
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


@pytest.fixture
def begin() -> Iterator[Callable[..., subprocess.Popen]]:
    """Runs a command in a process of its own, which does not outlive the test."""
    begun: list[subprocess.Popen] = []

    def start(*arguments: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "gcb", *arguments]
        begun.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return begun[-1]

    yield start
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_until(condition: Callable[[], bool], seconds: float = 300) -> None:
    """The limit is for machines with much else to do; alone, a second or two are enough."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


class InlinePool:
    """Does a job in this process when it is started. `deaths` says how often each job's process dies before."""

    width = 2

    def __init__(self, folder: Folder, workers: int = 1) -> None:
        self.folder, self.started, self.deaths = folder, [], {}
        self._over: list[Ended] = []

    def room(self, processes: int = 1) -> bool:
        return not self._over

    def start(self, job: Job, processes: int = 1) -> None:
        self.started.append((job.name, processes))
        if self.deaths.get(job.name, 0) > 0:
            self.deaths[job.name] -= 1
            self._over.append(Ended(job, "it was struck by lightning", died=True))
        else:
            self._over.append(Ended(job, do(self.folder.path, job.name, 1)))

    def ended(self) -> Iterator[Ended]:
        over, self._over = self._over, []
        return iter(over)

    def stop(self, patience: float) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """`gcb sweep` does its jobs in this process."""
    monkeypatch.setattr("gcb.sweep.local.LocalPool", InlinePool)
    monkeypatch.setattr("gcb.sweep.conduct.POLL_SECONDS", 0.0)
