"""The numbers of an analysis as tables of text, for the terminal and the report alike."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gcb.analysis.arithmetic import POINTS
from gcb.analysis.neighbour_metrics import KINDS

NONE = "–"


@dataclass(frozen=True)
class TextTable:
    """A table to be drawn."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str
    figure: str
    """Name of the figure that it stands beside."""


def tables_of(numbers: Mapping[str, Any]) -> Iterator[TextTable]:
    """A table for each part of the analysis that has numbers."""
    if "neighbours" in numbers:
        yield _neighbours(numbers["neighbours"])
    if "values" in numbers:
        yield _values(numbers["values"])
    if "arithmetic" in numbers:
        yield _arithmetic(numbers["arithmetic"])


def _neighbours(part: Mapping[str, Any]) -> TextTable:
    rows = tuple(
        (
            words,
            share(part[kind]["same_task"]),
            measured(part[kind]["travel_left"], 100, 1),
            measured(part[kind]["gripper"], 100, 1),
        )
        for kind, words in KINDS.items()
    )
    return TextTable(
        title="A task and its nearest neighbour",
        columns=("neighbour", "same task", "travel left off, cm", "gripper off, cm"),
        rows=rows,
        note=f"{part['samples']:,} tasks of as many episodes among {part['pool']:,}, neighbours from other episodes "
        "only; means with 95 % intervals. Travel left is how far the drawers still have to go; the gripper's place is "
        "that in the cabinet's frame.",
        figure="neighbours",
    )


def _values(part: Mapping[str, Any]) -> TextTable:
    return TextTable(
        title="Distance in φ and difference in value",
        columns=("correlation", "of distance and |V - V'|"),
        rows=tuple((name, measured(part[key])) for name, key in (("Pearson", "pearson"), ("Spearman", "spearman"))),
        note=f"{part['pairs']:,} random pairs of tasks. Where the value bound is at work, tasks that are near in φ "
        "have like values.",
        figure="values",
    )


def _arithmetic(part: Mapping[str, Any]) -> TextTable:
    found = {name: part[name] for name in POINTS if name in part}
    tasks = list(next(iter(found.values()))["function_by_task"])
    each = tasks if len(tasks) > 1 else []
    rows = tuple(
        (
            POINTS[name],
            share(one["function"]),
            *(share(one["function_by_task"][task], False) for task in each),
            share(one["pose"]),
            share(one["both"]),
            measured(one["yaw_error"], 1, 0),
            measured(one["position_error"], 100, 1),
        )
        for name, one in found.items()
    )
    by_task = tuple(f"function, {task}" for task in each)
    columns = ("neighbour of", "right function", *by_task, "right pose", "both", "yaw off, °", "position off, cm")
    note = (
        f"{part['scenes']:,} fresh scenes; neighbours in ψ among {part['candidates']:,} frames, the scene's own left "
        "out. Function: the drawer's opening within 5 cm of the goal's, or the button pressed and the lower drawer "
        "within 5 cm. Pose: the cabinet within 15° and 5 cm."
    )
    if part["towards"] is not None:
        towards = share(part["towards"])
        note += f" The inferred goal is nearer to ψ(g) than ψ(s) is in {towards} of the scenes."
    return TextTable("Analogy arithmetic", columns, rows, note, "arithmetic")


def share(rate: Mapping[str, Any] | None, interval: bool = True) -> str:
    """A share in percent, with its interval."""
    if rate is None or rate["value"] is None:
        return NONE
    low, high = rate["interval"]
    return f"{100 * rate['value']:.1f} %" + (f" [{100 * low:.0f}, {100 * high:.0f}]" if interval else "")


def measured(estimate: Mapping[str, Any] | None, scale: float = 1.0, digits: int = 2) -> str:
    """A number in a unit of which there are `scale` in its own, with its interval."""
    if estimate is None or estimate["value"] is None:
        return NONE
    value, (low, high) = estimate["value"], estimate["interval"]
    bounds = NONE if low is None or high is None else f"[{scale * low:.{digits}f}, {scale * high:.{digits}f}]"
    return f"{scale * value:.{digits}f} {bounds}"
