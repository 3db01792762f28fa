"""Rows of the benchmarks' table, and timing that is fair on a busy machine."""

import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple


class Row(NamedTuple):
    """A measurement. `limit` is the largest value accepted, or the smallest if `at_least`; None accepts any value."""

    name: str
    value: float
    limit: float | None
    text: str
    at_least: bool = False

    @property
    def ok(self) -> bool:
        if self.limit is None:
            return True
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    @property
    def bound(self) -> str:
        return "" if self.limit is None else f"{'≥' if self.at_least else '≤'} {self.limit:g}"


def interleaved(*jobs: Callable[[], object], rounds: int) -> list[float]:
    """Return the median time of each job; jobs take turns, so that a busy machine slows all of them alike."""
    times: list[list[float]] = [[] for _ in jobs]
    for _ in range(rounds):
        for job, seconds in zip(jobs, times, strict=True):
            start = time.perf_counter()
            job()
            seconds.append(time.perf_counter() - start)
    return [median(seconds[rounds // 6 :]) for seconds in times]


def cpu_seconds(job: Callable[[], object]) -> float:
    """Return the CPU time of a single-threaded job, which excludes other processes."""
    start = time.process_time()
    job()
    return time.process_time() - start


def cpu_medians(*jobs: Callable[[], object], rounds: int) -> list[float]:
    """Return the median CPU time of each job; jobs take turns, and the first round is warm-up."""
    times = [[cpu_seconds(job) for job in jobs] for _ in range(rounds + 1)][1:]
    return [median(seconds) for seconds in zip(*times, strict=True)]
