"""How long the exact metric takes, and how that grows with the number of state-goal pairs."""

import resource
from collections.abc import Sequence
from pathlib import Path

from benchmarks.rows import Row
from gcb.theory import scaling
from gcb.theory.deterministic import THREADS
from gcb.theory.figures import scaling_figure

LIMIT = 60.0  # seconds of two cores, for 10,000 deterministic and for 400 stochastic pairs
MEMORY_LIMIT = 4.0  # GB


def run(
    deterministic_states: Sequence[int] = scaling.DETERMINISTIC_STATES,
    stochastic_goals: Sequence[int] = scaling.STOCHASTIC_GOALS,
    figure: Path | None = None,
) -> list[Row]:
    """Time every method; `figure` also draws the scaling.

    The limit is on processor seconds, halved where F runs in blocks on two threads: what a free machine of two cores
    would take at best. Other programs do not count in it; the clock's time stands beside it.
    """
    deterministic = scaling.deterministic_timings(deterministic_states)
    stochastic = scaling.stochastic_timings(stochastic_goals)
    if figure is not None:
        scaling_figure(deterministic, stochastic).savefig(figure)
    rows = []
    for timings, mdp in ((deterministic, "deterministic"), (stochastic, "stochastic")):
        for method in dict.fromkeys(timing.method for timing in timings):
            largest = max((t for t in timings if t.method == method), key=lambda t: t.pairs)
            threads = THREADS if method == scaling.BLOCKED else 1
            name = f"{mdp}, {largest.pairs:,} pairs: {method} (s on {threads} core{'s' if threads > 1 else ''})"
            power = scaling.slope(timings, method)
            text = f"{largest.iterations} iterations, {largest.seconds:.1f} s by the clock, grows as pairs^{power:.1f}"
            rows.append(Row(name, largest.cpu_seconds / threads, LIMIT, text))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return [*rows, Row("largest memory of the process (GB)", memory, MEMORY_LIMIT, "two float32 matrices at most")]
