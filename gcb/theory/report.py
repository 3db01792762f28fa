"""`gcb theory`: check every claim and write verdicts, numbers and figures."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from gcb.errors import GCBError
from gcb.theory import (
    check_arithmetic,
    check_fixed_point,
    check_functions,
    check_sufficiency,
    check_values,
    figures,
    learned,
    scaling,
)
from gcb.theory.verdicts import Verdict, save
from gcb.utils.os_errors import explain_os_errors
from gcb.utils.progress import Progress

Section = tuple[list[Verdict], Any]


@dataclass(frozen=True)
class Size:
    """The size of the checks."""

    mdps: int
    """Random MDPs per check."""
    applications: int
    """Applications of F in the convergence figure."""
    sweeps: int
    """Q-learning sweeps over all state-action pairs."""
    steps: int
    """Gradient steps per learned φ."""
    plan: tuple[str, ...]
    """The grid on which φ is learned."""
    deterministic_states: tuple[int, ...]
    stochastic_goals: tuple[int, ...]


FULL = Size(200, 40, 20_000, 2000, learned.PLAN, (10, 20, 40, 70), (3, 5, 10))
BLOCKED_UP_TO = 2000  # pairs; `python -m benchmarks theory` covers the largest MDPs
QUICK = Size(12, 8, 10_000, 500, ("...", ".#."), (5, 10, 20), (1, 2, 3))


def _fixed_point(seed: int, size: Size) -> Section:
    rng = np.random.default_rng([seed, 1])
    return check_fixed_point.check_all(rng, size.mdps), check_fixed_point.convergence(rng, size.applications)


def _values(seed: int, size: Size) -> Section:
    rng = np.random.default_rng([seed, 2])
    return check_values.check_all(rng, size.mdps), check_values.bound_points(rng)


def _sufficiency(seed: int, size: Size) -> Section:
    rng = np.random.default_rng([seed, 3])
    curves = check_sufficiency.learning_curves(rng, size.sweeps)
    return [*check_sufficiency.check_limits(rng, size.mdps), check_sufficiency.check_learning(curves, 0.05)], curves


def _arithmetic(seed: int, size: Size) -> Section:
    rows = check_arithmetic.arithmetic_table()
    return [*check_arithmetic.check_arithmetic(rows), *check_arithmetic.check_goal_point()], rows


def _functions(seed: int, size: Size) -> Section:
    comparisons = check_functions.compare()
    return check_functions.check_functions(comparisons), comparisons


def _learned(seed: int, size: Size, objective: learned.Objective) -> Section:
    every = max(1, size.steps // 20)
    curve = learned.train(objective, steps=size.steps, every=every, plan=size.plan, seed=seed)
    return [learned.check_learned(curve)], curve


SECTIONS: dict[str, Callable[[int, Size], Section]] = {
    "fixed point": _fixed_point,
    "values": _values,
    "sufficiency": _sufficiency,
    "functions": _functions,
    "arithmetic": _arithmetic,
    **{objective.name: partial(_learned, objective=objective) for objective in learned.OBJECTIVES},
}
"""In the order of the table."""


def _one_thread() -> None:
    """One thread per process: two processes share two cores."""
    import torch

    torch.set_num_threads(1)


def _results(seed: int, size: Size, workers: int) -> Iterable[tuple[str, Section]]:
    if workers == 1:
        yield from ((name, section(seed, size)) for name, section in SECTIONS.items())
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_one_thread) as pool:
        names = {pool.submit(section, seed, size): name for name, section in SECTIONS.items()}
        yield from ((names[future], future.result()) for future in as_completed(names))


def _curves(results: dict[str, Section]) -> list[learned.Curve]:
    return [results[objective.name][1] for objective in learned.OBJECTIVES]


def _numbers(results: dict[str, Section], timings: list[scaling.Timing]) -> dict[str, object]:
    """Return the numbers that the documentation quotes beside the verdicts."""
    curves = _curves(results)
    return {
        "arithmetic": [asdict(row) for row in results["arithmetic"][1]],
        "scaling": [asdict(timing) for timing in timings],
        "q_learning": {curve.name: [float(curve.error[-1]), curve.limit] for curve in results["sufficiency"][1]},
        "functions": {part.name: part.distances.round(4).tolist() for part in results["functions"][1]},
        "learned": {
            curve.objective.name: {
                "correlation": curve.correlation[-1],
                "error": curve.error[-1],
                "phi_feature_std": curve.phi_feature_std[-1],
                "psi_feature_std": curve.psi_feature_std[-1],
                "unexplained": curve.unexplained[-1],
                "best_unexplained": curve.best_unexplained,
                "effective_discount": curve.effective_discount,
                "effective_correlation": curve.effective_correlation,
            }
            for curve in curves
        },
    }


def _draw(
    results: dict[str, Section], deterministic: list[scaling.Timing], stochastic: list[scaling.Timing], out_dir: Path
) -> None:
    drawn = {
        "grid": figures.grid_figure(),
        "convergence": figures.convergence_figure(results["fixed point"][1]),
        "bounds": figures.bounds_figure(results["values"][1]),
        "sufficiency": figures.sufficiency_figure(results["sufficiency"][1]),
        "functions": figures.functions_figure(results["functions"][1]),
        "arithmetic": figures.arithmetic_figure(results["arithmetic"][1]),
        "learned": figures.learned_figure(_curves(results), np.random.default_rng(0)),
        "scaling": figures.scaling_figure(deterministic, stochastic),
    }
    for name, figure in drawn.items():
        figure.savefig(out_dir / f"{name}.png")


def run(
    out_dir: str | os.PathLike[str],
    quick: bool = False,
    *,
    seed: int = 0,
    workers: int | None = None,
    quiet: bool = False,
) -> list[Verdict]:
    """Check every claim, write verdicts.md, verdicts.json and the figures to `out_dir`, and return the verdicts.

    It takes about 120 CPU seconds in two processes; `quick` uses fewer MDPs and steps, in one process.
    """
    size, workers = (QUICK if quick else FULL), workers or (1 if quick else 2)
    if workers < 1:
        raise GCBError(f"workers is {workers}; it must be at least 1.")
    out_dir = Path(out_dir)
    with explain_os_errors(out_dir):
        out_dir.mkdir(parents=True, exist_ok=True)
    results: dict[str, Section] = {}
    with Progress("theory", len(SECTIONS) + 2, "sections", quiet=quiet) as bar:
        for name, section in _results(seed, size, workers):
            results[name] = section
            bar.advance()
        stochastic = scaling.stochastic_timings(size.stochastic_goals)
        bar.advance()
        deterministic = scaling.deterministic_timings(size.deterministic_states, blocked_up_to=BLOCKED_UP_TO, seed=seed)
        bar.advance()
    verdicts = [verdict for name in SECTIONS for verdict in results[name][0]]
    with explain_os_errors(out_dir):
        save(verdicts, _numbers(results, deterministic + stochastic), out_dir)
        _draw(results, deterministic, stochastic, out_dir)
    return verdicts
