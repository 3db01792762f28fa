"""Tasks drawn from a dataset: which they are, that seeds repeat, and that every row is its own."""

import numpy as np
import pytest
from helpers.tiny import tiny_dataset
from helpers.toy import Half, picture, toy_agent

from gcb.analysis.embed import missing_embeddings, sample_tasks
from gcb.data import Dataset
from gcb.errors import GCBError
from gcb.methods.bc import GoalAgnosticBC, GoalConditionedBC


def numbered(goals: list[int]) -> Dataset:
    """Two episodes of 3 and 2 transitions; every frame carries its own number, and so does its hidden state."""
    frames = np.stack([picture(number, 0, 0) for number in range(9)])
    return Dataset.from_arrays(
        frames,
        np.zeros((5, 2), np.float32),
        [3, 2],
        episode_first_frame=[0, 5],
        episode_goal_frame=goals,
        states=np.arange(9)[:, None],
        episode_task=[1, 0],
        task_names=("drawer", "button"),
    )


def test_every_task_once_and_whole() -> None:
    tasks = sample_tasks(toy_agent(), numbered([4, 8]), 100, seed=0)
    assert sorted(zip(tasks.state_frame.tolist(), tasks.goal_frame.tolist(), strict=True)) == [
        *[(0, 4), (1, 4), (2, 4)],
        *[(5, 8), (6, 8)],
    ]
    assert len(tasks) == 5
    np.testing.assert_array_equal(tasks.episode, np.where(tasks.state_frame < 5, 0, 1))
    np.testing.assert_array_equal(tasks.task, np.where(tasks.state_frame < 5, "button", "drawer"))


def test_each_row_is_embedded_as_itself() -> None:
    done: list[int] = []
    tasks = sample_tasks(toy_agent(), numbered([4, 8]), 5, seed=1, batch=2, advance=done.append)
    assert done == [2, 2, 1]
    assert tasks.phi is not None
    assert tasks.psi_state is not None
    assert tasks.psi_goal is not None
    np.testing.assert_array_equal(tasks.psi_state[:, 0], tasks.state_frame)
    np.testing.assert_array_equal(tasks.psi_goal[:, 0], tasks.goal_frame)
    np.testing.assert_array_equal(tasks.phi[:, 0], tasks.goal_frame - tasks.state_frame + 7)
    np.testing.assert_array_equal(tasks.hidden_state, tasks.state_frame[:, None])
    np.testing.assert_array_equal(tasks.hidden_goal, tasks.goal_frame[:, None])
    some = tasks.rows(slice(2))
    assert len(some) == 2
    np.testing.assert_array_equal(some.value, tasks.value[:2])


def test_a_seed_repeats_and_another_does_not() -> None:
    data, agent = numbered([4, 8]), toy_agent()
    first, again, other = (sample_tasks(agent, data, 4, seed).state_frame.tolist() for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_episodes_without_a_goal_are_left_out_unless_all_are() -> None:
    agent = toy_agent()
    assert set(sample_tasks(agent, numbered([-1, 8]), 9, seed=0).episode.tolist()) == {1}
    tasks = sample_tasks(agent, numbered([-1, -1]), 9, seed=0)
    assert set(zip(tasks.episode.tolist(), tasks.goal_frame.tolist(), strict=True)) == {(0, 3), (1, 7)}


def test_what_a_method_lacks_is_none_with_a_reason() -> None:
    assert missing_embeddings(toy_agent()) == {}
    assert missing_embeddings(toy_agent(GoalConditionedBC)) == {"psi": "gcbc has no state embedding ψ"}  # pyright: ignore[reportArgumentType]
    assert missing_embeddings(toy_agent(GoalAgnosticBC)) == {"phi": "goal_agnostic_bc has no task embedding φ"}
    tasks = sample_tasks(toy_agent(Half), numbered([4, 8]), 3, seed=0)
    assert tasks.phi is None
    assert tasks.psi_state is not None


def test_a_dataset_that_tells_no_tasks_apart() -> None:
    tasks = sample_tasks(toy_agent(), tiny_dataset(), 6, seed=0)
    assert set(tasks.task) == {"all"}
    assert tasks.hidden_state is None
    with pytest.raises(GCBError, match="count is 0"):
        sample_tasks(toy_agent(), tiny_dataset(), 0, seed=0)
