"""How long the exact metric takes as the number of state-goal pairs grows."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gcb.theory.builders import grid_world, random_mdp
from gcb.theory.deterministic import by_doubling, iterate_blocked
from gcb.theory.gcmdp import optimal_policy
from gcb.theory.metric import Metric, Operator, improve_plans, iterate, wasserstein
from gcb.theory.process import TaskProcess, bisimulation_classes, on_policy, quotient

DISCOUNT = 0.9
TOLERANCE = 1e-4
WALLED = (".....", ".##..", "...#.", ".#...", ".....")
DETERMINISTIC_STATES = (10, 20, 40, 70, 100)
STOCHASTIC_GOALS = (3, 5, 10, 20)
BLOCKED = "F, in blocks"


@dataclass(frozen=True)
class Timing:
    """One run of one method."""

    method: str
    pairs: int
    seconds: float
    """Wall-clock seconds."""
    cpu_seconds: float
    """CPU seconds of all threads."""
    iterations: int


def _timed(method: str, process: TaskProcess, solve: Callable[[TaskProcess], Metric]) -> Timing:
    clock, cpu = time.perf_counter(), time.process_time()
    found = solve(process)
    taken = time.perf_counter() - clock, time.process_time() - cpu
    return Timing(method, process.tasks, *taken, found.iterations)


def _iterate_on_classes(process: TaskProcess) -> Metric:
    classes = bisimulation_classes(process)
    return iterate(Operator(quotient(process, classes), DISCOUNT, scaled=False), tolerance=TOLERANCE)


def deterministic_timings(
    states: Sequence[int] = DETERMINISTIC_STATES, *, blocked_up_to: int = 10_000, seed: int = 0
) -> list[Timing]:
    """Random deterministic MDPs with G = S under π*: states² pairs, whose metric has states⁴ entries.

    F itself, applied step by step, is left out above `blocked_up_to` pairs.
    """
    methods: dict[str, Callable[[TaskProcess], Metric]] = {
        BLOCKED: lambda process: iterate_blocked(process, DISCOUNT, scaled=False, tolerance=TOLERANCE),
        "F, doubling": lambda process: by_doubling(process, DISCOUNT, scaled=False, tolerance=TOLERANCE),
        "F on the classes": _iterate_on_classes,
    }
    timings = []
    for number in states:
        mdp = random_mdp(np.random.default_rng(seed), states=number, support=1, gamma=DISCOUNT)
        process = on_policy(mdp, optimal_policy(mdp))
        for name, solve in methods.items():
            if name != BLOCKED or process.tasks <= blocked_up_to:
                timings.append(_timed(name, process, solve))
    return timings


def stochastic_timings(goals: Sequence[int] = STOCHASTIC_GOALS) -> list[Timing]:
    """A slippery grid of 21 cells with walls under π*: 21 pairs for each goal."""
    wasserstein(np.array([0.5, 0.5]), np.array([0.5, 0.5]), 1.0 - np.eye(2))  # so that the solver's import is not timed
    timings = []
    for number in goals:
        mdp = grid_world(WALLED, slip=0.2, gamma=DISCOUNT, goals=range(number))
        process = on_policy(mdp, optimal_policy(mdp))
        for name, solve in (("F, optimal transport", iterate), ("policy iteration over plans", improve_plans)):
            operator = Operator(process, DISCOUNT, scaled=False)
            timings.append(_timed(name, process, lambda _, solve=solve, o=operator: solve(o, tolerance=TOLERANCE)))
    return timings


def slope(timings: Sequence[Timing], method: str) -> float:
    """The exponent of pairs in processor seconds, from the three largest runs of a method."""
    largest = sorted((t for t in timings if t.method == method), key=lambda t: t.pairs)[-3:]
    return float(np.polyfit(np.log([t.pairs for t in largest]), np.log([t.cpu_seconds for t in largest]), 1)[0])
