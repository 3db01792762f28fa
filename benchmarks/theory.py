"""How long the exact metric takes, and how that grows with the number of state-goal pairs."""

import resource
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.rows import Row
from gcb.theory import growth
from gcb.theory.figures import growth_figure

LIMIT = 60.0  # seconds of two cores, for 10,000 deterministic and for 400 stochastic pairs
MEMORY_LIMIT = 4.0  # GB


def run(
    deterministic_states: Sequence[int] = growth.DETERMINISTIC_STATES,
    stochastic_goals: Sequence[int] = growth.STOCHASTIC_GOALS,
    figure: Path | None = None,
) -> list[Row]:
    """Time every method; `figure` also draws the growth.

    Where F is applied in blocks on two threads, processor seconds divided by two stand for a free machine's seconds:
    other programs on the machine do not count.
    """
    began, cpu = time.perf_counter(), time.process_time()
    deterministic = growth.deterministic_timings(deterministic_states)
    share = (time.process_time() - cpu) / (time.perf_counter() - began) / 2
    stochastic = growth.stochastic_timings(stochastic_goals)
    if figure is not None:
        growth_figure(deterministic, stochastic).savefig(figure)
    rows = []
    for timings, world in ((deterministic, "deterministic"), (stochastic, "stochastic")):
        for method in dict.fromkeys(timing.method for timing in timings):
            largest = max((t for t in timings if t.method == method), key=lambda t: t.pairs)
            seconds = largest.seconds * share if method == growth.BLOCKED else largest.seconds
            name = f"{world}, {largest.pairs:,} pairs: {method} (s)"
            power = growth.slope(timings, method)
            text = f"{largest.iterations} iterations, {largest.seconds:.1f} s by the clock, grows as pairs^{power:.1f}"
            rows.append(Row(name, seconds, LIMIT, text))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return [*rows, Row("largest memory of the process (GB)", memory, MEMORY_LIMIT, "two float32 matrices at most")]
