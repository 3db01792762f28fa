"""The paper's figures, and one more: each function takes what was measured and gives back one figure.

Which tasks and scenes are shown is the caller's choice, made by seed; failures stay in.
"""

import io
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import ConnectionPatch

from gcb.analysis.arithmetic import POINTS, Judged
from gcb.analysis.embed import Tasks
from gcb.analysis.geometry import travel_left
from gcb.analysis.neighbour_metrics import Neighbours, ValuePairs, second_neighbours
from gcb.analysis.scenes import Scenes
from gcb.data import Dataset

INK, QUIET, GOOD, BAD = "#22272e", "#6b7280", "#1a7f4b", "#b3261e"
MARKERS = ("o", "^", "s", "D")
COLOURS = "viridis"
CELL = 1.15  # inches of one picture
DPI = 110


def png(figure: Figure) -> bytes:
    """The figure as the bytes of a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, facecolor="white", metadata={"Software": None})
    return buffer.getvalue()


def neighbours_figure(dataset: Dataset, tasks: Tasks, neighbours: Neighbours, pose: np.ndarray | None) -> Figure:
    """Each row a task (s, g), its neighbours in φ from two other episodes, and that in pixels (Fig. phi_nn)."""
    captions = _captions(tasks, pose)
    columns = {
        "task": neighbours.query,
        "nearest in φ": neighbours.found["phi"],
        "next in φ": second_neighbours(tasks, neighbours),
        "nearest in pixels": neighbours.found["pixels"],
    }
    rows, gap = len(neighbours.query), 0.18
    width, height = len(columns) * (2 * CELL + gap), rows * (CELL + 0.24) + 0.3
    figure = Figure(figsize=(width, height))
    for column, (title, chosen) in enumerate(columns.items()):
        left = (column * (2 * CELL + gap) + gap / 2) / width
        figure.text(left, 1 - 0.06 / height, title, fontsize=10, color=INK, weight="bold", va="top")
        for line, row in enumerate(chosen):
            bottom = 1 - (0.3 + (line + 1) * (CELL + 0.24)) / height
            figure.text(left, bottom + (CELL + 0.04) / height, captions[row], fontsize=8, color=QUIET)
            for part, frame in enumerate((tasks.state_frame[row], tasks.goal_frame[row])):
                place = (left + part * CELL / width, bottom, 0.98 * CELL / width, CELL / height)
                _picture(figure.add_axes(place), dataset.frames[frame])
    return figure


def map_figure(dataset: Dataset | None, tasks: Tasks, positions: np.ndarray, shown: Sequence[int]) -> Figure:
    """t-SNE of φ coloured by the critic's value, with pictures of the tasks in the rows `shown` (Fig. tsne).

    Without a dataset of pictures, the map alone.
    """
    figure = Figure(figsize=(11, 6.6))
    ax = figure.add_axes((0.235, 0.1, 0.53, 0.86))
    names = sorted(set(tasks.task))
    for name, marker in zip(names, MARKERS * len(names), strict=False):
        rows = tasks.task == name
        limits = {"vmin": tasks.value.min(), "vmax": tasks.value.max()}
        points = ax.scatter(
            *positions[rows].T, c=tasks.value[rows], cmap=COLOURS, marker=marker, s=14, lw=0, alpha=0.85, **limits
        )
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    if len(names) > 1:
        marks = zip(names, MARKERS * len(names), strict=False)
        handles = [Line2D([], [], ls="", marker=marker, color=QUIET, label=name) for name, marker in marks]
        ax.legend(handles=handles, loc="lower right", frameon=False, fontsize=9)
    bar = figure.colorbar(points, cax=figure.add_axes((0.36, 0.065, 0.28, 0.016)), orientation="horizontal")
    bar.set_label("critic's value V(s, g)", fontsize=9, color=INK)
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    bar.ax.tick_params(labelsize=8)
    if dataset is not None:
        _pictures_beside(figure, ax, dataset, tasks, positions, shown)
    return figure


def arithmetic_figure(scenes: Scenes, judged: Judged, point: str, shown: Sequence[int]) -> Figure:
    """Each row s | s_a | g_a | neighbour of the inferred goal | the true goal (Fig. analogy_arith).

    The true goal is there to compare; it was not in the set that was searched.
    """
    titles = ("s", "example s_a", "example g_a", "inferred goal's\nneighbour", "true goal\n(not searched)")
    figure = Figure(figsize=(CELL * len(titles) + 1.5, (CELL + 0.06) * len(shown) + 0.75))
    cells = figure.subplots(len(shown), len(titles), squeeze=False)
    height = figure.get_figheight()
    figure.suptitle(POINTS[point], fontsize=9, color=QUIET, y=1 - 0.03 / height, va="top")
    right = 1 - 1.4 / figure.get_figwidth()
    figure.subplots_adjust(left=0.01, right=right, top=1 - 0.68 / height, bottom=0.01, wspace=0.05, hspace=0.05)
    frames = scenes.frames
    for line, row in zip(cells, shown, strict=True):
        found = frames[judged.neighbour[row]]
        pictures = (scenes.state[row], scenes.example_state[row], scenes.example_goal[row], found, scenes.goal[row])
        for ax, picture in zip(line, pictures, strict=True):
            _picture(ax, picture)
        _verdicts(line[-1], scenes, judged, row)
        _frame(line[3], GOOD if judged.function[row] else BAD)
    for ax, title in zip(cells[0], titles, strict=True):
        ax.set_title(title, fontsize=9, color=INK, pad=3)
    return figure


def values_figure(pairs: ValuePairs) -> Figure:
    """‖φ - φ'‖ against |V - V'|: single pairs, and quantiles along the way."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    ax = figure.subplots()
    ax.scatter(pairs.distance, pairs.gap, s=7, lw=0, alpha=0.35, color="#3b6ea5", label="pairs of tasks")
    if len(pairs.gap) >= 40:
        parts = np.array_split(np.argsort(pairs.distance), 10)
        middle = [pairs.distance[part].mean() for part in parts]
        for share, style in ((0.5, "-"), (0.9, "--")):
            level = [np.quantile(pairs.gap[part], share) for part in parts]
            ax.plot(middle, level, style, color=INK, lw=1.4, label=f"{share:.0%} of pairs lie below")
    ax.set(xlabel="distance of two tasks in φ (mean ℓ1)", ylabel="|V - V'|", xlim=(0, None), ylim=(0, None))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def _captions(tasks: Tasks, pose: np.ndarray | None) -> list[str]:
    """The name of each task, and how far its drawers still have to go."""
    if pose is None or tasks.hidden_state is None or tasks.hidden_goal is None:
        return list(tasks.task)
    left = travel_left(tasks.hidden_state, tasks.hidden_goal, pose)
    most = left[np.arange(len(left)), np.abs(left).argmax(1)]
    whole = np.round(100 * most).astype(int)
    return [f"{name}, {way:+d} cm to go" for name, way in zip(tasks.task, whole, strict=True)]


def _pictures_beside(
    figure: Figure, ax: Axes, dataset: Dataset, tasks: Tasks, positions: np.ndarray, shown: Sequence[int]
) -> None:
    """Pictures of tasks left and right of the map, each tied to its point; sorted, so that few ties cross."""
    across = sorted(shown, key=lambda row: positions[row, 0])
    half = (len(across) + 1) // 2
    for side, rows in ((0.0, across[:half]), (0.785, across[half:])):
        step = 0.97 / max(half, 1)
        for place, row in enumerate(sorted(rows, key=lambda row: -positions[row, 1])):
            bottom = 0.985 - (place + 1) * step
            for part, frame in enumerate((tasks.state_frame[row], tasks.goal_frame[row])):
                cell = figure.add_axes((side + 0.005 + 0.103 * part, bottom, 0.1, step * 0.92))
                _picture(cell, dataset.frames[frame])
            edge = (1.02, 0.5) if side == 0.0 else (-1.05, 0.5)
            tie = ConnectionPatch(edge, positions[row], cell.transAxes, ax.transData, color=QUIET, lw=0.7, alpha=0.8)
            figure.add_artist(tie)
            ax.plot(*positions[row], marker="o", ms=7, mfc="none", mec=INK, mew=1.2)


def _verdicts(ax: Axes, scenes: Scenes, judged: Judged, row: int) -> None:
    """What is right and wrong with the neighbour, at the end of its row."""
    lines = [
        (str(scenes.task[row]), INK),
        (f"function {_mark(judged.function[row])}", GOOD if judged.function[row] else BAD),
        (f"pose {_mark(judged.pose[row])}", GOOD if judged.pose[row] else BAD),
        (f"{judged.yaw_error[row]:.0f}°, {100 * judged.position_error[row]:.0f} cm off", QUIET),
    ]
    for number, (text, colour) in enumerate(lines):
        ax.text(1.08, 0.92 - 0.24 * number, text, transform=ax.transAxes, fontsize=8, color=colour, va="top")


def _mark(right: np.bool_) -> str:
    return "✓" if right else "✗"


def _picture(ax: Axes, frame: np.ndarray) -> None:
    grey = frame.shape[2] == 1
    ax.imshow(frame[..., 0] if grey else frame, cmap="gray" if grey else None, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def _frame(ax: Axes, colour: str) -> None:
    ax.spines[:].set(visible=True, color=colour, linewidth=2.5)
