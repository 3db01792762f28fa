"""The picture of learned against exact distances (apart from `figures`, since it needs torch's side of the house)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from gcb.theory.figures import COLOURS, GREY, _figure
from gcb.theory.learned import Curve

POINTS = 3000


def learned_figure(curves: Sequence[Curve], rng: np.random.Generator) -> Figure:
    """Top: correlation, error, spread and ψ's arithmetic over training. Bottom: learned against exact at the end."""
    figure, axes = _figure(11, 5.8, 4, rows=2)
    shown = {
        "correlation with the exact metric": "correlation",
        "error, share of the exact metric": "error",
        "spread of φ (– –: of ψ)": "phi_spread",
        "share that ψ leaves unexplained": "unexplained",
    }
    for ax, (title, name) in zip(axes[:4], shown.items(), strict=True):
        for colour, curve in zip(COLOURS, curves, strict=False):
            values = np.asarray(getattr(curve, name))
            ax.plot(curve.steps[1:], values[1:], color=colour, label=curve.objective.name)
            if name == "phi_spread":
                ax.plot(curve.steps[1:], curve.psi_spread[1:], color=colour, linestyle="--", linewidth=1)
        ax.set_title(title, fontsize=9)
        ax.set_xlabel("steps", fontsize=8)
        ax.tick_params(labelsize=8)
    axes[2].set_yscale("log")
    axes[3].set_ylim(0, 1.05)
    for ax, colour, curve in zip(axes[4:], COLOURS, curves, strict=False):
        chosen = rng.choice(len(curve.exact), size=min(POINTS, len(curve.exact)), replace=False)
        ax.scatter(curve.exact[chosen], curve.learned[chosen], s=3, color=colour, alpha=0.4, linewidths=0)
        highest = float(curve.exact.max())
        ax.plot([0, highest], [0, highest], color=GREY, linewidth=1)
        ax.set_title(curve.objective.name, fontsize=9, color=colour)
        ax.set_xlabel("exact distance", fontsize=8)
        ax.set_ylim(bottom=-0.02 * highest, top=1.25 * highest)
        ax.tick_params(labelsize=8)
    axes[4].set_ylabel("learned distance", fontsize=8)
    return figure
