"""Success rates in an environment with known episodes: in batches, in several processes, and in eval.json."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import gymnasium as gym
import numpy as np
import pytest
import torch
from helpers.slide_env import ENV, HORIZON, PLANS
from helpers.tiny import tiny_config, tiny_dataset

from gcb.agent.agent import Agent, load
from gcb.cli.evaluate import Eval
from gcb.data import Dataset
from gcb.envs.adapters import ADAPTERS, TabletopAdapter
from gcb.envs.spec import EnvSpec
from gcb.errors import GCBError
from gcb.evaluation.evaluate import EvalResult, env_spec_of, evaluate, evaluate_run
from gcb.evaluation.rollouts import Outcome
from gcb.methods import Shapes
from gcb.methods.bc import GoalAgnosticBC
from gcb.runs.run_dir import read_results
from gcb.training.trainer import train
from gcb.utils.seeding import episode_seed
from gcb.utils.statistics import Rate

SPEC = EnvSpec(ENV)


class Echo(GoalAgnosticBC):
    """A method whose features are the brightness of the observation, and of the goal or the example."""

    name = "echo"

    def state_features(self, state: torch.Tensor) -> torch.Tensor:
        return state[:, 0, 0, :1] / 255

    def goal_features(self, initial_state: torch.Tensor, state: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
        return goal[:, 0, 0, :1] / 255

    def analogy_features(
        self, initial_state: Any, state: Any, example: tuple[torch.Tensor, torch.Tensor]
    ) -> torch.Tensor:
        assert (example[0] == 100).all()
        return example[1][:, 0, 0, :1] / 255


class MeanActions(TabletopAdapter):
    """An adapter that evaluates with mean actions."""

    eval_temperature = 0.0


class EchoActor(torch.nn.Module):
    """Returns its features as the action; records task features, batch sizes and noise."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: set[int] = set()
        self.batches: list[int] = []
        self.noise: list[torch.Tensor] = []

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.tasks |= {round(255 * value) for value in inputs[:, 1].tolist()}
        self.batches.append(len(inputs))
        return inputs

    def sample(self, inputs: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        self.noise.append(noise)
        return self(inputs)


class EchoPolicy(torch.nn.Module):
    """Stands in for IQL."""

    def __init__(self) -> None:
        super().__init__()
        self.actor = EchoActor()


def echo(size: int = 32) -> Agent:
    shapes = Shapes((size, size, 3), 2)
    return Agent(Echo(tiny_config("goal_agnostic_bc").method_config, shapes), EchoPolicy(), shapes, torch.device("cpu"))  # pyright: ignore[reportArgumentType]


def policy(agent: Agent) -> EchoActor:
    actor: torch.nn.Module = agent.iql.actor
    assert isinstance(actor, EchoActor)
    return actor


def plans(episodes: int, seed: int) -> list[str]:
    """Return the tasks of these episodes."""
    env = gym.make(ENV, terminate_at_success=False)
    return [env.reset(seed=episode_seed("eval", seed, index))[1]["task"] for index in range(episodes)]


def test_one_set_of_episodes_gives_both_rates() -> None:
    result = evaluate(echo(), SPEC, episodes=23, batch=5, seed=3, quiet=True)
    expected = plans(23, 3)
    assert [outcome.task for outcome in result.outcomes] == expected
    assert len(set(expected)) == 4
    for outcome in result.outcomes:
        steps = PLANS[outcome.task]
        assert outcome.reached_at == (steps[0] if steps else None)
        assert outcome.at_end == (HORIZON in steps)
    assert result.rate() == Rate(23 - expected.count("never"), 23)
    assert result.rate(at_end=True) == Rate(expected.count("at the end") + expected.count("last"), 23)
    assert result.rate("on the way") == Rate(expected.count("on the way"), expected.count("on the way"))
    assert result.rate("on the way", at_end=True).successes == 0
    assert result.tasks == sorted(PLANS)


def test_episodes_depend_on_the_seed_but_not_on_the_batch() -> None:
    agent = echo()
    wide = evaluate(agent, SPEC, episodes=7, batch=50, quiet=True)
    assert policy(agent).batches == [7] * HORIZON
    narrow = evaluate(echo(), SPEC, episodes=7, batch=1, quiet=True)
    assert [outcome.task for outcome in wide.outcomes] == [outcome.task for outcome in narrow.outcomes]
    other = evaluate(echo(), SPEC, episodes=7, seed=1, quiet=True)
    assert [outcome.task for outcome in wide.outcomes] != [outcome.task for outcome in other.outcomes]


def test_sampled_actions_do_not_depend_on_the_batch() -> None:
    wide, narrow, halved, mean = echo(), echo(), echo(), echo()
    assert (
        evaluate(wide, SPEC, episodes=4, batch=4, eval_temperature=1.0, quiet=True).to_dict()["eval_temperature"] == 1
    )
    evaluate(narrow, SPEC, episodes=4, batch=2, eval_temperature=1.0, quiet=True)
    evaluate(halved, SPEC, episodes=4, batch=4, eval_temperature=0.5, quiet=True)
    noise = torch.stack(policy(wide).noise)
    assert noise.shape == (HORIZON, 4, 2)
    assert noise.unique().numel() == noise.numel()
    first, second = torch.stack(policy(narrow).noise).chunk(2)
    assert torch.equal(torch.cat([first, second], 1), noise)
    assert torch.equal(torch.stack(policy(halved).noise), noise / 2)
    assert evaluate(mean, SPEC, episodes=4, eval_temperature=0.0, quiet=True).eval_temperature == 0
    assert not policy(mean).noise


def test_the_adapter_sets_the_default_eval_temperature() -> None:
    sampled, mean = echo(), echo()
    assert Eval(Path()).eval_temperature is None
    assert evaluate(sampled, SPEC, episodes=4, quiet=True).eval_temperature == ADAPTERS["gcb"].eval_temperature > 0
    assert policy(sampled).noise
    assert evaluate(mean, replace(SPEC, adapter=MeanActions()), episodes=4, quiet=True).eval_temperature == 0
    assert not policy(mean).noise


@pytest.mark.parametrize(("mode", "brightness"), [("goal", 250), ("strict", 200), ("loose", 200)])
def test_the_policy_sees_only_the_goal_or_the_example(mode: str, brightness: int) -> None:
    agent = echo()
    evaluate(agent, SPEC, mode, episodes=3, quiet=True)
    assert policy(agent).tasks == {brightness}


def test_a_video_shows_the_example_and_the_episode(tmp_path: Path) -> None:
    evaluate(echo(), SPEC, "strict", episodes=5, batch=2, video=tmp_path / "grid.mp4", video_episodes=3, quiet=True)
    with av.open(str(tmp_path / "grid.mp4")) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert len(frames) > HORIZON
    example_before, example_after = frames[0][30, 30], frames[0][30, 96]
    assert np.abs(example_before.astype(int) - 100).max() < 12
    assert np.abs(example_after.astype(int) - 200).max() < 12


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Short runs on a dataset that names the environment above."""
    path, data = tmp_path_factory.mktemp("evaluation"), tiny_dataset()
    dataset = Dataset.from_arrays(**data.arrays(), config={"env": ENV, "options": {"check_actions": False}})
    for method in ("goal_agnostic_bc", "gcbc"):
        train(tiny_config(method, steps=2), dataset, path / method, quiet=True)
    return {method: path / method for method in ("goal_agnostic_bc", "gcbc")}


def test_results_are_stored_by_mode(runs: dict[str, Path]) -> None:
    assert read_results(runs["goal_agnostic_bc"]) == {}
    results = evaluate_run(runs["goal_agnostic_bc"], episodes=8, batch=4, quiet=True)
    assert list(results) == ["goal", "strict"]
    evaluate_run(runs["goal_agnostic_bc"], ["loose"], episodes=3, quiet=True, videos=False)
    kept = read_results(runs["goal_agnostic_bc"])
    assert kept.keys() == {"goal", "strict", "loose"}
    entry, rate = kept["goal"], results["goal"].rate()
    assert entry["all"]["any_step"] == {
        "rate": rate.value,
        "interval": list(rate.interval),
        "successes": rate.successes,
        "of": 8,
    }
    assert entry["episodes"] == len(entry["outcomes"]) == 8
    assert sum(task["any_step"]["of"] for task in entry["tasks"].values()) == 8
    assert (entry["seed"], entry["step"], entry["env"]["env"]) == (0, 2, ENV)
    assert kept["loose"]["episodes"] == 3
    assert sorted(path.name for path in (runs["goal_agnostic_bc"] / "videos").iterdir()) == ["goal.mp4", "strict.mp4"]


def test_workers_do_not_change_the_result(runs: dict[str, Path]) -> None:
    agent = load(runs["goal_agnostic_bc"])
    single, parallel = (evaluate(agent, episodes=9, batch=2, workers=workers, quiet=True) for workers in (1, 2))
    assert single.to_dict() == parallel.to_dict()
    assert parallel.env_seconds > 0


def test_unsupported_modes_are_refused_before_any_episode(runs: dict[str, Path]) -> None:
    assert list(evaluate_run(runs["gcbc"], episodes=2, quiet=True)) == ["goal"]
    with pytest.raises(GCBError, match="mode is 'strict'; gcbc"):
        evaluate_run(runs["gcbc"], ["goal", "strict"], episodes=2, quiet=True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "sideways"}, "mode is 'sideways'; accepted: goal, strict, loose"),
        ({"episodes": 0}, "episodes is 0"),
        ({"batch": 0}, "batch is 0"),
        ({"eval_temperature": -0.5}, "eval_temperature is -0.5"),
        ({"workers": 0}, "workers is 0"),
        ({"workers": 2}, "workers is 2"),
        ({"env_spec": None}, "does not name its environment"),
        ({"env_spec": EnvSpec("helpers.slide_env:Nowhere-v0")}, "no environment 'helpers.slide_env:Nowhere-v0'"),
        ({"env_spec": EnvSpec(ENV, {"size": 40})}, r"\(40, 40, 3\).*trained on \(32, 32, 3\)"),
        ({"env_spec": EnvSpec(ENV, {"colour": 1})}, "unexpected keyword argument 'colour'"),
    ],
)
def test_invalid_arguments_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(GCBError, match=message):
        evaluate(echo(), **{"env_spec": SPEC, "quiet": True, **settings})


def test_a_run_records_its_environment(runs: dict[str, Path]) -> None:
    assert env_spec_of(load(runs["gcbc"])) == EnvSpec(ENV, {"check_actions": False})


def test_rates_by_hand() -> None:
    outcomes = [Outcome("a", 3, True), Outcome("a", 2, False), Outcome("b", None, False), Outcome("b", 9, True)]
    result = EvalResult("goal", SPEC, 0, 5, outcomes)
    assert result.rate().value == 0.75
    assert result.rate(at_end=True).value == 0.5
    assert result.to_dict()["tasks"]["b"]["any_step"]["rate"] == 0.5
    # Wilson's interval for 3 of 4, from its formula.
    assert result.to_dict()["all"]["any_step"]["interval"] == pytest.approx([0.3006, 0.9544], abs=1e-4)
