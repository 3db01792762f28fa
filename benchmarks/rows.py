"""One line of the table that the benchmarks print, and fair timing on a busy machine."""

import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple


class Row(NamedTuple):
    """One measurement: `value` must not exceed `limit`, or not fall below it if `at_least`; it may have no limit."""

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
    """The median time of each job, measured in turns so that a busy machine slows all of them alike."""
    times: list[list[float]] = [[] for _ in jobs]
    for _ in range(rounds):
        for job, taken in zip(jobs, times, strict=True):
            began = time.perf_counter()
            job()
            taken.append(time.perf_counter() - began)
    return [median(taken[rounds // 6 :]) for taken in times]


def cpu_seconds(job: Callable[[], object]) -> float:
    """What a job of one thread costs its core: other processes do not count."""
    began = time.process_time()
    job()
    return time.process_time() - began


def cpu_medians(*jobs: Callable[[], object], rounds: int) -> list[float]:
    """The median processor time of each job, in turns; the first round warms up."""
    times = [[cpu_seconds(job) for job in jobs] for _ in range(rounds + 1)][1:]
    return [median(taken) for taken in zip(*times, strict=True)]
