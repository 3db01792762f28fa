"""Training curves as SVG images."""

import io
from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from gcb.report.run_groups import RunGroup

MAX_POINTS = 300
TICK_STEPS = (1, 2, 2.5, 5, 10)
INK, GRID = "#5c6670", "#e3e1dc"
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "gcb",
    "font.size": 11,
    "axes.edgecolor": GRID,
    "text.color": INK,
}
"""A fixed salt makes the SVG deterministic; text stays text."""


def curve_chart(groups: Sequence[RunGroup], metric: str) -> bytes | None:
    """Draw a metric over training steps, one line for each group; None if no group has the metric."""
    curves = [(group, curve) for group in groups if (curve := group.curve(metric)) is not None and len(curve[0])]
    if not curves:
        return None
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(3.6, 2.4), layout="constrained")
        ax = figure.subplots()
        for group, (steps, mean, band) in curves:
            thin = slice(None, None, -(-len(steps) // MAX_POINTS))
            x, y = steps[thin], mean[thin]
            ax.plot(x, y, color=group.colour, lw=1.6, marker="o" if len(steps) == 1 else "")
            if band is not None:
                ax.fill_between(x, band[0][thin], band[1][thin], color=group.colour, alpha=0.16, lw=0)
        ax.set_xlim(left=0)
        ax.xaxis.set(major_formatter=EngFormatter(sep=""), major_locator=MaxNLocator(4, steps=TICK_STEPS))
        ax.yaxis.set_major_locator(MaxNLocator(4, steps=TICK_STEPS))
        ax.grid(axis="y", color=GRID)
        ax.tick_params(length=0, colors=INK)
        ax.spines[["top", "right", "left"]].set_visible(False)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return buffer.getvalue()
