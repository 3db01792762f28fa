"""The metric of deterministic MDPs in closed form, for matrices of 10⁸ entries.

From point mass to point mass there is one plan, so F reads d(i, j) ← weight · |r_i - r_j| + c · d(next_i, next_j).
Rows are worked in blocks that stay in the cache, in float32, on two threads (numpy releases the lock).
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from gcb.errors import GCBError
from gcb.theory.gcmdp import Integers, check_unit_interval
from gcb.theory.metric import ITERATION_LIMIT, Metric, reward_weight
from gcb.theory.process import TaskProcess

Singles = NDArray[np.float32]

BLOCK = 64
THREADS = 2
MEASURE_EVERY = 4  # finding the largest change takes a third of an iteration


def _on_policy_steps(process: TaskProcess) -> tuple[Integers, Singles]:
    if not process.deterministic or len(process.rewards) != 1:
        raise GCBError("The closed form needs a deterministic MDP and one policy: every task has one successor.")
    return process.successors[0, :, 0], process.rewards[0].astype(np.float32)


def _in_blocks(tasks: int, work: Callable[[int, int], float]) -> float:
    """Run work(low, high) over blocks of rows on the threads; the largest result."""
    starts = range(0, tasks, BLOCK)
    with ThreadPoolExecutor(THREADS) as pool:
        return max(pool.map(lambda low: work(low, min(low + BLOCK, tasks)), starts))


def _rounding(distances: Singles, c: float) -> float:
    """Return a bound of float32's error: one rounding in each application of F, which later ones reduce by c."""
    return float(np.finfo(np.float32).eps * distances.max(initial=0.0) / (1.0 - c))


def iterate_blocked(process: TaskProcess, c: float, *, scaled: bool, tolerance: float = 1e-4) -> Metric:
    """Apply F repeatedly from d = 0, in blocks of rows, with two float32 matrices.

    `tolerance` bounds the remaining change; the bound of the error also includes float32's rounding. It terminates for
    every tolerance: starting at 0 rounding is monotone, so the entries stop changing.
    """
    successor, reward = _on_policy_steps(process)
    weight, c = np.float32(reward_weight(c, scaled)), check_unit_interval("c", c)
    tasks, discount = process.tasks, np.float32(c)
    values, kind = np.unique(reward, return_inverse=True)
    gaps = weight * np.abs(values[:, None] - reward)
    now, after = np.zeros((tasks, tasks), np.float32), np.zeros((tasks, tasks), np.float32)

    def rows(low: int, high: int) -> float:
        largest, gap = 0.0, np.empty(tasks, np.float32)
        for i in range(low, high):
            out = after[i]
            np.take(now[successor[i]], successor, out=out, mode="clip")
            out *= discount
            out += gaps[kind[i]]
            if measure:
                np.subtract(out, now[i], out=gap)
                largest = max(largest, float(gap.max()), -float(gap.min()))
        return largest

    for iteration in range(1, ITERATION_LIMIT + 1):
        measure = iteration % MEASURE_EVERY == 0
        change = _in_blocks(tasks, rows)
        now, after = after, now
        if measure:
            bound = change * c / (1.0 - c)
            if bound <= tolerance:
                return Metric(now, bound + _rounding(now, c), iteration)
    raise GCBError(f"No fixed point within {ITERATION_LIMIT} iterations; tolerance {tolerance:g} is below rounding.")


def by_doubling(process: TaskProcess, c: float, *, scaled: bool, tolerance: float = 1e-4) -> Metric:
    """Find the same fixed point in about log2 as many passes: F applied 2n times is F applied n times, twice in a row.

    With d_n = F^n(0):  d_2n(i, j) = d_n(i, j) + c^n · d_n(next^n_i, next^n_j).
    """
    successor, reward = _on_policy_steps(process)
    check_unit_interval("c", c)
    weight = np.float32(reward_weight(c, scaled))
    now = weight * np.abs(reward[:, None] - reward)
    after, steps, factor, passes = np.empty_like(now), successor, np.float32(c), 0

    def rows(low: int, high: int) -> float:
        for i in range(low, high):
            np.take(now[steps[i]], steps, out=after[i], mode="clip")
            after[i] *= factor
            after[i] += now[i]
        return 0.0

    largest_reward_gap = float(now.max(initial=0.0))
    while True:
        bound = float(factor) * largest_reward_gap / (1.0 - c)
        if bound <= tolerance:
            return Metric(now, bound + _rounding(now, c), passes)
        _in_blocks(process.tasks, rows)
        now, after = after, now
        steps, factor, passes = steps[steps], factor * factor, passes + 1
