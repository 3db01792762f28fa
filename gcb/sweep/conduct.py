"""What of a sweep runs next, what is tried again, and what has come of it."""

import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gcb.sweep.board import Board
from gcb.sweep.data_job import DataJob
from gcb.sweep.folder import Folder
from gcb.sweep.jobs import Job
from gcb.sweep.pool import Ended, Pool
from gcb.sweep.results import Results
from gcb.sweep.run_job import RunJob

POLL_SECONDS = 0.2
PATIENCE = 60.0
"""Seconds that a stopped sweep gives its workers to finish a step and save it."""


class Plan:
    """The jobs of a sweep, with what is known of each before it starts."""

    def __init__(self, datasets: Iterable[DataJob], runs: Sequence[RunJob]) -> None:
        """Datasets that no unfinished run waits for are left out, unless they are there."""
        datasets = list(datasets)
        self.states = {job.name: job.state() for job in (*datasets, *runs)}
        needed = {job.data for job in runs if self.states[job.name].word != "done"}
        self.datasets = [job for job in datasets if job.folder in needed or self.states[job.name].word == "done"]
        self.runs = runs

    @property
    def jobs(self) -> list[Job]:
        """Datasets first."""
        return [*self.datasets, *self.runs]

    def unfinished(self) -> list[Job]:
        return [job for job in self.jobs if self.states[job.name].word != "done"]


class Conductor:
    """Starts jobs where there is room, in order, each when its dataset is there."""

    def __init__(self, plan: Plan, folder: Folder, pool: Pool, board: Board, retries: int) -> None:
        self.plan, self.folder, self.pool, self.board, self.retries = plan, folder, pool, board, retries
        self.results = Results(folder)
        self.waiting = plan.unfinished()
        self.ready = {job.folder for job in plan.datasets if job not in self.waiting}
        self.lost: dict[Path, str] = {}
        self.running: set[str] = set()
        self.failed: dict[str, str] = {}
        self.deaths: dict[str, int] = {}

    def conduct(self) -> dict[str, str]:
        """Do everything; return the reason of each failure, by the job's name. Ctrl-C and SIGTERM stop it in order.

        The caller holds the folder.
        """
        with _terminated_is_interrupted(), self.board:
            for job in self.plan.jobs:
                self.folder.forget_failure(job.name)
                # Whatever has become of the file since; but where another run stands, the file tells of that one.
                if self.plan.states[job.name].word != "impossible":
                    self.folder.write_job(job)
            self._write_results()
            try:
                while self.waiting or self.running:
                    self._start_what_can()
                    for one in self.pool.ended():
                        self._take(one)
                    self.board.show(self.running)
                    time.sleep(POLL_SECONDS)
            except KeyboardInterrupt:
                self.board.say("stopping: the runs save what they have")
                self.pool.stop(PATIENCE)
                raise
            finally:
                self._write_results()
        return self.failed

    def _start_what_can(self) -> None:
        for job in list(self.waiting):
            state = self.plan.states[job.name]
            if state.word == "impossible":
                self._fail(job, state.reason)
            elif job.needs in self.lost:
                self._fail(job, f"its dataset is missing: {self.lost[job.needs]}")
            elif job.needs is None or job.needs in self.ready:
                processes = self._processes(job)
                if not self.pool.room(processes):
                    break
                self.waiting.remove(job)
                self.pool.start(job, processes)
                self.running.add(job.name)
                self.board.began(job)

    def _processes(self, job: Job) -> int:
        """Datasets that are collected at the same time share the workers; a run takes one."""
        if not isinstance(job, DataJob):
            return 1
        collected = sum(isinstance(one, DataJob) for one in self.waiting)
        return max(1, self.pool.width // max(1, collected))

    def _take(self, ended: Ended) -> None:
        job, state = ended.job, ended.job.state()
        self.running.discard(job.name)
        if state.word == "done":
            if isinstance(job, DataJob):
                self.ready.add(job.folder)
            else:
                self._write_results()
            self.board.done(job)
        elif ended.reason is None:
            self._fail(job, f"it ended well, but its folder does not show it: {state.reason or state.word}")
        elif ended.died and self.deaths.get(job.name, 0) < self.retries:
            self.deaths[job.name] = self.deaths.get(job.name, 0) + 1
            self.board.say(f"{job.name} goes on: {ended.reason}")
            self.waiting.insert(0, job)
        else:
            self._fail(job, ended.reason)

    def _write_results(self) -> None:
        for line in self.results.write():
            self.board.say(line)

    def _fail(self, job: Job, reason: str) -> None:
        if job in self.waiting:
            self.waiting.remove(job)
        self.failed[job.name] = reason
        self.folder.fail(job.name, reason)
        if isinstance(job, DataJob):
            self.lost[job.folder] = reason
        self.board.failed(job, reason)


@contextmanager
def _terminated_is_interrupted() -> Iterator[None]:
    """SIGTERM stops a sweep as Ctrl-C does."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
