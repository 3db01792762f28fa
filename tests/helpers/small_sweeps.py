"""Sweeps of tiny runs, in this process or in worker processes."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gcb.cli.main import main
from gcb.runs.run_dir import Run
from gcb.sweep.jobs import Job
from gcb.sweep.pools import Finished, run_logged
from gcb.sweep.sweep_dir import SweepDir

TINY = ["steps=4", "batch_size=4", "log_every=2", "checkpoint_every=2", "device=cpu", "method_config.size=8"]


def sweep_args(out: Path, data_root: Path, *options: str, overrides: tuple[str, ...] = ()) -> list[str]:
    """Return the arguments of `gcb sweep` for goal-agnostic BC in the slide environment; `options` take precedence."""
    defaults = {"--methods": "goal_agnostic_bc", "--envs": "slide", "--episodes": "4", "--preset": "smoke"}
    given = [word for name, value in defaults.items() if name not in options for word in (name, value)]
    common = ["sweep", "--out", str(out), "--data-root", str(data_root)]
    return [*common, *given, *options, "--overrides", *TINY, *overrides]


def checkpoint_step(run: Path) -> int:
    """Return the step of a run's last checkpoint, 0 before the first."""
    checkpoint = Run(run).checkpoint() if (run / "run.json").exists() else None
    return checkpoint.step if checkpoint else 0


def worker_pid(out: Path, name: str) -> int:
    """Return the id of the process that runs a job, or ran it last."""
    return int((out / "logs" / f"{name}.log").read_text().rpartition(" process ")[2].split()[0])


def gcb(*arguments: str) -> int:
    """Run a command in this process and return its exit code."""
    try:
        main(list(arguments))
    except SystemExit as error:
        return int(error.code or 0)
    return 0


@pytest.fixture
def start_gcb() -> Iterator[Callable[..., subprocess.Popen]]:
    """Start commands in processes that do not outlive the test."""
    processes: list[subprocess.Popen] = []

    def start(*arguments: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "gcb", *arguments]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return processes[-1]

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


class InlinePool:
    """Runs a job in this process when it is started. `deaths` says how often the process of each job dies first."""

    max_workers = 2

    def __init__(self, sweep_dir: SweepDir, workers: int = 1) -> None:
        self.sweep_dir, self.started, self.deaths = sweep_dir, [], {}
        self._finished: list[Finished] = []

    def has_room(self, workers: int = 1) -> bool:
        return not self._finished

    def start(self, job: Job, workers: int = 1) -> None:
        self.started.append((job.name, workers))
        if self.deaths.get(job.name, 0) > 0:
            self.deaths[job.name] -= 1
            self._finished.append(Finished(job, "out of memory", died=True))
        else:
            self._finished.append(Finished(job, run_logged(job, self.sweep_dir.log(job.name))))

    def finished(self) -> Iterator[Finished]:
        finished, self._finished = self._finished, []
        return iter(finished)

    def stop(self, timeout: float) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `gcb sweep` run its jobs in this process."""
    monkeypatch.setattr("gcb.sweep.pools.LocalPool", InlinePool)
    monkeypatch.setattr("gcb.sweep.scheduler.POLL_SECONDS", 0.0)
