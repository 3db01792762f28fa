"""The numbers of an analysis as tables of text, for the terminal and for the report."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gcb.analysis.arithmetic import ESTIMATES
from gcb.analysis.neighbour_metrics import NEIGHBOUR_TYPES

NONE = "–"


@dataclass(frozen=True)
class TextTable:
    """A table of text with a note that explains it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str
    figure: str
    """Name of the figure that it accompanies."""


def analysis_tables(numbers: Mapping[str, Any]) -> Iterator[TextTable]:
    """Yield a table for each part of the analysis that has numbers."""
    for name, make_table in (("neighbours", _neighbours), ("values", _values), ("arithmetic", _arithmetic)):
        if name in numbers:
            yield make_table(numbers[name])


def _neighbours(numbers: Mapping[str, Any]) -> TextTable:
    rows = tuple(
        (
            label,
            format_rate(numbers[name]["same_task"]),
            format_estimate(numbers[name]["travel_error"], 100, 1),
            format_estimate(numbers[name]["gripper_error"], 100, 1),
        )
        for name, label in NEIGHBOUR_TYPES.items()
    )
    return TextTable(
        title="Tasks and their nearest neighbours",
        columns=("neighbour", "same task", "travel error, cm", "gripper error, cm"),
        rows=rows,
        note=f"{numbers['samples']:,} tasks, each from a different episode, among {numbers['pool']:,}; neighbours from "
        "other episodes only. Means with 95 % intervals. Travel error: difference in how far the drawers have yet to "
        "move. Gripper error: distance between the gripper's positions in the cabinet's frame.",
        figure="neighbours",
    )


def _values(numbers: Mapping[str, Any]) -> TextTable:
    return TextTable(
        title="Distance in φ and difference in value",
        columns=("correlation", "of distance and |V - V'|"),
        rows=tuple((name.capitalize(), format_estimate(numbers[name])) for name in ("pearson", "spearman")),
        note=f"{numbers['pairs']:,} random pairs of tasks; 95 % intervals. If φ is a bisimulation metric, tasks that "
        "are close in φ have similar values.",
        figure="values",
    )


def _arithmetic(numbers: Mapping[str, Any]) -> TextTable:
    metrics = {name: numbers[name] for name in ESTIMATES if name in numbers}
    first, *_ = metrics.values()
    tasks = list(first["function_by_task"]) if len(first["function_by_task"]) > 1 else []
    rows = tuple(
        (
            ESTIMATES[name],
            format_rate(part["function"]),
            *(format_rate(part["function_by_task"][task], interval=False) for task in tasks),
            format_rate(part["pose"]),
            format_rate(part["both"]),
            format_estimate(part["yaw_error"], 1, 0),
            format_estimate(part["position_error"], 100, 1),
        )
        for name, part in metrics.items()
    )
    by_task = (f"… {task}" for task in tasks)
    note = (
        f"{numbers['scenes']:,} fresh scenes; the nearest of {numbers['candidates']:,} frames in ψ, excluding the "
        "scene's own. Function: the drawer's opening is within 5 cm of the goal's, or the button is pressed and the "
        "lower drawer within 5 cm. Pose: the cabinet is within 15° and 5 cm."
    )
    if numbers["closer_to_goal"] is not None:
        share = format_rate(numbers["closer_to_goal"])
        note += f" The inferred goal is closer to ψ(g) than ψ(s) is in {share} of the scenes."
    return TextTable(
        title="Analogy arithmetic",
        columns=("nearest frame to", "function", *by_task, "pose", "both", "yaw error, °", "position error, cm"),
        rows=rows,
        note=note,
        figure="arithmetic",
    )


def format_rate(rate: Mapping[str, Any] | None, *, interval: bool = True) -> str:
    """Format a rate in percent, with its interval."""
    if rate is None or rate["value"] is None:
        return NONE
    low, high = rate["interval"]
    return f"{100 * rate['value']:.1f} %" + (f" [{100 * low:.0f}, {100 * high:.0f}]" if interval else "")


def format_estimate(estimate: Mapping[str, Any] | None, scale: float = 1.0, digits: int = 2) -> str:
    """Format an estimate with its interval, both multiplied by `scale`."""
    if estimate is None or estimate["value"] is None:
        return NONE
    value, (low, high) = estimate["value"], estimate["interval"]
    bounds = NONE if low is None or high is None else f"[{scale * low:.{digits}f}, {scale * high:.{digits}f}]"
    return f"{scale * value:.{digits}f} {bounds}"
