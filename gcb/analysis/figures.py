"""The paper's figures and one more, each drawn by one function from measured data.

The caller selects the tasks and scenes to show, at random by its seed; failures are included.
"""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import ConnectionPatch

from gcb.analysis.arithmetic import ESTIMATES, Retrieval
from gcb.analysis.embed import Tasks
from gcb.analysis.geometry import remaining_travel
from gcb.analysis.neighbour_metrics import Neighbours, ValuePairs, second_neighbours
from gcb.analysis.scenes import Scenes
from gcb.data import Dataset

INK, MUTED, GOOD, BAD = "#22272e", "#6b7280", "#1a7f4b", "#b3261e"
MARKERS = ("o", "^", "s", "D")
CELL = 1.15  # side of an image in inches
DPI = 110


def png(figure: Figure) -> bytes:
    """Return the figure as a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, facecolor="white", metadata={"Software": None})
    return buffer.getvalue()


def neighbours_figure(dataset: Dataset, tasks: Tasks, neighbours: Neighbours, pose: np.ndarray | None) -> Figure:
    """Draw a row for each task (s, g): its neighbours in φ from two other episodes and in pixels (Fig. phi_nn)."""
    captions = _captions(tasks, pose)
    columns = {
        "task: state and goal": neighbours.query,
        "nearest in φ": neighbours.nearest["phi"],
        "second nearest in φ": second_neighbours(tasks, neighbours),
        "nearest in pixels": neighbours.nearest["pixels"],
    }
    rows, gap = len(neighbours.query), 0.18
    width, height = len(columns) * (2 * CELL + gap), rows * (CELL + 0.24) + 0.3
    figure = Figure(figsize=(width, height))
    for column, (title, tasks_shown) in enumerate(columns.items()):
        left = (column * (2 * CELL + gap) + gap / 2) / width
        figure.text(left, 1 - 0.06 / height, title, fontsize=10, color=INK, weight="bold", va="top")
        for line, row in enumerate(tasks_shown):
            bottom = 1 - (0.3 + (line + 1) * (CELL + 0.24)) / height
            figure.text(left, bottom + (CELL + 0.04) / height, captions[row], fontsize=8, color=MUTED)
            for part, frame in enumerate((tasks.state_frame[row], tasks.goal_frame[row])):
                box = (left + part * CELL / width, bottom, 0.98 * CELL / width, CELL / height)
                _show(figure.add_axes(box), dataset.frames[frame])
    return figure


def map_figure(dataset: Dataset | None, tasks: Tasks, positions: np.ndarray, shown: Sequence[int]) -> Figure:
    """Draw t-SNE of φ coloured by the critic's value, with images of the tasks in the rows `shown` (Fig. tsne).

    Without a dataset of images, draw the map alone; without values, colour by task.
    """
    figure = Figure(figsize=(11, 6.6))
    ax = figure.add_axes((0.235, 0.1, 0.53, 0.86))
    names, has_value = sorted(set(tasks.task)), bool(np.isfinite(tasks.value).all())
    limits = {"vmin": tasks.value.min(), "vmax": tasks.value.max()}
    for number, (name, marker) in enumerate(zip(names, MARKERS * len(names), strict=False)):
        rows, own = tasks.task == name, f"C{number}"
        color: dict[str, Any] = {"c": tasks.value[rows], "cmap": "viridis", **limits} if has_value else {"color": own}
        points = ax.scatter(*positions[rows].T, marker=marker, s=14, lw=0, alpha=0.85, **color)
        ax.plot([], [], ls="", marker=marker, color=MUTED if has_value else own, label=name)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    if len(names) > 1:
        ax.legend(loc="lower right", frameon=False, fontsize=9)
    if has_value:
        bar = figure.colorbar(points, cax=figure.add_axes((0.36, 0.065, 0.28, 0.016)), orientation="horizontal")
        bar.set_label("value V(s, g) of the critic", fontsize=9, color=INK)
        bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
        bar.ax.tick_params(labelsize=8)
    if dataset is not None:
        _images_beside(figure, ax, dataset, tasks, positions, shown)
    return figure


def arithmetic_figure(scenes: Scenes, retrieval: Retrieval, estimate: str, shown: Sequence[int]) -> Figure:
    """Draw a row for each scene: state, example, frame nearest to the inferred goal, true goal (Fig. analogy_arith).

    The true goal is shown for comparison; it is excluded from the search.
    """
    titles = (
        "state",
        "example:\nbefore",
        "example:\nafter",
        "nearest frame to\nthe inferred goal",
        "true goal\n(for comparison)",
    )
    figure = Figure(figsize=(CELL * len(titles) + 1.5, (CELL + 0.06) * len(shown) + 0.75))
    cells = figure.subplots(len(shown), len(titles), squeeze=False)
    height = figure.get_figheight()
    figure.suptitle(f"inferred goal: {ESTIMATES[estimate]}", fontsize=9, color=MUTED, y=1 - 0.03 / height, va="top")
    right = 1 - 1.4 / figure.get_figwidth()
    figure.subplots_adjust(left=0.01, right=right, top=1 - 0.68 / height, bottom=0.01, wspace=0.05, hspace=0.05)
    frames = scenes.frames
    for line, row in zip(cells, shown, strict=True):
        nearest = frames[retrieval.neighbour[row]]
        images = (scenes.state[row], scenes.example_state[row], scenes.example_goal[row], nearest, scenes.goal[row])
        for ax, image in zip(line, images, strict=True):
            _show(ax, image)
        _verdicts(line[-1], scenes, retrieval, row)
        line[3].spines[:].set(visible=True, color=GOOD if retrieval.function[row] else BAD, linewidth=2.5)
    for ax, title in zip(cells[0], titles, strict=True):
        ax.set_title(title, fontsize=9, color=INK, pad=3)
    return figure


def values_figure(pairs: ValuePairs) -> Figure:
    """Draw ‖φ - φ'‖ against |V - V'|: single pairs, and quantiles in ten bins of distance."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    ax = figure.subplots()
    ax.scatter(pairs.distance, pairs.value_gap, s=7, lw=0, alpha=0.35, color="#3b6ea5", label="pairs of tasks")
    if len(pairs.value_gap) >= 40:
        parts = np.array_split(np.argsort(pairs.distance), 10)
        centres = [pairs.distance[part].mean() for part in parts]
        for quantile, style in ((0.5, "-"), (0.9, "--")):
            level = [np.quantile(pairs.value_gap[part], quantile) for part in parts]
            ax.plot(centres, level, style, color=INK, lw=1.4, label=f"{quantile:.0%} of pairs are below")
    ax.set(
        xlabel="distance between two tasks in φ (mean ℓ1)",
        ylabel="difference in value |V - V'|",
        xlim=(0, None),
        ylim=(0, None),
    )
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def _captions(tasks: Tasks, pose: np.ndarray | None) -> list[str]:
    """Return the name of each task and how far its drawers have yet to move."""
    if pose is None or tasks.hidden_state is None or tasks.hidden_goal is None:
        return list(tasks.task)
    travel = remaining_travel(tasks.hidden_state, tasks.hidden_goal, pose)
    longest = travel[np.arange(len(travel)), np.abs(travel).argmax(1)]
    centimetres = np.round(100 * longest).astype(int)
    return [f"{name}, {distance:+d} cm to go" for name, distance in zip(tasks.task, centimetres, strict=True)]


def _images_beside(
    figure: Figure, ax: Axes, dataset: Dataset, tasks: Tasks, positions: np.ndarray, shown: Sequence[int]
) -> None:
    """Draw images of tasks left and right of the map, each linked to its point; sorted so that few links cross."""
    by_x = sorted(shown, key=lambda row: positions[row, 0])
    half = (len(by_x) + 1) // 2
    for side, rows in ((0.0, by_x[:half]), (0.785, by_x[half:])):
        step = 0.97 / max(half, 1)
        for index, row in enumerate(sorted(rows, key=lambda row: -positions[row, 1])):
            bottom = 0.985 - (index + 1) * step
            for part, frame in enumerate((tasks.state_frame[row], tasks.goal_frame[row])):
                cell = figure.add_axes((side + 0.005 + 0.103 * part, bottom, 0.1, step * 0.92))
                _show(cell, dataset.frames[frame])
            edge = (1.02, 0.5) if side == 0.0 else (-1.05, 0.5)
            link = ConnectionPatch(edge, positions[row], cell.transAxes, ax.transData, color=MUTED, lw=0.7, alpha=0.8)
            figure.add_artist(link)
            ax.plot(*positions[row], marker="o", ms=7, mfc="none", mec=INK, mew=1.2)


def _verdicts(ax: Axes, scenes: Scenes, retrieval: Retrieval, row: int) -> None:
    """Write what is right and wrong with the nearest frame at the end of its row."""
    right, wrong = ("✓", GOOD), ("✗", BAD)
    marks = {name: right if getattr(retrieval, name)[row] else wrong for name in ("function", "pose")}
    lines = [
        (str(scenes.task[row]), INK),
        *((f"{name} {mark}", colour) for name, (mark, colour) in marks.items()),
        (f"{retrieval.yaw_error[row]:.0f}°, {100 * retrieval.position_error[row]:.0f} cm off", MUTED),
    ]
    for number, (text, colour) in enumerate(lines):
        ax.text(1.08, 0.92 - 0.24 * number, text, transform=ax.transAxes, fontsize=8, color=colour, va="top")


def _show(ax: Axes, frame: np.ndarray) -> None:
    grey = frame.shape[2] == 1
    ax.imshow(frame[..., 0] if grey else frame, cmap="gray" if grey else None, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
