"""The picture of learned against exact distances (apart from `figures`, since it needs torch's side of the house)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gcb.theory.figures import COLOURS, GREY, _figure
from gcb.theory.learned import MIXED, ONE_NORM, ONE_NORM_SLOW, WITH_ACTIONS, Curve

POINTS = 3000
LINES = (*COLOURS, "#3a3a3a", "#9c6644")
SCATTERED = (MIXED, ONE_NORM, ONE_NORM_SLOW, WITH_ACTIONS)


def learned_figure(curves: Sequence[Curve], rng: np.random.Generator) -> Figure:
    """Top: correlation, error, spread and ψ's arithmetic over training. Bottom: learned against exact at the end."""
    figure, axes = _figure(11, 6.6, 4, rows=2)
    shown = {
        "correlation with the exact metric": "correlation",
        "error, share of the exact metric": "error",
        "spread of φ": "phi_feature_std",
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
