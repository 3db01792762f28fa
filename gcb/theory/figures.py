"""The figures of docs/theory.md."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from gcb.theory.builders import grid_world
from gcb.theory.check_arithmetic import Arithmetic
from gcb.theory.check_fixed_point import Convergence
from gcb.theory.check_functions import Comparison
from gcb.theory.check_sufficiency import LearningCurve
from gcb.theory.check_values import BoundPoints
from gcb.theory.gcmdp import optimal_policy
from gcb.theory.learned import MIXED, ONE_NORM, ONE_NORM_EMA, WITH_ACTIONS, Curve
from gcb.theory.metric import metric
from gcb.theory.process import all_actions, bisimulation_classes, on_policy
from gcb.theory.scaling import WALLED, Timing

COLOURS = ("#33658a", "#d1495b", "#4f9d69", "#edae49", "#7a5195")  # distinct in grey and to most colour-blind eyes
GREY = "#8a8a8a"


def _figure(
    width: float, height: float, columns: int, rows: int = 1, *, square: bool = False
) -> tuple[Figure, list[Axes]]:
    """Return a figure with axes without a box; `square` panels (images, matrices) are packed without gaps."""
    figure = Figure(figsize=(width, height), dpi=100, layout="compressed" if square else "constrained")
    axes = list(np.asarray(figure.subplots(rows, columns)).reshape(-1))
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes


def grid_figure() -> Figure:
    """Left and middle: distance of every cell's task from the task at the goal. Right: classes of Definition 4.1."""
    mdp = grid_world(WALLED)
    cells = [(y, x) for y, row in enumerate(WALLED) for x, mark in enumerate(row) if mark == "."]
    goal = len(cells) - 1
    process = on_policy(mdp, optimal_policy(mdp))
    at_goal = mdp.task(goal, goal)
    tasks = [mdp.task(cell, goal) for cell in range(len(cells))]
    panels = {
        "on-policy d to the task at the goal": metric(process, 0.9, scaled=True)[at_goal][tasks],
        "the same with |π − π′|": metric(process, 0.9, scaled=True, action_weight=1.0)[at_goal][tasks],
        "the same over all actions": metric(all_actions(mdp), 0.9, scaled=True)[at_goal][tasks],
    }
    figure, axes = _figure(10.5, 3.7, 3, square=True)
    for ax, (title, values) in zip(axes, panels.items(), strict=True):
        picture = np.full((len(WALLED), len(WALLED[0])), np.nan)
        for cell, value in zip(cells, values, strict=True):
            picture[cell] = value
        ax.imshow(np.isnan(picture), cmap=ListedColormap(["white", "#3a3a3a"]))
        ax.imshow(np.ma.masked_invalid(picture), cmap="YlGnBu", vmin=0, vmax=1.3)
        for (y, x), value in zip(cells, values, strict=True):
            ax.text(x, y, f"{value:.2f}", ha="center", va="center", color="black" if value < 0.8 else "white")
        ax.plot(cells[goal][1], cells[goal][0] + 0.3, marker="*", color=COLOURS[1], markersize=9)
        ax.set(title=title, xticks=[], yticks=[])
        ax.set_axis_off()
    classes = int(bisimulation_classes(process).max()) + 1
    figure.suptitle(f"One goal (★) in a walled grid, c = 0.9; {mdp.tasks} tasks fall into {classes} on-policy classes")
    return figure


def convergence_figure(curves: Sequence[Convergence]) -> Figure:
    """Error against applications of F, beside c^n."""
    figure, axes = _figure(10.5, 3.4, len(curves))
    for ax, curve in zip(axes, curves, strict=True):
        for colour, (name, errors) in zip(COLOURS, curve.errors.items(), strict=False):
            ax.semilogy(np.maximum(errors, 1e-13), color=colour, label=name)
        first = max(errors[0] for errors in curve.errors.values())
        steps = np.arange(len(next(iter(curve.errors.values()))))
        ax.semilogy(first * curve.c**steps, color="black", linestyle=(0, (1, 3)), linewidth=2, label="rate cⁿ")
        scaling = "reward × (1 − c)" if curve.scaled else "reward × 1"
        ax.set(title=f"c = {curve.c}, {scaling}", xlabel="applications of F", ylim=(1e-9, 1e2))
    axes[0].set_ylabel("largest error of an entry")
    axes[0].legend(frameon=False, fontsize=8)
    return figure


def bounds_figure(points: Sequence[BoundPoints]) -> Figure:
    """Left-hand side against right-hand side: above the line the bound is broken."""
    figure, axes = _figure(10.5, 3.2, len(points))
    for ax, part in zip(axes, points, strict=True):
        broken = part.left > part.right + 1e-7
        ax.scatter(part.right[~broken], part.left[~broken], s=5, color=COLOURS[0], alpha=0.5, linewidths=0)
        ax.scatter(part.right[broken], part.left[broken], s=5, color=COLOURS[1], alpha=0.5, linewidths=0)
        low, high = min(0.0, float(part.right.min())), max(float(part.right.max()), float(part.left.max()))
        ax.plot([max(low, 0), high], [max(low, 0), high], color=GREY, linewidth=1)
        ax.set_title(part.name, fontsize=9)
        ax.set_xlabel(f"bound; broken for {100 * broken.mean():.0f} % of pairs", fontsize=9)
    axes[0].set_ylabel("difference of values")
    return figure


def sufficiency_figure(curves: Sequence[LearningCurve]) -> Figure:
    """Q-learning on three abstractions, with the error at which each must end."""
    figure, (ax,) = _figure(6.5, 3.6, 1)
    for colour, curve in zip(COLOURS, curves, strict=False):
        ax.loglog(curve.updates, curve.error, color=colour, label=f"{curve.name} ({curve.classes} entries per action)")
        if curve.limit > 1e-9:
            ax.axhline(curve.limit, color=colour, linestyle=":", linewidth=1)
            ax.text(curve.updates[0], curve.limit * 0.86, "its exact limit", color=colour, fontsize=8, va="top")
    ax.set(xlabel="sampled transitions", ylabel="largest |Q − Q*|, share of |Q*|")
    ax.legend(frameon=False, fontsize=8)
    return figure


def functions_figure(comparisons: Sequence[Comparison]) -> Figure:
    """Distances of nine two-step tasks under three metrics."""
    figure, axes = _figure(11.5, 4.8, len(comparisons), square=True)
    for number, (ax, comparison) in enumerate(zip(axes, comparisons, strict=True)):
        ax.imshow(comparison.distances, cmap="YlGnBu", vmin=0, vmax=max(0.2, float(comparison.distances.max())))
        for (y, x), value in np.ndenumerate(comparison.distances):
            dark = value > 0.6 * max(0.2, float(comparison.distances.max()))
            text = "0" if value < 1e-7 else f"{value:.2f}".lstrip("0")
            ax.text(x, y, text, ha="center", va="center", fontsize=7, color="white" if dark else "black")
        for edge in (2.5, 5.5):
            ax.axhline(edge, color="black", linewidth=0.8)
            ax.axvline(edge, color="black", linewidth=0.8)
        labels = comparison.tasks if number == 0 else [""] * len(comparison.tasks)
        ax.set_yticks(range(len(labels)), labels, fontsize=8)
        ax.set_xticks(range(len(labels)), comparison.tasks, fontsize=8, rotation=90)
        ax.set_title(comparison.name, fontsize=10)
    return figure


def arithmetic_figure(rows: Sequence[Arithmetic]) -> Figure:
    """What the best ψ leaves unexplained of an exact φ, and how often its nearest neighbour is right."""
    figure, (left, right) = _figure(10.5, 3.4, 2)
    mdps = list(dict.fromkeys(row.mdp for row in rows))
    weights = sorted({row.action_weight for row in rows})
    for number, weight in enumerate(weights):
        label = "reward only" if weight == 0 else f"with |π − π′|, weight {weight:g}"
        offset = (number - (len(weights) - 1) / 2) * 0.26
        chosen = {row.mdp: row for row in rows if row.action_weight == weight}
        left.bar(np.arange(len(mdps)) + offset, [chosen[name].unexplained for name in mdps], 0.25, label=label,
                 color=COLOURS[number])  # fmt: skip
        known = [name for name in mdps if chosen[name].accuracy is not None]
        accuracy = [chosen[name].accuracy or 0.0 for name in known]
        right.bar(np.arange(len(known)) + offset, accuracy, 0.25, color=COLOURS[number])
        for place, name in enumerate(known):
            right.plot([place + offset] * 2, chosen[name].accuracy_range or (), color="black", linewidth=1.5)
        right.set_xticks(range(len(known)), known, fontsize=8)
        if number == 0:
            for place, name in enumerate(known):
                right.plot([place - 0.4, place + 0.4], [chosen[name].chance] * 2, color="black", linewidth=1)
    left.set_xticks(range(len(mdps)), [name.replace(" with", "\nwith").replace(" and", "\nand") for name in mdps])
    left.tick_params(axis="x", labelsize=8)
    left.set(title="share of φ(s,g) − φ(g,g) that the best ψ leaves unexplained", ylim=(0, 1.25))
    left.title.set_fontsize(10)
    left.legend(frameon=False, fontsize=8, ncols=3, loc="upper left")
    right.set_title("the analogous goal is nearest (—: chance, |: by order of ties)", fontsize=10)
    right.set_ylim(0, 1.05)
    return figure


def scaling_figure(deterministic: Sequence[Timing], stochastic: Sequence[Timing]) -> Figure:
    """Processor seconds against state-goal pairs."""
    figure, axes = _figure(9.5, 3.6, 2)
    for ax, timings, title in ((axes[0], deterministic, "deterministic"), (axes[1], stochastic, "stochastic")):
        for colour, method in zip(COLOURS, dict.fromkeys(timing.method for timing in timings), strict=False):
            part = [timing for timing in timings if timing.method == method]
            ax.loglog(
                [t.pairs for t in part], [t.cpu_seconds for t in part], "o-", color=colour, label=method, markersize=4
            )
        ax.axhline(60, color=GREY, linestyle="--", linewidth=1)
        ax.set(title=title, xlabel="state-goal pairs", ylabel="processor seconds")
        ax.set_xticks(sorted({timing.pairs for timing in timings}))
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.minorticks_off()
        ax.legend(frameon=False, fontsize=8)
    return figure


POINTS = 3000
LINES = (*COLOURS, "#3a3a3a", "#9c6644")
SCATTERED = (MIXED, ONE_NORM, ONE_NORM_EMA, WITH_ACTIONS)


def learned_figure(curves: Sequence[Curve], rng: np.random.Generator) -> Figure:
    """Top: correlation, error, feature std and ψ's arithmetic over training. Bottom: learned against exact."""
    figure, axes = _figure(11, 6.6, 4, rows=2)
    shown = {
        "correlation with the exact metric": "correlation",
        "error, share of the exact metric": "error",
        "feature std of φ": "phi_feature_std",
        "share that ψ leaves unexplained": "unexplained",
    }
    for ax, (title, name) in zip(axes[:4], shown.items(), strict=True):
        for colour, curve in zip(LINES, curves, strict=True):
            ax.plot(curve.steps[1:], getattr(curve, name)[1:], color=colour, label=curve.objective.name)
        ax.set_title(title, fontsize=9)
        ax.set_xlabel("steps", fontsize=8)
        ax.tick_params(labelsize=8)
    for ax in axes[1:3]:
        ax.set_yscale("log")
    axes[3].set_ylim(0, 1.05)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    chosen = [(colour, curve) for colour, curve in zip(LINES, curves, strict=True) if curve.objective in SCATTERED]
    for ax, (colour, curve) in zip(axes[4:], chosen, strict=True):
        _scatter(ax, curve, colour, rng)
    axes[4].set_ylabel("learned distance", fontsize=8)
    return figure


def _scatter(ax: Axes, curve: Curve, colour: str, rng: np.random.Generator) -> None:
    chosen = rng.choice(len(curve.exact), size=min(POINTS, len(curve.exact)), replace=False)
    ax.scatter(curve.exact[chosen], curve.learned[chosen], s=3, color=colour, alpha=0.4, linewidths=0)
    highest = float(curve.exact.max())
    ax.plot([0, highest], [0, highest], color=GREY, linewidth=1)
    ax.set_title(curve.objective.name, fontsize=9, color=colour)
    ax.set_xlabel("exact distance", fontsize=8)
    ax.tick_params(labelsize=8)
