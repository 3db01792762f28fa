"""Tasks of the run's dataset with their embeddings: nearest neighbours, inferred goals, and a t-SNE map."""

import io
import json
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gcb.agent.agent import Agent, Example
from gcb.analysis.arithmetic import infer_goal
from gcb.analysis.embed import Tasks, sample_tasks
from gcb.analysis.geometry import openings, pose_error, poses, same_function, same_pose
from gcb.analysis.neighbours import nearest
from gcb.analysis.projection import tsne
from gcb.data import Dataset
from gcb.data.format import NPY_HEADER_ERRORS
from gcb.errors import GCBError
from gcb.explorer.display import open_fraction, task_labels
from gcb.runs.dataset_record import fingerprint
from gcb.runs.find import is_bundled
from gcb.utils.files import write_atomically
from gcb.utils.os_errors import explain_os_errors

TASK_COUNT = 1500
"""Tasks on the map: as many as in the paper's figure, embedded and projected within seconds."""
SEED = 0
CACHE = Path("analysis", "explorer.npz")
ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)
"""Exceptions raised on reading a damaged archive."""

Part = Literal["state", "goal"]


class TaskIndex:
    """Tasks of a dataset with their embeddings; `positions` is the map, None until it has been computed."""

    def __init__(self, agent: Agent, dataset: Dataset, tasks: Tasks, positions: np.ndarray | None = None) -> None:
        self.agent, self.dataset, self.tasks, self.positions = agent, dataset, tasks, positions
        self.pose = poses(dataset, tasks.episode)
        self.labels = task_labels(tasks, self.pose)

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def has_arithmetic(self) -> bool:
        """Whether ψ and φ can be added."""
        phi, psi = self.tasks.phi, self.tasks.psi_state
        return phi is not None and psi is not None and phi.shape == psi.shape

    def pair(self, index: int) -> Example:
        """Return the images (s, g) of a task."""
        if not 0 <= index < len(self):
            raise GCBError(f"task index is {index}; it must be from 0 to {len(self) - 1}.")
        frames = self.dataset.frames
        return np.asarray(frames[self.tasks.state_frame[index]]), np.asarray(frames[self.tasks.goal_frame[index]])

    def drawer_after(self, index: int) -> float | None:
        """How far the drawer is open in a task's goal, as a fraction; None if the dataset does not record it."""
        if self.pose is None or self.tasks.hidden_goal is None:
            return None
        return open_fraction(openings(self.tasks.hidden_goal[[index]], self.pose[[index]])[0, 0])

    def neighbours(self, pair: Example, k: int, own: int | None = None) -> list[dict[str, Any]]:
        """Return the k tasks nearest to a pair in φ (ℓ1), one of each episode: all of an episode are alike.

        If the pair is task `own`, its episode is excluded.
        """
        assert self.tasks.phi is not None, "an index is built only for methods with φ"
        episode = self.tasks.episode
        labels = (np.array([-1 if own is None else episode[own]]), episode)
        others = int((episode != labels[0]).sum())
        if not others:
            return []
        indices, distances = nearest(self.agent.phi(*pair)[None], self.tasks.phi, others, labels, norm="l1")
        first = np.sort(np.unique(episode[indices[0]], return_index=True)[1])[:k]
        return [
            {
                "index": int(indices[0, rank]),
                "task": str(self.tasks.task[indices[0, rank]]),
                "label": self.labels[indices[0, rank]],
                "distance": float(distances[0, rank] / self.tasks.phi.shape[1]),
            }
            for rank in first
        ]

    def inferred_goal(self, state: np.ndarray, example: Example) -> tuple[Part, int]:
        """Return the part and index of the image nearest in ψ (ℓ2) to the goal inferred for `state` from `example`."""
        tasks = self.tasks
        assert tasks.psi_state is not None, "called only if has_arithmetic"
        assert tasks.psi_goal is not None
        point = infer_goal(self.agent, state, example)
        row = int(nearest(point[None], np.concatenate([tasks.psi_state, tasks.psi_goal]))[0][0, 0])
        return ("state", row) if row < len(self) else ("goal", row - len(self))

    def score(self, part: Part, index: int, hidden_goal: np.ndarray, pose: np.ndarray, button: bool) -> dict[str, Any]:
        """Compare an image of a task with the true goal, a hidden state with its cabinet's pose (x, y, yaw)."""
        hidden = self.tasks.hidden_state if part == "state" else self.tasks.hidden_goal
        if self.pose is None or hidden is None:
            return {}
        state, state_pose = hidden[[index]], self.pose[[index]]
        goal, goal_pose = hidden_goal[None], pose[None]
        yaw, position = pose_error(state_pose, goal_pose)
        drawer = -1 if button else 0
        return {
            "same_function": bool(same_function(state, state_pose, goal, goal_pose, np.array([button]))[0]),
            "same_pose": bool(same_pose(state_pose, goal_pose)[0]),
            "yaw_error": float(yaw[0]),
            "position_error": float(position[0]),
            "opening": open_fraction(openings(state, state_pose)[0, drawer]),
            "goal_opening": open_fraction(openings(goal, goal_pose)[0, drawer]),
        }


def build_index(
    agent: Agent, dataset: Dataset, report: Callable[[float], object], count: int = TASK_COUNT
) -> TaskIndex:
    """Embed tasks of the dataset, or load the cached index of the same weights and data.

    `report` receives the fraction done. The map is computed separately, by `draw_map`.
    """
    cached = _read_cache(agent, dataset, count)
    if cached is not None:
        return cached
    done = 0

    def advance(more: int) -> None:
        nonlocal done
        done += more
        report(done / count)

    return TaskIndex(agent, dataset, sample_tasks(agent, dataset, count, SEED, advance=advance))


def draw_map(index: TaskIndex, count: int = TASK_COUNT) -> None:
    """Compute the map (t-SNE of φ) and cache the index in the run directory, unless that belongs to the package."""
    if index.positions is not None or index.tasks.phi is None:
        return
    index.positions = tsne(index.tasks.phi, SEED)
    if index.agent.run is not None and not is_bundled(index.agent.run.path):
        _write_cache(index, count)


def _cache_key(agent: Agent, dataset: Dataset, count: int) -> str:
    checkpoint = agent.run.checkpoint() if agent.run else None
    if checkpoint is None or checkpoint.step != agent.step:
        raise GCBError("the map was not cached: the run has a newer checkpoint than the loaded agent")
    weights = checkpoint.weights.sha256
    return json.dumps({"weights": weights, "data": fingerprint(dataset), "count": count, "seed": SEED, "version": 1})


def _read_cache(agent: Agent, dataset: Dataset, count: int) -> TaskIndex | None:
    """Return the cached index, or None if it is missing, damaged, or of other weights or data."""
    assert agent.run is not None, "the explorer's agent is loaded from a run"
    try:
        with np.load(agent.run.path / CACHE, allow_pickle=False) as file:
            if str(file["key"]) != _cache_key(agent, dataset, count):
                return None
            arrays: Mapping[str, np.ndarray] = {name: file[name] for name in file.files}
        names = [field.name for field in fields(Tasks) if field.name in arrays]
        return TaskIndex(agent, dataset, Tasks(**{name: arrays[name] for name in names}), arrays["positions"])
    except (OSError, KeyError, IndexError, GCBError, *ZIP_ERRORS, *NPY_HEADER_ERRORS):
        return None


def _write_cache(index: TaskIndex, count: int) -> None:
    assert index.agent.run is not None, "the explorer's agent is loaded from a run"
    arrays = {field.name: getattr(index.tasks, field.name) for field in fields(Tasks)}
    arrays |= {"key": np.array(_cache_key(index.agent, index.dataset, count)), "positions": index.positions}
    buffer = io.BytesIO()
    np.savez(buffer, **{name: array for name, array in arrays.items() if array is not None})
    path = index.agent.run.path / CACHE
    with explain_os_errors(path):
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, buffer.getvalue())
