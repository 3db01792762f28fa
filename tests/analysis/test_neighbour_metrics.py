"""Neighbours of tasks and distances against values, on tasks made by hand."""

from functools import partial

import numpy as np
import pytest
from helpers.toy import hidden, image

from gcb.analysis import neighbour_metrics as module
from gcb.analysis.embed import Tasks
from gcb.analysis.neighbour_metrics import ValuePairs, compare, find_neighbours, pair_values, second_neighbours
from gcb.data import Dataset
from gcb.errors import GCBError
from gcb.utils.statistics import Rate, bootstrap

POSES = np.array([[0.6, 0.0, 0.0], [0.7, 0.1, 2.0], [0.65, -0.1, 4.0], [0.6, 0.1, 5.0]])
TRAVEL = ((0.0, 0.15), (0.0, 0.15), (0.1, 0.0), (0.1, 0.04))


def four_tasks() -> Tasks:
    """Return tasks of four episodes. In φ 0 is near 1, and 2 near 3; in pixels 0 is near 2, and 1 near 3."""
    return Tasks(
        state_frame=np.arange(4),
        goal_frame=np.arange(4, 8),
        episode=np.arange(4),
        task=np.array(["drawer", "drawer", "drawer", "button"]),
        value=np.array([0.0, 0.1, 0.8, 0.9]),
        phi=np.array([[0.0, 0.0], [0.1, 0.1], [0.8, 0.8], [0.9, 0.9]]),
        hidden_state=np.stack([hidden(tuple(pose), travel[0]) for pose, travel in zip(POSES, TRAVEL, strict=True)]),
        hidden_goal=np.stack([hidden(tuple(pose), travel[1]) for pose, travel in zip(POSES, TRAVEL, strict=True)]),
    )


def images() -> Dataset:
    frames = np.stack([image(number, 0, 0) for number in (0, 100, 1, 101, 0, 100, 1, 101)])
    return Dataset.from_arrays(frames, np.zeros((4, 2), np.float32), [1, 1, 1, 1])


def test_neighbours_in_phi_and_in_pixels() -> None:
    neighbours = find_neighbours(four_tasks(), images(), samples=10, seed=0)
    assert neighbours.query.tolist() == [0, 1, 2, 3]
    assert neighbours.nearest["phi"].tolist() == [1, 0, 3, 2]
    assert neighbours.nearest["pixels"].tolist() == [2, 3, 0, 1]
    assert (neighbours.nearest["random"] != np.arange(4)).all()


def test_one_query_per_episode_and_neighbours_from_other_episodes() -> None:
    tasks = four_tasks()
    twice = tasks.rows(np.array([0, 0, 1, 2, 3]))
    neighbours = find_neighbours(twice, images(), samples=3, seed=0)
    assert neighbours.query.tolist() == [0, 2, 3]
    assert neighbours.nearest["phi"].tolist() == [2, 0, 4]


def test_the_second_neighbour_is_from_a_third_episode() -> None:
    tasks = four_tasks()
    twice = tasks.rows(np.array([0, 1, 1, 2, 3]))
    neighbours = find_neighbours(twice, images(), samples=2, seed=0)
    assert neighbours.nearest["phi"].tolist() == [1, 0]
    assert second_neighbours(twice, neighbours).tolist() == [3, 3]
    two = tasks.rows(np.array([0, 1]))
    assert second_neighbours(two, find_neighbours(two, images(), 2, 0)).tolist() == [1, 0]


def test_metrics_by_hand() -> None:
    metrics = compare(four_tasks(), POSES, np.arange(4), np.array([1, 0, 3, 2]))
    assert metrics.same_task == Rate(2, 4)
    assert metrics.travel_error is not None
    assert metrics.gripper_error is not None
    # .15 against .15, twice; -.1 against -.06, twice.
    assert metrics.travel_error.value == pytest.approx((0 + 0 + 0.04 + 0.04) / 4, abs=1e-6)
    assert metrics.gripper_error.value == pytest.approx(0, abs=1e-6)


def test_without_poses_or_several_tasks_metrics_are_none() -> None:
    tasks = four_tasks()
    assert compare(tasks, None, np.arange(2), np.arange(2)).travel_error is None
    one_task = tasks.rows(np.array([0, 1, 2]))
    assert compare(one_task, None, np.arange(2), np.arange(2)).same_task is None


@pytest.fixture
def _few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "bootstrap", partial(bootstrap, resamples=50))


@pytest.mark.usefixtures("_few_resamples")
def test_correlations_of_monotonic_values() -> None:
    rng = np.random.default_rng(0)
    gap = rng.random(60)
    linear = ValuePairs(distance=2 * gap + 1, value_gap=gap).correlations()
    assert linear["pearson"].value == pytest.approx(1)
    curved = ValuePairs(distance=np.exp(9 * gap), value_gap=gap).correlations()
    assert curved["spearman"].value == pytest.approx(1)
    assert curved["pearson"].value < 0.95
    low, high = ValuePairs(rng.random(200), rng.random(200)).correlations()["spearman"].interval
    assert low < 0 < high


@pytest.mark.usefixtures("_few_resamples")
def test_constant_values_have_no_correlation() -> None:
    correlations = ValuePairs(np.arange(5.0), np.zeros(5)).correlations()
    assert np.isnan(correlations["pearson"].value)


def test_pairs_are_disjoint_and_from_different_episodes() -> None:
    tasks = four_tasks()
    pairs = pair_values(tasks, seed=0)
    assert len(pairs.value_gap) == 2
    # For these tasks the mean of |φ - φ'| equals |V - V'| in every pair.
    np.testing.assert_allclose(pairs.distance, pairs.value_gap)
    same = tasks.rows(np.array([0, 0]))
    assert len(pair_values(same, seed=0).value_gap) == 0


def test_a_method_without_phi_is_rejected() -> None:
    tasks = Tasks(*(np.zeros(2, int) for _ in range(5)))
    with pytest.raises(GCBError, match="no φ"):
        find_neighbours(tasks, images(), 1, 0)
    with pytest.raises(GCBError, match="no φ"):
        pair_values(tasks, 0)
