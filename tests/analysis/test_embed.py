"""Tasks sampled from a dataset: which tasks, with which embeddings, and repeatable by seed."""

import numpy as np
import pytest
from helpers.tiny import tiny_dataset
from helpers.toy import WithoutPhi, image, toy_agent

from gcb.analysis.embed import missing_embeddings, sample_tasks
from gcb.data import Dataset
from gcb.errors import GCBError
from gcb.methods.bc import GoalAgnosticBC, GoalConditionedBC


def numbered_dataset(goals: list[int]) -> Dataset:
    """Return two episodes of 3 and 2 transitions; every image and hidden state holds its frame number."""
    frames = np.stack([image(number, 0, 0) for number in range(9)])
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


def test_every_task_is_sampled_once() -> None:
    tasks = sample_tasks(toy_agent(), numbered_dataset([4, 8]), 100, seed=0)
    assert sorted(zip(tasks.state_frame.tolist(), tasks.goal_frame.tolist(), strict=True)) == [
        *[(0, 4), (1, 4), (2, 4)],
        *[(5, 8), (6, 8)],
    ]
    assert len(tasks) == 5
    np.testing.assert_array_equal(tasks.episode, np.where(tasks.state_frame < 5, 0, 1))
    np.testing.assert_array_equal(tasks.task, np.where(tasks.state_frame < 5, "button", "drawer"))


def test_each_row_has_its_own_embeddings() -> None:
    advanced: list[int] = []
    tasks = sample_tasks(toy_agent(), numbered_dataset([4, 8]), 5, seed=1, batch_size=2, advance=advanced.append)
    assert advanced == [2, 2, 1]
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


def test_the_seed_determines_the_sample() -> None:
    data, agent = numbered_dataset([4, 8]), toy_agent()
    first, again, other = (sample_tasks(agent, data, 4, seed).state_frame.tolist() for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_episodes_without_a_goal_are_skipped_unless_all_are() -> None:
    agent = toy_agent()
    assert set(sample_tasks(agent, numbered_dataset([-1, 8]), 9, seed=0).episode.tolist()) == {1}
    tasks = sample_tasks(agent, numbered_dataset([-1, -1]), 9, seed=0)
    assert set(zip(tasks.episode.tolist(), tasks.goal_frame.tolist(), strict=True)) == {(0, 3), (1, 7)}


def test_missing_embeddings_are_none_and_have_a_reason() -> None:
    assert missing_embeddings(toy_agent()) == {}
    assert missing_embeddings(toy_agent(GoalConditionedBC)) == {"psi": "gcbc has no state embedding ψ"}  # pyright: ignore[reportArgumentType]
    assert missing_embeddings(toy_agent(GoalAgnosticBC)) == {"phi": "goal_agnostic_bc has no task embedding φ"}
    tasks = sample_tasks(toy_agent(WithoutPhi), numbered_dataset([4, 8]), 3, seed=0)
    assert tasks.phi is None
    assert tasks.psi_state is not None


def test_a_dataset_without_task_names() -> None:
    tasks = sample_tasks(toy_agent(), tiny_dataset(), 6, seed=0)
    assert set(tasks.task) == {"all"}
    assert tasks.hidden_state is None
    with pytest.raises(GCBError, match="count is 0"):
        sample_tasks(toy_agent(), tiny_dataset(), 0, seed=0)
