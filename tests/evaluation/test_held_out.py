"""The error of foretold actions on data that an agent has not seen."""

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
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cloning that has learned where the bar is to go, one that is never told, and the data of both."""
    folder = tmp_path_factory.mktemp("held_out")
    write_dataset(tiny_dataset(60), folder / "seen")
    write_dataset(tiny_dataset(20, seed=1), folder / "new")
    for method, steps in (("gcbc", 300), ("goal_agnostic_bc", 12)):
        settings = {"steps": steps, "batch_size": 64, "learning_rate": 1e-3, "checkpoint_every": 300}
        train(tiny_config(method, **settings), folder / "seen", folder / method, quiet=True)
    return folder


@pytest.fixture(scope="module")
def new(folder: Path) -> Dataset:
    return open_dataset(folder / "new")


def agent(folder: Path, method: str = "gcbc") -> Agent:
    return load(folder / method)


def test_an_agent_that_listens_errs_less_when_told_the_truth(folder: Path, new: Dataset) -> None:
    found = action_error(agent(folder), new, 500, quiet=True)
    assert found.true_goal.value < 0.7 * found.shuffled_goal.value
    assert found.true_goal.interval[1] < found.mean_action.interval[0]
    assert found.true_goal.interval[0] < found.true_goal.value < found.true_goal.interval[1]
    assert found.episodes == 20


def test_one_that_does_not_listen_errs_alike(folder: Path, new: Dataset) -> None:
    found = action_error(agent(folder, "goal_agnostic_bc"), new, 300, quiet=True)
    assert found.true_goal == found.shuffled_goal


def test_the_errors_are_those_of_the_actions_drawn(folder: Path, new: Dataset) -> None:
    found = action_error(agent(folder), new, 200, seed=3, batch=64, quiet=True)
    drawn = np.random.default_rng(3).integers(new.transitions, size=200)
    assert found.mean_action.value == pytest.approx(new.actions[drawn].var(0).mean(), rel=1e-5)
    assert found.true_goal.value == pytest.approx(np.mean(found.dimensions), rel=1e-5)
    episode = new.episode_of_transition[drawn]
    acted = agent(folder).act(
        new.frames[new.frame_of_transition[drawn]],
        goal=new.frames[new.episode_goal_frame[episode]],
        initial_state=new.frames[new.episode_first_frame[episode]],
    )
    assert np.allclose(found.dimensions, ((acted - new.actions[drawn]) ** 2).mean(0), rtol=1e-4)
    assert action_error(agent(folder), new, 200, seed=3, batch=7, quiet=True).true_goal.value == pytest.approx(
        found.true_goal.value, rel=1e-4
    )


def test_an_agent_of_successes_is_measured_on_successes(folder: Path) -> None:
    settings = {"steps": 2, "batch_size": 8, "only_successful": True}
    train(tiny_config("goal_agnostic_bc", **settings), folder / "seen", folder / "chooser", quiet=True)
    arrays, success = tiny_dataset(10, seed=1).arrays(), np.arange(10) < 4
    data = Dataset.from_arrays(**{**arrays, "episode_success": success})
    assert action_error(agent(folder, "chooser"), data, 500, quiet=True).episodes == 4
    assert action_error(agent(folder, "goal_agnostic_bc"), data, 500, quiet=True).episodes == 10


def test_without_goals_the_future_supplies_them(folder: Path) -> None:
    whole = tiny_dataset(10, seed=2)
    bare = Dataset.from_arrays(
        whole.frames, whole.actions, whole.episode_length, episode_first_frame=whole.episode_first_frame
    )
    found = action_error(agent(folder), bare, 300, quiet=True)
    assert found.true_goal.value < found.mean_action.value


def test_what_cannot_be_measured_is_refused(folder: Path, new: Dataset) -> None:
    cloner = agent(folder)
    for data, transitions, words in (
        (open_dataset(folder / "seen"), 100, "is what the agent was trained on"),
        (tiny_dataset(4, actions=3), 100, r"actions of 3 numbers; the agent was trained on \(32, 32, 3\) and 2"),
        (tiny_dataset(1), 100, "has one episode; at least 2"),
        (new, 1, "transitions is 1"),
    ):
        with pytest.raises(GCBError, match=words):
            action_error(cloner, data, transitions, quiet=True)


def test_the_command_shows_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["held-out", str(folder / "gcbc"), str(folder / "new"), "--transitions", "100"])
    shown = capsys.readouterr().out
    assert "100 transitions of 18 episodes" in shown
    assert "told another episode's goal" in shown
