"""Everything in `gcb.theory` in one go: verdicts, numbers and figures in a folder. This is `gcb theory`."""

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
    check_sufficiency,
    check_values,
    figures,
    growth,
    learned,
    learned_figure,
    tell_apart,
)
from gcb.theory.verdicts import Verdict, save
from gcb.utils.files import explain_os_errors
from gcb.utils.progress import Progress

Section = tuple[list[Verdict], Any]


@dataclass(frozen=True)
class Size:
    """How much to do."""

    worlds: int
    """Random worlds for each check."""
    applications: int
    """Applications of F in the figure of its convergence."""
    sweeps: int
    """Q-learning sweeps over all state-action pairs."""
    steps: int
    """Gradient steps for each learned φ."""
    plan: tuple[str, ...]
    """The grid on which it is learned."""
    deterministic_states: tuple[int, ...]
    stochastic_goals: tuple[int, ...]


FULL = Size(200, 40, 20_000, 2000, learned.PLAN, (10, 20, 40, 70), (3, 5, 10))
BLOCKED_UP_TO = 2000  # pairs; the largest worlds are left to `python -m benchmarks theory`
QUICK = Size(12, 8, 10_000, 500, ("...", ".#."), (5, 10, 20), (1, 2, 3))


def _fixed_point(seed: int, size: Size) -> Section:
    rng = np.random.default_rng([seed, 1])
    return check_fixed_point.check_all(rng, size.worlds), check_fixed_point.convergence(rng, size.applications)


def _values(seed: int, size: Size) -> Section:
    rng = np.random.default_rng([seed, 2])
    return check_values.check_all(rng, size.worlds), check_values.bound_points(rng)


def _sufficiency(seed: int, size: Size) -> Section:
    rng = np.random.default_rng([seed, 3])
    curves = check_sufficiency.learning_curves(rng, size.sweeps)
    return [*check_sufficiency.check_limits(rng, size.worlds), check_sufficiency.check_learning(curves, 0.05)], curves


def _arithmetic(seed: int, size: Size) -> Section:
    rows = check_arithmetic.arithmetic_table()
    return [*check_arithmetic.check_arithmetic(rows), *check_arithmetic.check_goal_point()], rows


def _tell_apart(seed: int, size: Size) -> Section:
    comparisons = tell_apart.compare()
    return tell_apart.check_functions(comparisons), comparisons


def _learned(seed: int, size: Size, objective: learned.Objective) -> Section:
    every = max(1, size.steps // 20)
    curve = learned.train(objective, steps=size.steps, every=every, plan=size.plan, seed=seed)
    return [learned.check_learned(curve)], curve


SECTIONS: dict[str, Callable[[int, Size], Section]] = {
    "fixed point": _fixed_point,
    "values": _values,
    "sufficiency": _sufficiency,
    "tell apart": _tell_apart,
    "arithmetic": _arithmetic,
    **{objective.name: partial(_learned, objective=objective) for objective in learned.OBJECTIVES},
}
"""In the order of the table."""


def _one_thread() -> None:
    """Two processes on two cores: more threads would only get in each other's way."""
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


def _numbers(results: dict[str, Section], timings: list[growth.Timing]) -> dict[str, object]:
    """What the documentation quotes beside the verdicts."""
    curves = _curves(results)
    return {
        "arithmetic": [asdict(row) for row in results["arithmetic"][1]],
        "growth": [asdict(timing) for timing in timings],
        "q_learning": {curve.name: [float(curve.error[-1]), curve.limit] for curve in results["sufficiency"][1]},
        "tell_apart": {part.name: part.distances.round(4).tolist() for part in results["tell apart"][1]},
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
    results: dict[str, Section], deterministic: list[growth.Timing], stochastic: list[growth.Timing], folder: Path
) -> None:
    pictures = {
        "grid": figures.grid_figure(),
        "convergence": figures.convergence_figure(results["fixed point"][1]),
        "bounds": figures.bounds_figure(results["values"][1]),
        "sufficiency": figures.sufficiency_figure(results["sufficiency"][1]),
        "tell_apart": figures.tell_apart_figure(results["tell apart"][1]),
        "arithmetic": figures.arithmetic_figure(results["arithmetic"][1]),
        "learned": learned_figure.learned_figure(_curves(results), np.random.default_rng(0)),
        "growth": figures.growth_figure(deterministic, stochastic),
    }
    for name, picture in pictures.items():
        picture.savefig(folder / f"{name}.png")


def run(
    out_dir: str | os.PathLike[str],
    quick: bool = False,
    *,
    seed: int = 0,
    workers: int | None = None,
    quiet: bool = False,
) -> list[Verdict]:
    """Check every claim, write verdicts.md, verdicts.json and the figures to `out_dir`, and return the verdicts.

    About 120 processor seconds in two processes; `quick` takes fewer worlds and steps, in one process.
    """
    size, workers = (QUICK if quick else FULL), workers or (1 if quick else 2)
    if workers < 1:
        raise GCBError(f"workers is {workers}; at least 1 was expected.")
    folder = Path(out_dir)
    with explain_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    results: dict[str, Section] = {}
    with Progress("theory", len(SECTIONS) + 2, "sections", quiet=quiet) as bar:
        for name, section in _results(seed, size, workers):
            results[name] = section
            bar.advance()
        stochastic = growth.stochastic_timings(size.stochastic_goals)
        bar.advance()
        deterministic = growth.deterministic_timings(size.deterministic_states, blocked_up_to=BLOCKED_UP_TO, seed=seed)
        bar.advance()
    verdicts = [verdict for name in SECTIONS for verdict in results[name][0]]
    with explain_os_errors(folder):
        save(verdicts, _numbers(results, deterministic + stochastic), folder)
        _draw(results, deterministic, stochastic, folder)
    return verdicts
