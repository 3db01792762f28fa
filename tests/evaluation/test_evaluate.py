"""Success rates in an environment with known episodes: in batches, in several processes, and in eval.json."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import av
import gymnasium as gym
import numpy as np
import pytest
import torch
from helpers.slide_env import ENV, HORIZON, PLANS, episode_and_step, ragged_length
from helpers.tiny import tiny_config, tiny_dataset

from gcb.agent.agent import DONE_THRESHOLD, Agent, Example, TaskPolicy, load
from gcb.cli.evaluate import Eval, result_rows
from gcb.data import Dataset
from gcb.envs.adapters import ADAPTERS, TabletopAdapter
from gcb.envs.spec import EnvSpec
from gcb.errors import GCBError
from gcb.evaluation.evaluate import EvalResult, env_spec_of, evaluate, evaluate_run
from gcb.evaluation.rollouts import Outcome, RolloutWorker
from gcb.methods import Shapes
from gcb.methods.bc import GoalAgnosticBC
from gcb.runs.evaluations import read_evaluations, read_results
from gcb.training.trainer import train
from gcb.utils.seeding import episode_seed
from gcb.utils.statistics import Rate

SPEC = EnvSpec(ENV)


class Echo(Agent):
    """An agent whose actions are the brightness of the observation, and of the goal or of the example's goal.

    `p_done` maps the number of an episode and the step in it to the probability that the task is done.
    """

    def __init__(self, p_done: Callable[[int, int], float] = lambda number, step: 0.0, size: int = 32) -> None:
        self.shapes, self.device, self.run, self.step = Shapes((size, size, 3), 2), torch.device("cpu"), None, None
        self.method = GoalAgnosticBC(tiny_config("goal_agnostic_bc").method_config, self.shapes)
        self.p_done = p_done
        self.tasks: set[int] = set()
        self.batches: list[int] = []
        self.noise: list[np.ndarray] = []

    def start_task(
        self, initial_state: np.ndarray, *, goal: np.ndarray | None = None, example: Example | None = None
    ) -> TaskPolicy:
        if example is None:
            assert goal is not None
            return EchoPolicy(self, goal)
        assert (example[0] == 100).all()
        return EchoPolicy(self, example[1])


class EchoPolicy(TaskPolicy):
    """Records tasks, batch sizes and noise in its agent."""

    def __init__(self, agent: Echo, goal: np.ndarray) -> None:
        self.agent, self.goal = agent, goal[:, 0, 0, 0]

    def step(self, observation: np.ndarray, noise: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        self.agent.tasks |= set(self.goal.tolist())
        self.agent.batches.append(len(observation))
        self.agent.noise += [] if noise is None else [noise]
        actions = np.stack([observation[:, 0, 0, 0], self.goal], axis=1).astype(np.float32) / np.float32(255)
        return actions, np.array([self.agent.p_done(*episode_and_step(image)) for image in observation])


class MeanActions(TabletopAdapter):
    """An adapter that evaluates with mean actions."""

    eval_temperature = 0.0


def plans(episodes: int, seed: int) -> list[str]:
    """Return the tasks of these episodes."""
    env = gym.make(ENV, terminate_at_success=False)
    return [env.reset(seed=episode_seed("eval", seed, index))[1]["task"] for index in range(episodes)]


DONE_AT = {"never": (2,), "at the end": (1, 5), "on the way": (3, 4), "last": (0, 6)}
"""Steps whose observation looks done to the agent. Neither the first observation nor the last one counts."""
DECLARED = {"never": (2, False), "at the end": (1, False), "on the way": (3, True), "last": (None, True)}
"""When each type of episode is declared done, and whether it is a success by that criterion."""


def barely_done(number: int, step: int) -> float:
    return DONE_THRESHOLD if step in list(DONE_AT.values())[number % len(DONE_AT)] else DONE_THRESHOLD - 1e-6


@pytest.fixture
def _declares_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One estimate is enough to declare a task done."""
    monkeypatch.setattr("gcb.agent.agent.DONE_WINDOW", 1)


@pytest.mark.usefixtures("_declares_at_once")
def test_one_set_of_episodes_gives_all_rates() -> None:
    assert list(DONE_AT) == list(DECLARED) == list(PLANS)
    result = evaluate(Echo(barely_done), SPEC, episodes=23, batch=5, seed=3, quiet=True)
    expected = plans(23, 3)
    assert [outcome.task for outcome in result.outcomes] == expected
    assert len(set(expected)) == 4
    for outcome in result.outcomes:
        steps = PLANS[outcome.task]
        assert outcome.reached_at == (steps[0] if steps else None)
        assert outcome.at_end == (HORIZON in steps)
        assert (outcome.declared_at, outcome.declared) == DECLARED[outcome.task]
    assert result.rate() == Rate(23 - expected.count("never"), 23)
    assert result.rate(criterion="at_end") == Rate(expected.count("at the end") + expected.count("last"), 23)
    assert result.rate(criterion="declared") == Rate(expected.count("on the way") + expected.count("last"), 23)
    assert result.rate("on the way") == Rate(expected.count("on the way"), expected.count("on the way"))
    assert result.rate("on the way", criterion="at_end").successes == 0
    assert result.tasks == sorted(PLANS)
    task, reached_at, at_end, declared_at, declared = result.to_dict()["outcomes"][expected.index("on the way")]
    assert (task, reached_at, at_end, declared_at, declared) == ("on the way", 2, False, 3, True)
    assert result.to_dict()["tasks"]["on the way"]["declared"]["rate"] == 1


@pytest.mark.usefixtures("_declares_at_once")
def test_declaring_the_task_done_does_not_end_the_episode() -> None:
    agent = Echo(lambda number, step: 1.0)
    result = evaluate(agent, SPEC, episodes=4, quiet=True)
    assert len(agent.batches) == HORIZON
    assert {outcome.declared_at for outcome in result.outcomes} == {1}
    assert result.rate(criterion="declared").successes == 0  # no goal is reached at step 1
    assert result.rate(criterion="at_end") == evaluate(Echo(), SPEC, episodes=4, quiet=True).rate(criterion="at_end")


def test_an_agent_that_declares_nothing_is_judged_at_the_end() -> None:
    result = evaluate(Echo(), SPEC, episodes=23, quiet=True)
    assert {outcome.declared_at for outcome in result.outcomes} == {None}
    assert result.rate(criterion="declared") == result.rate(criterion="at_end") != result.rate()


@pytest.mark.usefixtures("_declares_at_once")
def test_an_episode_that_is_over_is_not_declared_done() -> None:
    """The observation after its last step stays in the batch until the longest episode is over."""
    agent = Echo(lambda number, step: float(step == ragged_length(number)))
    result = evaluate(agent, EnvSpec(ENV, {"ragged": True}), episodes=12, batch=12, quiet=True)
    assert len(agent.batches) == HORIZON
    assert {outcome.declared_at for outcome in result.outcomes} == {None}
    assert all(outcome.declared == outcome.at_end for outcome in result.outcomes)


def test_episodes_depend_on_the_seed_but_not_on_the_batch() -> None:
    agent = Echo()
    wide = evaluate(agent, SPEC, episodes=7, batch=50, quiet=True)
    assert agent.batches == [7] * HORIZON
    narrow = evaluate(Echo(), SPEC, episodes=7, batch=1, quiet=True)
    assert [outcome.task for outcome in wide.outcomes] == [outcome.task for outcome in narrow.outcomes]
    other = evaluate(Echo(), SPEC, episodes=7, seed=1, quiet=True)
    assert [outcome.task for outcome in wide.outcomes] != [outcome.task for outcome in other.outcomes]


def test_sampled_actions_do_not_depend_on_the_batch() -> None:
    wide, narrow, halved, mean = Echo(), Echo(), Echo(), Echo()
    assert (
        evaluate(wide, SPEC, episodes=4, batch=4, eval_temperature=1.0, quiet=True).to_dict()["eval_temperature"] == 1
    )
    evaluate(narrow, SPEC, episodes=4, batch=2, eval_temperature=1.0, quiet=True)
    evaluate(halved, SPEC, episodes=4, batch=4, eval_temperature=0.5, quiet=True)
    noise = np.stack(wide.noise)
    assert noise.shape == (HORIZON, 4, 2)
    assert len(np.unique(noise)) == noise.size
    first, second = np.split(np.stack(narrow.noise), 2)
    np.testing.assert_array_equal(np.concatenate([first, second], axis=1), noise)
    np.testing.assert_array_equal(np.stack(halved.noise), noise / 2)
    assert evaluate(mean, SPEC, episodes=4, eval_temperature=0.0, quiet=True).eval_temperature == 0
    assert not mean.noise


def test_the_adapter_sets_the_default_eval_temperature() -> None:
    sampled, mean = Echo(), Echo()
    assert Eval(Path()).eval_temperature is None
    assert evaluate(sampled, SPEC, episodes=4, quiet=True).eval_temperature == ADAPTERS["gcb"].eval_temperature > 0
    assert sampled.noise
    assert evaluate(mean, replace(SPEC, adapter=MeanActions()), episodes=4, quiet=True).eval_temperature == 0
    assert not mean.noise


@pytest.mark.parametrize(("mode", "brightness"), [("goal", 250), ("strict", 200), ("loose", 200), ("free", 200)])
def test_the_policy_sees_only_the_goal_or_the_example(mode: str, brightness: int) -> None:
    agent = Echo()
    evaluate(agent, SPEC, mode, episodes=3, quiet=True)
    assert agent.tasks == {brightness}


def test_a_video_shows_the_example_and_the_episode(tmp_path: Path) -> None:
    evaluate(Echo(), SPEC, "strict", episodes=5, batch=2, video=tmp_path / "grid.mp4", video_episodes=3, quiet=True)
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
    assert list(results) == ["goal", "strict", "free"]
    evaluate_run(runs["goal_agnostic_bc"], ["loose"], episodes=3, quiet=True, videos=False)
    kept = read_results(runs["goal_agnostic_bc"])
    assert kept.keys() == {"goal", "strict", "free", "loose"}
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
    videos = sorted(path.stem for path in (runs["goal_agnostic_bc"] / "videos").iterdir())
    assert videos == ["free", "goal", "strict"]


def played(run: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> tuple[list[int], EvalResult]:
    """Evaluate a run by goal images; return the numbers of the episodes that were played, and the result."""
    numbers, reset = [], RolloutWorker._reset

    def count(worker: RolloutWorker, env: gym.Env, number: int) -> Any:
        numbers.append(number)
        return reset(worker, env, number)

    monkeypatch.setattr(RolloutWorker, "_reset", count)
    result = evaluate_run(run, ["goal"], batch=2, quiet=True, **{"videos": False, **settings})["goal"]
    monkeypatch.setattr(RolloutWorker, "_reset", reset)
    return numbers, result


def test_an_evaluation_is_extended_and_never_replaced_by_a_smaller_one(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Path(shutil.copytree(runs["gcbc"], tmp_path / "run"))
    (run / "eval.json").unlink(missing_ok=True)
    first, _ = played(run, monkeypatch, episodes=3)
    more, extended = played(run, monkeypatch, episodes=8)
    fewer, kept = played(run, monkeypatch, episodes=1)
    assert (first, more, fewer) == ([0, 1, 2], [3, 4, 5, 6, 7], [])
    assert (extended.reused, kept.reused, len(kept.outcomes)) == (3, 8, 8)
    whole = evaluate(load(run), episodes=8, batch=8, quiet=True)
    stored = read_results(run)["goal"]
    assert {name: value for name, value in stored.items() if name != "date"} == whole.to_dict()
    assert datetime.fromisoformat(stored["date"]).tzinfo is not None
    for settings in ({"seed": 1000, "episodes": 9}, {"eval_temperature": 0.0, "episodes": 9}):
        assert played(run, monkeypatch, **settings)[0] == list(range(9))
    assert read_results(run)["goal"] == stored  # the reported one has seed 0 and the default temperature
    assert [(entry["seed"], entry["episodes"]) for entry in read_evaluations(run)] == [(0, 8), (1000, 9), (0, 9)]


def test_an_interrupted_evaluation_resumes(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Path(shutil.copytree(runs["gcbc"], tmp_path / "run"))
    (run / "eval.json").unlink(missing_ok=True)
    shutil.rmtree(run / "videos", ignore_errors=True)
    step = RolloutWorker._step

    def interrupt(worker: RolloutWorker, env: gym.Env, action: Any, outcome: Outcome, number: int) -> Any:
        if len(read_evaluations(run)) and read_results(run)["goal"]["episodes"] >= 4:
            raise KeyboardInterrupt
        return step(worker, env, action, outcome, number)

    monkeypatch.setattr(RolloutWorker, "_step", interrupt)
    with pytest.raises(KeyboardInterrupt):
        evaluate_run(run, ["goal"], episodes=7, batch=2, quiet=True)
    monkeypatch.setattr(RolloutWorker, "_step", step)
    assert read_results(run)["goal"]["episodes"] == 4
    numbers, result = played(run, monkeypatch, episodes=7, videos=True)
    assert numbers == [4, 5, 6, 0, 1, 2, 3, 4, 5]  # the video shows the first six
    assert [outcome.task for outcome in result.outcomes] == plans(7, 0)
    assert (run / "videos" / "goal.mp4").exists()


def test_a_run_that_cannot_be_written_plays_no_episode(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Path(shutil.copytree(runs["gcbc"], tmp_path / "run"))
    (run / ".eval.json.lock").mkdir()  # stands for a directory without permission, which root would not notice
    monkeypatch.setattr(RolloutWorker, "run", lambda worker, index: pytest.fail("an episode was played"))
    with pytest.raises(GCBError, match=r"eval\.json could not be written"):
        evaluate_run(run, ["goal"], episodes=3, quiet=True)


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
        ({"mode": "sideways"}, "mode is 'sideways'; accepted: goal, strict, loose, free"),
        ({"episodes": 0}, "episodes is 0"),
        ({"batch": 0}, "batch is 0"),
        ({"eval_temperature": -0.5}, "eval_temperature is -0.5"),
        ({"workers": 0}, "workers is 0"),
        ({"workers": 2}, "workers is 2"),
        ({"env_spec": None}, "does not name its environment"),
        ({"env_spec": EnvSpec("helpers.slide_env:Nowhere-v0")}, "no environment 'helpers.slide_env:Nowhere-v0'"),
        ({"env_spec": EnvSpec(ENV, {"size": 40})}, r"\(40, 40, 3\).*trained on \(32, 32, 3\)"),
        ({"env_spec": EnvSpec(ENV, {"colour": 1})}, "unexpected keyword argument 'colour'"),
        ({"env_spec": EnvSpec(ENV, {"size": "a"})}, "was given options .*'size': 'a'.*, but "),
    ],
)
def test_invalid_arguments_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(GCBError, match=message):
        evaluate(Echo(), **{"env_spec": SPEC, "quiet": True, **settings})


def test_a_run_records_its_environment(runs: dict[str, Path]) -> None:
    assert env_spec_of(load(runs["gcbc"])) == EnvSpec(ENV, {"check_actions": False})


def test_rates_by_hand() -> None:
    outcomes = [
        Outcome("a", 3, True, 4, True),
        Outcome("a", 2, False, 2, True),
        Outcome("b", None, False),
        Outcome("b", 9, True, None, True),
    ]
    result = EvalResult("goal", SPEC, 0, 5, outcomes)
    assert result.rate().value == 0.75
    assert result.rate(criterion="at_end").value == 0.5
    assert result.rate(criterion="declared").value == 0.75
    assert result.rate("b", criterion="declared") == Rate(1, 2)
    assert result.to_dict()["tasks"]["b"]["any_step"]["rate"] == 0.5
    # Wilson's interval for 3 of 4, from its formula.
    assert result.to_dict()["all"]["any_step"]["interval"] == pytest.approx([0.3006, 0.9544], abs=1e-4)
    first = ("goal", "all", "0.750 [0.301, 0.954] (3/4)", "0.500 [0.150, 0.850] (2/4)", "0.750 [0.301, 0.954] (3/4)")
    assert next(result_rows({"goal": result})) == first
