"""How alike a task and its nearest neighbours in φ are, beside neighbours in pixels and by chance; and φ against V.

A neighbour is always of another episode, that is, of another scene with other colours, distractors and another pose. Of
each episode at most one task is looked up, so that the samples are independent. What is compared:

same task      whether the neighbour is the same kind of task (drawer or button)
travel left    how far the drawers still have to go: the norm of the difference over the drawers, in metres
gripper        where the gripper is, as the cabinet sees it: the distance of the two places, in metres
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from gcb.analysis.embed import Tasks
from gcb.analysis.geometry import gripper_place, travel_left
from gcb.analysis.neighbours import nearest
from gcb.data import Dataset
from gcb.errors import GCBError
from gcb.utils.statistics import Estimate, Rate, bootstrap

KINDS = {"phi": "nearest in φ", "pixels": "nearest in pixels", "random": "at random"}


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Rows of `Tasks` that were looked up, and for each the row of its neighbour."""

    query: np.ndarray
    """(q,)"""
    found: dict[str, np.ndarray]
    """(q,) for each of `KINDS`."""

    def rows(self, chosen: list[int]) -> "Neighbours":
        """Some of them."""
        return Neighbours(self.query[chosen], {kind: found[chosen] for kind, found in self.found.items()})


@dataclass(frozen=True)
class Likeness:
    """How alike tasks and their first neighbours are, over all that were looked up. None where it cannot be known."""

    same_task: Rate | None
    travel_left: Estimate | None
    gripper: Estimate | None


@dataclass(frozen=True, eq=False)
class ValuePairs:
    """Pairs of tasks of different episodes, each task in one pair."""

    distance: np.ndarray
    """(p,) the mean of |φ - φ'| over its dimensions, as `Agent.distance` has it."""
    gap: np.ndarray
    """(p,) |V - V'|"""

    def correlations(self) -> dict[str, Estimate]:
        """Of distance and gap: of the numbers (Pearson) and of their ranks (Spearman)."""
        return {
            "pearson": bootstrap(_correlation, self.distance, self.gap),
            "spearman": bootstrap(_rank_correlation, self.distance, self.gap),
        }


def find_neighbours(tasks: Tasks, dataset: Dataset, samples: int, seed: int) -> Neighbours:
    """The neighbours of up to `samples` tasks among all of them: in φ (ℓ1, the metric's norm), in pixels, by chance."""
    if tasks.phi is None:
        raise GCBError("the method has no φ: there are no neighbours in it.")
    _, first = np.unique(tasks.episode, return_index=True)
    query = np.sort(first)[:samples]
    own = tasks.episode[query], tasks.episode
    pixels = np.concatenate([_flat(dataset.frames, tasks.state_frame), _flat(dataset.frames, tasks.goal_frame)], 1)
    chance = np.random.default_rng(seed).random((len(tasks), 1))
    return Neighbours(
        query,
        {
            "phi": nearest(tasks.phi[query], tasks.phi, 1, own, "l1")[0][:, 0],
            "pixels": nearest(pixels[query], pixels, 1, own)[0][:, 0],
            # The nearest among random numbers is anyone, and of another episode.
            "random": nearest(chance[query], chance, 1, own)[0][:, 0],
        },
    )


def second_neighbours(tasks: Tasks, neighbours: Neighbours) -> np.ndarray:
    """(q,) for each task the next neighbour in φ that is of yet another episode than its first."""
    assert tasks.phi is not None, "find_neighbours comes first"
    found = []
    for row, first in zip(neighbours.query, neighbours.found["phi"], strict=True):
        others = np.flatnonzero(~np.isin(tasks.episode, tasks.episode[[row, first]]))
        found.append(others[nearest(tasks.phi[[row]], tasks.phi[others], norm="l1")[0][0, 0]] if len(others) else first)
    return np.array(found)


def compare(tasks: Tasks, pose: np.ndarray | None, query: np.ndarray, neighbour: np.ndarray) -> Likeness:
    """How alike the tasks in the rows `query` and `neighbour` are; `pose` is that of every task's cabinet, if known."""
    same = None
    if len(set(tasks.task)) > 1:
        equal = tasks.task[query] == tasks.task[neighbour]
        same = Rate(int(equal.sum()), len(equal))
    if pose is None or tasks.hidden_state is None or tasks.hidden_goal is None:
        return Likeness(same, None, None)
    left = travel_left(tasks.hidden_state, tasks.hidden_goal, pose)
    place = gripper_place(tasks.hidden_state, pose)
    errors = (np.linalg.norm(part[query] - part[neighbour], axis=1) for part in (left, place))
    return Likeness(same, *(bootstrap(np.mean, error) for error in errors))


def pair_values(tasks: Tasks, seed: int) -> ValuePairs:
    """Tasks in random pairs: how far apart they are in φ, and in value."""
    if tasks.phi is None:
        raise GCBError("the method has no φ: there are no distances in it.")
    order = np.random.default_rng(seed).permutation(len(tasks))
    half = len(tasks) // 2
    left, right = order[:half], order[half : 2 * half]
    apart = tasks.episode[left] != tasks.episode[right]
    left, right = left[apart], right[apart]
    distance = np.abs(tasks.phi[left] - tasks.phi[right]).mean(1)
    return ValuePairs(distance, np.abs(tasks.value[left] - tasks.value[right]))


def _flat(frames: np.ndarray, index: np.ndarray) -> np.ndarray:
    return np.asarray(frames[index]).reshape(len(index), -1)


def _correlation(left: np.ndarray, right: np.ndarray) -> float:
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.corrcoef(left, right)[0, 1])


def _rank_correlation(left: np.ndarray, right: np.ndarray) -> float:
    return _correlation(rankdata(left), rankdata(right))
