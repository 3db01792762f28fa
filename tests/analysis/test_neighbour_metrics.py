"""Neighbours of tasks and distances against values, on sets made by hand."""

from functools import partial

import numpy as np
import pytest
from helpers.toy import hidden, picture

from gcb.analysis import neighbour_metrics as likeness
from gcb.analysis.embed import Tasks
from gcb.analysis.neighbour_metrics import ValuePairs, compare, find_neighbours, pair_values, second_neighbours
from gcb.data import Dataset
from gcb.errors import GCBError
from gcb.utils.statistics import Rate, bootstrap

POSES = np.array([[0.6, 0.0, 0.0], [0.7, 0.1, 2.0], [0.65, -0.1, 4.0], [0.6, 0.1, 5.0]])
TRAVEL = ((0.0, 0.15), (0.0, 0.15), (0.1, 0.0), (0.1, 0.04))


def four_tasks() -> Tasks:
    """Of four episodes: 0 and 1 are alike in φ, and 2 and 3; in pixels 0 and 2 are, and 1 and 3."""
    return Tasks(
        state_frame=np.arange(4),
        goal_frame=np.arange(4, 8),
        episode=np.arange(4),
        task=np.array(["drawer", "drawer", "drawer", "button"]),
        value=np.array([0.0, 0.1, 0.8, 0.9]),
        phi=np.array([[0.0, 0.0], [0.1, 0.1], [0.8, 0.8], [0.9, 0.9]]),
        hidden_state=np.stack([hidden(tuple(p), way[0]) for p, way in zip(POSES, TRAVEL, strict=True)]),
        hidden_goal=np.stack([hidden(tuple(p), way[1]) for p, way in zip(POSES, TRAVEL, strict=True)]),
    )


def pictures() -> Dataset:
    frames = np.stack([picture(number, 0, 0) for number in (0, 100, 1, 101, 0, 100, 1, 101)])
    return Dataset.from_arrays(frames, np.zeros((4, 2), np.float32), [1, 1, 1, 1])


def test_neighbours_in_phi_and_in_pixels() -> None:
    found = find_neighbours(four_tasks(), pictures(), samples=10, seed=0)
    assert found.query.tolist() == [0, 1, 2, 3]
    assert found.found["phi"].tolist() == [1, 0, 3, 2]
    assert found.found["pixels"].tolist() == [2, 3, 0, 1]
    assert (found.found["random"] != np.arange(4)).all()


def test_one_task_of_each_episode_is_looked_up_and_none_is_its_own_episodes() -> None:
    tasks = four_tasks()
    twice = tasks.rows(np.array([0, 0, 1, 2, 3]))
    found = find_neighbours(twice, pictures(), samples=3, seed=0)
    assert found.query.tolist() == [0, 2, 3]
    assert found.found["phi"].tolist() == [2, 0, 4]


def test_the_second_neighbour_is_of_a_third_episode() -> None:
    tasks = four_tasks()
    twice = tasks.rows(np.array([0, 1, 1, 2, 3]))
    found = find_neighbours(twice, pictures(), samples=2, seed=0)
    assert found.found["phi"].tolist() == [1, 0]
    assert second_neighbours(twice, found).tolist() == [3, 3]
    two = tasks.rows(np.array([0, 1]))
    assert second_neighbours(two, find_neighbours(two, pictures(), 2, 0)).tolist() == [1, 0]


def test_likeness_by_hand() -> None:
    found = compare(four_tasks(), POSES, np.arange(4), np.array([1, 0, 3, 2]))
    assert found.same_task == Rate(2, 4)
    assert found.travel_left is not None
    assert found.gripper is not None
    # .15 against .15, twice; -.1 against -.06, twice.
    assert found.travel_left.value == pytest.approx((0 + 0 + 0.04 + 0.04) / 4, abs=1e-6)
    assert found.gripper.value == pytest.approx(0, abs=1e-6)


def test_without_poses_and_tasks_nothing_is_claimed() -> None:
    tasks = four_tasks()
    assert compare(tasks, None, np.arange(2), np.arange(2)).travel_left is None
    alike = tasks.rows(np.array([0, 1, 2]))
    assert compare(alike, None, np.arange(2), np.arange(2)).same_task is None


@pytest.fixture
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likeness, "bootstrap", partial(bootstrap, draws=50))


@pytest.mark.usefixtures("_few_draws")
def test_values_that_follow_distances_correlate_fully() -> None:
    rng = np.random.default_rng(0)
    gap = rng.random(60)
    found = ValuePairs(distance=2 * gap + 1, gap=gap).correlations()
    assert found["pearson"].value == pytest.approx(1)
    curved = ValuePairs(distance=np.exp(9 * gap), gap=gap).correlations()
    assert curved["spearman"].value == pytest.approx(1)
    assert curved["pearson"].value < 0.95
    low, high = ValuePairs(rng.random(200), rng.random(200)).correlations()["spearman"].interval
    assert low < 0 < high


@pytest.mark.usefixtures("_few_draws")
def test_constant_values_have_no_correlation() -> None:
    found = ValuePairs(np.arange(5.0), np.zeros(5)).correlations()
    assert np.isnan(found["pearson"].value)


def test_pairs_are_of_different_episodes_and_each_task_is_in_one() -> None:
    tasks = four_tasks()
    pairs = pair_values(tasks, seed=0)
    assert len(pairs.gap) == 2
    # In this set the mean of |φ - φ'| is |V - V'| for every pair.
    np.testing.assert_allclose(pairs.distance, pairs.gap)
    same = tasks.rows(np.array([0, 0]))
    assert len(pair_values(same, seed=0).gap) == 0


def test_a_method_without_phi_is_told_so() -> None:
    tasks = Tasks(*(np.zeros(2, int) for _ in range(5)))
    with pytest.raises(GCBError, match="no φ"):
        find_neighbours(tasks, pictures(), 1, 0)
    with pytest.raises(GCBError, match="no φ"):
        pair_values(tasks, 0)
