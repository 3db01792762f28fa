"""Decide which job runs next, retry jobs whose process died, and record what is done and what fails."""

import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

from gcb.errors import GCBError
from gcb.runs.run_dir import RECORD, Run
from gcb.sweep.dashboard import Dashboard
from gcb.sweep.jobs import TRAINING_FRACTION, DataJob, Job, RunJob
from gcb.sweep.pools import Finished, Pool
from gcb.sweep.results import Results
from gcb.sweep.sweep_dir import SweepDir
from gcb.utils.progress import duration

POLL_SECONDS = 0.2
STOP_SECONDS = 60.0
"""How long a stopped sweep waits for its jobs to save a checkpoint."""


class Plan:
    """The jobs of a sweep with their states before it starts."""

    def __init__(self, datasets: Iterable[DataJob], runs: Sequence[RunJob]) -> None:
        """Leave out missing datasets that no unfinished run needs."""
        datasets = list(datasets)
        self.states = {job.name: job.state() for job in (*datasets, *runs)}
        needed = {job.dataset for job in runs if not self.is_done(job)}
        self.datasets = [job for job in datasets if job.path in needed or self.is_done(job)]
        self.runs = runs

    @property
    def jobs(self) -> list[Job]:
        """All jobs, datasets first."""
        return [*self.datasets, *self.runs]

    def is_done(self, job: Job) -> bool:
        return self.states[job.name].status == "done"

    def work_left(self) -> tuple[int, int]:
        """Return how many training steps and evaluation episodes are left."""
        trained = {job: min(1.0, self.states[job.name].progress / TRAINING_FRACTION) for job in self.runs}
        steps = sum(round((1 - trained[job]) * job.config.steps) for job in self.runs)
        modes = [job.supported_modes if trained[job] < 1 else job.missing_modes() for job in self.runs]
        return steps, sum(job.episodes * len(missing) for job, missing in zip(self.runs, modes, strict=True))

    def seconds_left(self) -> float | None:
        """Estimate the time left of one process, from the training times of the finished runs in the same directory.

        A run takes as long for each step as the median of those of its method, or of all, with or without video.
        """
        measured = [times for directory in {job.runs for job in self.runs} for times in _step_times(directory)]
        seconds = 0.0
        for job in (job for job in self.runs if not self.is_done(job)):
            alike = [(method, time) for method, video, time in measured if video == job.video]
            times = [time for method, time in alike if method == job.config.method] or [time for _, time in alike]
            if not times:
                return None
            left = 1 - self.states[job.name].progress
            seconds += left * median(times) * job.config.steps / TRAINING_FRACTION
        return seconds


def _step_times(runs: Path) -> Iterator[tuple[str, bool, float]]:
    """Yield the method of each finished run, whether its dataset has video distractors, and its seconds per step."""
    for record in runs.glob(f"*/{RECORD}"):
        with suppress(GCBError):  # a job of a damaged run is invalid
            run = Run(record.parent)
            checkpoint, options = run.checkpoint(), run.dataset.config.get("options") or {}
            if checkpoint is not None and checkpoint.finished:
                yield checkpoint.method, bool(options.get("video")), checkpoint.seconds / checkpoint.step


class Scheduler:
    """Starts jobs in order as the pool has room, runs only once their dataset is complete."""

    def __init__(self, plan: Plan, sweep_dir: SweepDir, pool: Pool, dashboard: Dashboard, retries: int) -> None:
        self.plan, self.sweep_dir, self.pool, self.dashboard, self.retries = plan, sweep_dir, pool, dashboard, retries
        modes = dict.fromkeys(mode for job in plan.runs for mode in job.modes)
        self.results = Results(sweep_dir, modes, *{job.eval_seed for job in plan.runs})  # one grid has one seed
        self.waiting = [job for job in plan.jobs if not plan.is_done(job)]
        self.running: dict[str, tuple[Job, float]] = {}
        """Jobs by name, with the times when they started."""
        self.done = {job.path for job in plan.jobs if plan.is_done(job)}
        self.failures: dict[str, str] = {}
        self.missing_datasets: dict[Path, str] = {}
        self.retried: dict[str, int] = {}
        self.progress = {job.name: plan.states[job.name].progress for job in plan.jobs}
        self._start_time, self._start_progress = time.monotonic(), sum(self.progress.values())

    def run(self) -> dict[str, str]:
        """Run all jobs and return the reasons of failures by job name. The caller holds the sweep directory's lock.

        Ctrl-C and SIGTERM stop the jobs, which save a checkpoint, and raise `KeyboardInterrupt`.
        """
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            with self.dashboard:
                self._run()
        finally:
            signal.signal(signal.SIGTERM, before)
        return self.failures

    def _run(self) -> None:
        for job in self.plan.jobs:
            self.sweep_dir.clear_failure(job.name)
        self._update_results(None)
        try:
            while self.waiting or self.running:
                self._start_jobs()
                for finished in self.pool.finished():
                    self._finish(finished)
                if self.dashboard.is_due():
                    self._show()
                time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            self.dashboard.log("stopping: running jobs save a checkpoint")
            self.pool.stop(STOP_SECONDS)
            self._update_results(name for name, (job, _) in self.running.items() if isinstance(job, RunJob))
            raise

    def _start_jobs(self) -> None:
        for job in list(self.waiting):
            state = self.plan.states[job.name]
            dataset = job.dataset if isinstance(job, RunJob) else None
            if state.status == "invalid":
                self._fail(job, state.reason)
            elif dataset in self.missing_datasets:
                self._fail(job, f"its dataset is missing: {self.missing_datasets[dataset]}")
            elif dataset is None or dataset in self.done:
                workers = self._workers(job)
                if not self.pool.has_room(workers):
                    break
                self.waiting.remove(job)
                self.pool.start(job, workers)
                self.running[job.name] = (job, time.monotonic())
                self.dashboard.log(f"{job.name} started")

    def _workers(self, job: Job) -> int:
        """Return the processes of a job: one for a run; datasets that are still to be collected share all workers."""
        datasets = sum(isinstance(other, DataJob) for other in self.waiting)
        return max(1, self.pool.max_workers // max(1, datasets)) if isinstance(job, DataJob) else 1

    def _finish(self, finished: Finished) -> None:
        job, state = finished.job, finished.job.state()
        seconds = time.monotonic() - self.running.pop(job.name)[1]
        retried = self.retried.get(job.name, 0)
        if state.status == "done":
            self.done.add(job.path)
            self.progress[job.name] = 1.0
            if isinstance(job, RunJob):
                self._update_results([job.name])
            self.dashboard.log(f"{job.name} is done after {duration(seconds)}: {self._counts()}")
        elif finished.died and retried < self.retries:
            self.retried[job.name] = retried + 1
            self.dashboard.log(f"{job.name} is retried: {finished.error}")
            self.waiting.insert(0, job)
        else:
            self._fail(job, finished.error or f"it ended without an error, but is not done: {state.reason}")

    def _fail(self, job: Job, reason: str) -> None:
        if job in self.waiting:
            self.waiting.remove(job)
        self.failures[job.name] = reason
        self.sweep_dir.write_failure(job.name, reason)
        if isinstance(job, DataJob):
            self.missing_datasets[job.path] = reason
        self.dashboard.log(f"{job.name} FAILED: {reason}")

    def _update_results(self, names: Iterable[str] | None) -> None:
        for message in self.results.update(names):
            self.dashboard.log(message)

    def _show(self) -> None:
        running = []
        for name, (job, start_time) in sorted(self.running.items()):
            self.progress[name] = max(self.progress[name], job.state().progress)
            running.append((name, duration(time.monotonic() - start_time), self.sweep_dir.last_line(name)))
        self.dashboard.show(f"{self._counts()}, {self._time_left()}", running, self.failures)

    def _counts(self) -> str:
        jobs, done, running, failed = len(self.plan.jobs), len(self.done), len(self.running), len(self.failures)
        return f"{done} of {jobs} done, {running} running, {failed} failed, {len(self.waiting)} waiting"

    def _time_left(self) -> str:
        """Estimate the time left from the progress since the start."""
        gained = sum(self.progress.values()) - self._start_progress
        left = sum(1 - progress for name, progress in self.progress.items() if name not in self.failures)
        seconds = time.monotonic() - self._start_time
        return f"about {duration(left / gained * seconds)} left" if gained > 0 else "time left unknown"
