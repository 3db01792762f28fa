"""How similar tasks and their nearest neighbours in φ are, compared with pixels and chance; and φ against V.

A neighbour is always from another episode, so it has other colours, distractors and another pose. At most one task of
each episode is a query, so the samples are independent. Compared are:

same_task        whether the neighbour is an instance of the same task (drawer or button)
travel_error     how far the drawers have yet to move: the norm of the difference over the drawers, in metres
gripper_error    the distance between the gripper's positions in the cabinet's frame, in metres
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from gcb.analysis.embed import Tasks
from gcb.analysis.geometry import gripper_position, remaining_travel
from gcb.analysis.neighbours import nearest
from gcb.data import Dataset
from gcb.errors import GCBError
from gcb.utils.statistics import Estimate, Rate, bootstrap

NEIGHBOUR_TYPES = {"phi": "nearest in φ", "pixels": "nearest in pixels", "random": "random"}


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Rows of `Tasks`: queries and the neighbour of each."""

    query: np.ndarray
    """(q,)"""
    nearest: dict[str, np.ndarray]
    """(q,) for each of `NEIGHBOUR_TYPES`."""

    def rows(self, index: list[int]) -> "Neighbours":
        """Return some of them."""
        return Neighbours(self.query[index], {name: rows[index] for name, rows in self.nearest.items()})


@dataclass(frozen=True)
class NeighbourMetrics:
    """How similar tasks and their neighbours are, over all queries. None if it cannot be known."""

    same_task: Rate | None
    travel_error: Estimate | None
    gripper_error: Estimate | None


@dataclass(frozen=True, eq=False)
class ValuePairs:
    """Pairs of tasks from different episodes, each task in one pair."""

    distance: np.ndarray
    """(p,) the mean of |φ - φ'| over its dimensions, as in `Agent.distance`."""
    value_gap: np.ndarray
    """(p,) |V - V'|"""

    def correlations(self) -> dict[str, Estimate]:
        """Return Pearson's and Spearman's correlation of distance and value gap."""
        return {
            "pearson": bootstrap(_correlation, self.distance, self.value_gap),
            "spearman": bootstrap(_rank_correlation, self.distance, self.value_gap),
        }


def find_neighbours(tasks: Tasks, dataset: Dataset, samples: int, seed: int) -> Neighbours:
    """Find the neighbours of up to `samples` tasks among all: in φ (ℓ1, the metric's norm), in pixels, at random."""
    if tasks.phi is None:
        raise GCBError("the method has no φ: there are no neighbours in it.")
    _, first = np.unique(tasks.episode, return_index=True)
    query = np.sort(first)[:samples]
    episodes = tasks.episode[query], tasks.episode
    pixels = np.concatenate([_flat(dataset.frames, tasks.state_frame), _flat(dataset.frames, tasks.goal_frame)], 1)
    noise = np.random.default_rng(seed).random((len(tasks), 1))
    return Neighbours(
        query,
        {
            "phi": nearest(tasks.phi[query], tasks.phi, 1, episodes, "l1")[0][:, 0],
            "pixels": nearest(pixels[query], pixels, 1, episodes)[0][:, 0],
            # The nearest of random numbers is a random task of another episode.
            "random": nearest(noise[query], noise, 1, episodes)[0][:, 0],
        },
    )


def second_neighbours(tasks: Tasks, neighbours: Neighbours) -> np.ndarray:
    """Return (q,) the next neighbour in φ of each query, from a third episode; the first if there is none."""
    assert tasks.phi is not None, "find_neighbours checks that there is a φ"
    second = neighbours.nearest["phi"].copy()
    for row, (query, first) in enumerate(zip(neighbours.query, neighbours.nearest["phi"], strict=True)):
        others = np.flatnonzero(~np.isin(tasks.episode, tasks.episode[[query, first]]))
        if len(others):
            second[row] = others[nearest(tasks.phi[[query]], tasks.phi[others], norm="l1")[0][0, 0]]
    return second


def compare(tasks: Tasks, pose: np.ndarray | None, query: np.ndarray, neighbour: np.ndarray) -> NeighbourMetrics:
    """Compare the tasks in the rows `query` and `neighbour`; `pose` holds every task's cabinet pose, if known."""
    same_task = None
    if len(set(tasks.task)) > 1:
        equal = tasks.task[query] == tasks.task[neighbour]
        same_task = Rate(int(equal.sum()), len(equal))
    if pose is None or tasks.hidden_state is None or tasks.hidden_goal is None:
        return NeighbourMetrics(same_task, None, None)
    travel = remaining_travel(tasks.hidden_state, tasks.hidden_goal, pose)
    gripper = gripper_position(tasks.hidden_state, pose)
    errors = (np.linalg.norm(part[query] - part[neighbour], axis=1) for part in (travel, gripper))
    return NeighbourMetrics(same_task, *(bootstrap(np.mean, error) for error in errors))


def pair_values(tasks: Tasks, seed: int) -> ValuePairs:
    """Pair tasks at random and return their distances in φ and in value."""
    if tasks.phi is None:
        raise GCBError("the method has no φ: there are no distances in it.")
    order, half = np.random.default_rng(seed).permutation(len(tasks)), len(tasks) // 2
    left, right = order[:half], order[half : 2 * half]
    different = tasks.episode[left] != tasks.episode[right]
    left, right = left[different], right[different]
    distance = np.abs(tasks.phi[left] - tasks.phi[right]).mean(1)
    return ValuePairs(distance, np.abs(tasks.value[left] - tasks.value[right]))


def _flat(frames: np.ndarray, index: np.ndarray) -> np.ndarray:
    return np.asarray(frames[index]).reshape(len(index), -1)


def _correlation(left: np.ndarray, right: np.ndarray) -> float:
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.corrcoef(left, right)[0, 1])


def _rank_correlation(left: np.ndarray, right: np.ndarray) -> float:
    return _correlation(rankdata(left), rankdata(right))
