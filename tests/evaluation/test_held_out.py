"""Action-prediction error on held-out data."""

from pathlib import Path

import numpy as np
import pytest
from helpers.tiny import tiny_config, tiny_dataset

from gcb.agent.agent import Agent, load
from gcb.cli.main import main
from gcb.data import Dataset, open_dataset, write_dataset
from gcb.errors import GCBError
from gcb.evaluation.held_out import action_error
from gcb.training.trainer import train


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with goal-conditioned BC that has learned the task, goal-agnostic BC, and the data of both."""
    path = tmp_path_factory.mktemp("held_out")
    write_dataset(tiny_dataset(60), path / "seen")
    write_dataset(tiny_dataset(20, seed=1), path / "new")
    for method, steps in (("gcbc", 300), ("goal_agnostic_bc", 12)):
        settings = {"steps": steps, "batch_size": 64, "learning_rate": 1e-3, "checkpoint_every": 300}
        train(tiny_config(method, **settings), path / "seen", path / method, quiet=True)
    return path


@pytest.fixture(scope="module")
def new(runs: Path) -> Dataset:
    return open_dataset(runs / "new")


def agent(runs: Path, method: str = "gcbc") -> Agent:
    return load(runs / method)


def test_goal_conditioned_bc_predicts_better_with_the_true_goal(runs: Path, new: Dataset) -> None:
    error = action_error(agent(runs), new, 500, quiet=True)
    assert error.true_goal.value < 0.7 * error.shuffled_goal.value
    assert error.true_goal.interval[1] < error.mean_action.interval[0]
    assert error.true_goal.interval[0] < error.true_goal.value < error.true_goal.interval[1]
    assert error.episodes == 20


def test_goal_agnostic_bc_predicts_alike_with_any_goal(runs: Path, new: Dataset) -> None:
    error = action_error(agent(runs, "goal_agnostic_bc"), new, 300, quiet=True)
    assert error.true_goal == error.shuffled_goal


def test_errors_match_the_sampled_actions(runs: Path, new: Dataset) -> None:
    error = action_error(agent(runs), new, 200, seed=3, batch=64, quiet=True)
    sampled = np.random.default_rng(3).integers(new.transitions, size=200)
    assert error.mean_action.value == pytest.approx(new.actions[sampled].var(0).mean(), rel=1e-5)
    assert error.true_goal.value == pytest.approx(np.mean(error.dimensions), rel=1e-5)
    episode = new.episode_of_transition[sampled]
    predicted = agent(runs).act(
        new.frames[new.frame_of_transition[sampled]],
        goal=new.frames[new.episode_goal_frame[episode]],
        initial_state=new.frames[new.episode_first_frame[episode]],
    )
    assert np.allclose(error.dimensions, ((predicted - new.actions[sampled]) ** 2).mean(0), rtol=1e-4)
    assert action_error(agent(runs), new, 200, seed=3, batch=7, quiet=True).true_goal.value == pytest.approx(
        error.true_goal.value, rel=1e-4
    )


def test_an_agent_trained_on_successes_is_measured_on_successes(runs: Path) -> None:
    settings = {"steps": 2, "batch_size": 8, "only_successful": True}
    train(tiny_config("goal_agnostic_bc", **settings), runs / "seen", runs / "successes", quiet=True)
    arrays, success = tiny_dataset(10, seed=1).arrays(), np.arange(10) < 4
    data = Dataset.from_arrays(**{**arrays, "episode_success": success})
    assert action_error(agent(runs, "successes"), data, 500, quiet=True).episodes == 4
    assert action_error(agent(runs, "goal_agnostic_bc"), data, 500, quiet=True).episodes == 10


def test_without_original_goals_future_frames_are_goals(runs: Path) -> None:
    whole = tiny_dataset(10, seed=2)
    bare = Dataset.from_arrays(
        whole.frames, whole.actions, whole.episode_length, episode_first_frame=whole.episode_first_frame
    )
    error = action_error(agent(runs), bare, 300, quiet=True)
    assert error.true_goal.value < error.mean_action.value


def test_unsuitable_data_is_refused(runs: Path, new: Dataset) -> None:
    trained = agent(runs)
    for data, transitions, message in (
        (open_dataset(runs / "seen"), 100, "trained on; use another"),
        (tiny_dataset(4, actions=3), 100, r"3 action dimensions; .* \(32, 32, 3\) and 2"),
        (tiny_dataset(1), 100, "one episode"),
        (new, 1, "transitions is 1"),
    ):
        with pytest.raises(GCBError, match=message):
            action_error(trained, data, transitions, quiet=True)


def test_the_command_prints_the_errors(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["held-out", str(runs / "gcbc"), str(runs / "new"), "--transitions", "100"])
    shown = " ".join(capsys.readouterr().out.split())  # the title wraps at the width of the table
    assert "100 transitions of 18 episodes" in shown
    assert "shuffled goal" in shown
