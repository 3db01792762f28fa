"""Agents that come with the package: their size, what they can do, and the script that makes them."""

import re
from pathlib import Path

import numpy as np
import pytest
from helpers.tiny import tiny_config, tiny_dataset, write_tiny_dataset

import gcb
from gcb.agent.agent import Agent, load
from gcb.errors import GCBError
from gcb.runs.find import BUNDLED, bundled_agents
from gcb.runs.run_dir import EVAL
from gcb.training.trainer import train
from gcb.utils.files import write_json
from scripts.bundle_agent import MAX_BYTES, bundle

CRITERIA = ("any_step", "at_end", "declared")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned something, as if it had been evaluated."""
    path = tmp_path_factory.mktemp("bundled")
    config = tiny_config(steps=150, batch_size=32, checkpoint_every=150, log_every=150, learning_rate=3e-3)
    train(config, write_tiny_dataset(path, episodes=20), path / "run", quiet=True)
    rate = {name: {"rate": 0.5, "interval": [0.1, 0.9], "successes": 1, "of": 2} for name in CRITERIA}
    write_json(path / "run" / EVAL, {"goal": {"all": rate, "tasks": {}, "episodes": 2, "step": 150}})
    return path / "run"


@pytest.fixture(scope="module")
def bundled(run: Path) -> Path:
    return bundle(run, "tiny", run.parent / "package")


def act(agent: Agent, frames: np.ndarray) -> list[np.ndarray]:
    """Actions and estimates of `done`, given a goal and given an example."""
    state, goal = frames[:-1], frames[-1]
    policies = [agent.start_task(state, goal=goal), agent.start_task(state, example=(frames[0], goal))]
    return [values for policy in policies for values in policy.step(state)]


def test_half_precision_acts_like_full_precision(run: Path, bundled: Path) -> None:
    frames = np.asarray(tiny_dataset(episodes=4, seed=1).frames)
    full, half = load(run), load(bundled)
    for expected, actual in zip(act(full, frames), act(half, frames), strict=True):
        np.testing.assert_allclose(actual, expected, atol=1e-2)
    assert all(np.ptp(actions) > 0.3 for actions in act(full, frames)[::2])  # they depend on the observation
    assert any(not np.array_equal(*pair) for pair in zip(act(full, frames), act(half, frames), strict=True))
    np.testing.assert_allclose(half.phi(frames[0], frames[-1]), full.phi(frames[0], frames[-1]), atol=1e-2)
    np.testing.assert_allclose(half.psi(frames[0]), full.psi(frames[0]), atol=1e-2)


def test_what_only_training_needs_is_left_out_and_said(run: Path, bundled: Path) -> None:
    (full,), (half,) = run.glob("*.safetensors"), bundled.glob("*.safetensors")
    assert half.stat().st_size < 0.5 * full.stat().st_size
    assert not list(bundled.glob("*.pt"))
    agent, frames = load(bundled), np.asarray(tiny_dataset().frames)
    assert load(run).has_value
    assert not agent.has_value
    with pytest.raises(GCBError, match="without its value functions"):
        agent.value(frames[0], goal=frames[1])


def test_the_model_card_has_the_success_and_the_commands(run: Path, bundled: Path) -> None:
    card = (bundled / "README.md").read_text()
    assert 'gcb.load("tiny")' in card
    assert "| goal | all | 0.500 [0.100, 0.900] |" in card
    assert "gcb train --data DATA --out RUN --preset smoke --seed 0" in card
    assert "--steps 150" in card
    assert "python -m scripts.bundle_agent RUN tiny" in card


def test_unfinished_and_unevaluated_runs_are_refused(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    copy.mkdir()
    for path in run.iterdir():
        if path.is_file() and path.name != EVAL:
            (copy / path.name).write_bytes(path.read_bytes())
    with pytest.raises(GCBError, match="not finished or not evaluated"):
        bundle(copy, "tiny", tmp_path)
    assert not (tmp_path / "tiny").exists()


@pytest.mark.parametrize("name", bundled_agents())
def test_every_bundled_agent_is_small_complete_and_acts(name: str) -> None:
    directory = BUNDLED / name
    (weights,) = directory.glob("*.safetensors")
    assert weights.stat().st_size <= MAX_BYTES
    text = "".join(path.read_text() for path in directory.iterdir() if path != weights)
    assert not re.search(r"(?<![\w/])/(root|home|tmp|work)/", text), "a path of the machine that trained it"
    card = (directory / "README.md").read_text()
    assert "gcb train --data DATA --out RUN" in card
    assert "| strict | all |" in card
    agent = gcb.load(name)
    image = np.zeros((64, 64, 3), np.uint8)
    assert agent.act(image, example=(image, image)).shape == (5,)
    assert agent.phi(image, image).shape == agent.psi(image).shape
