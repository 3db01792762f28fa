"""Tasks of the run's dataset as the agent sees them: neighbours, inferred goals, and a map."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gcb.agent.agent import Agent, Example
from gcb.analysis.arithmetic import infer_goal
from gcb.analysis.embed import Tasks
from gcb.analysis.geometry import openings, pose_error, poses, same_function, same_pose
from gcb.analysis.neighbours import nearest
from gcb.data import Dataset
from gcb.errors import GCBError
from gcb.explorer.labels import share, words_of_tasks


@dataclass(frozen=True)
class Wanted:
    """What is to be done in the visitor's scene, to judge an inferred goal by."""

    hidden_goal: np.ndarray
    pose: np.ndarray
    """(3,) x, y and yaw of the cabinet."""
    button_task: bool


class TaskIndex:
    """Tasks of a dataset with their embeddings; `places` is the map, None until it is drawn."""

    def __init__(self, agent: Agent, dataset: Dataset, tasks: Tasks, places: np.ndarray | None = None) -> None:
        self.agent, self.dataset, self.tasks, self.places = agent, dataset, tasks, places
        self.pose = poses(dataset, tasks.episode)
        self.words = words_of_tasks(tasks, self.pose)

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def has_arithmetic(self) -> bool:
        """Whether ψ and φ can be added."""
        phi, psi = self.tasks.phi, self.tasks.psi_state
        return phi is not None and psi is not None and phi.shape == psi.shape

    def pair(self, index: int) -> Example:
        """The pictures (s, g) of a task."""
        if not 0 <= index < len(self):
            raise GCBError(f"there is no task {index}; accepted: 0 to {len(self) - 1}.")
        frames = self.dataset.frames
        return np.asarray(frames[self.tasks.state_frame[index]]), np.asarray(frames[self.tasks.goal_frame[index]])

    def after(self, index: int) -> float | None:
        """How far the drawer is open in a task's goal, as a share; None where that is not known."""
        if self.pose is None or self.tasks.hidden_goal is None:
            return None
        return share(openings(self.tasks.hidden_goal[[index]], self.pose[[index]])[0, 0])

    def neighbours(self, pair: Example, k: int, own: int | None = None) -> list[dict[str, Any]]:
        """The tasks nearest in φ to a pair, in φ's own norm (ℓ1); for one of the tasks, its own episode is left out."""
        assert self.tasks.phi is not None, "only methods with φ come here"
        episode = self.tasks.episode
        labels = (np.array([-1 if own is None else episode[own]]), episode)
        k = min(k, int((episode != labels[0]).sum()))
        found, distance = nearest(self.agent.phi(*pair)[None], self.tasks.phi, k, labels, norm="l1")
        mean = distance[0] / self.tasks.phi.shape[1]
        return [self._entry(index) | {"distance": float(far)} for index, far in zip(found[0], mean, strict=True)]

    def inferred(self, state: np.ndarray, example: Example, wanted: Wanted | None) -> dict[str, Any]:
        """The frame of the dataset that is nearest in ψ (ℓ2) to the goal that the example means for `state`."""
        tasks = self.tasks
        assert tasks.psi_state is not None, "only methods with ψ come here"
        assert tasks.psi_goal is not None
        point = infer_goal(self.agent, state, example)
        index = int(nearest(point[None], np.concatenate([tasks.psi_state, tasks.psi_goal]))[0][0, 0])
        part, row = ("state", index) if index < len(self) else ("goal", index - len(self))
        return {"index": row, "part": part} | (self._judged(part, row, wanted) if wanted else {})

    def _judged(self, part: str, row: int, wanted: Wanted) -> dict[str, Any]:
        """Whether what was found has the function and the pose that were wanted."""
        hidden = self.tasks.hidden_state if part == "state" else self.tasks.hidden_goal
        if self.pose is None or hidden is None:
            return {}
        found, pose = hidden[[row]], self.pose[[row]]
        goal, own = wanted.hidden_goal[None], wanted.pose[None]
        yaw, position = pose_error(pose, own)
        drawer = -1 if wanted.button_task else 0
        return {
            "function": bool(same_function(found, pose, goal, own, np.array([wanted.button_task]))[0]),
            "pose": bool(same_pose(pose, own)[0]),
            "yaw": float(yaw[0]),
            "position": float(position[0]),
            "opening": share(openings(found, pose)[0, drawer]),
            "wanted_opening": share(openings(goal, own)[0, drawer]),
        }

    def _entry(self, index: int) -> dict[str, Any]:
        return {"index": int(index), "task": str(self.tasks.task[index]), "words": self.words[index]}
