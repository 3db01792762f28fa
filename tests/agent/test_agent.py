"""The agent: numpy in, numpy out, single or batched, and errors that name what is accepted."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.batches import NO_PARTNERS
from helpers.tiny import tiny_config, tiny_dataset

import gcb
from gcb.agent.agent import DONE_THRESHOLD, DONE_WINDOW, Agent, DoneMonitor
from gcb.agent.build import build
from gcb.errors import GCBError
from gcb.methods import Shapes
from gcb.models.networks import ImageTrunk
from gcb.runs.run_dir import CHECKPOINT, RECORD
from gcb.training.trainer import train
from gcb.utils.text_files import read_json

SHAPES = Shapes((32, 32, 3), 2)


def fresh_agent(method: str = "gcb", shapes: Shapes = SHAPES, **changes: Any) -> Agent:
    torch.manual_seed(0)
    learned, iql = build(tiny_config(method, **changes), shapes)
    learned.eval().requires_grad_(False)
    return Agent(learned, iql.requires_grad_(False), shapes, torch.device("cpu"))


def images(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(256, size=(count, 32, 32, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("agent") / "run"
    train(tiny_config(), tiny_dataset(), path, quiet=True)
    return path


def test_a_loaded_agent_matches_the_trained_one(tmp_path: Path) -> None:
    seen, example, acted = images(3), (images(1, 2)[0], images(1, 3)[0]), {}

    def results(agent: Agent) -> list[np.ndarray]:
        by_example = [agent.act(seen, example=example), agent.value(seen, example=example)]
        return [agent.act(seen, goal=images(3, 1)), agent.done(seen, goal=images(3, 1)), *by_example]

    def on_checkpoint(agent: Agent, step: int) -> dict[str, float]:
        acted[step] = results(agent)
        return {}

    train(tiny_config(), tiny_dataset(), tmp_path / "run", quiet=True, on_checkpoint=on_checkpoint)
    agent = gcb.load(tmp_path / "run")
    assert agent.step == 12
    assert not agent.method.training
    for actual, expected in zip(results(agent), acted[12], strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_actions_are_sampled_with_a_generator() -> None:
    agent, goal = fresh_agent(), images(1, 1)[0]
    mean, sampled = (agent.act(images(1)[0], goal=goal, rng=rng) for rng in (None, np.random.default_rng(3)))
    assert mean.shape == sampled.shape == (2,)
    noise = agent.iql.policy("goal").actor.log_std.exp().numpy() * np.random.default_rng(3).standard_normal(2)
    np.testing.assert_allclose(sampled, np.clip(mean + noise, -1, 1), atol=1e-6)
    halved = agent.act(images(1)[0], goal=goal, rng=np.random.default_rng(3), eval_temperature=0.5)
    np.testing.assert_allclose(halved, np.clip(mean + noise / 2, -1, 1), atol=1e-6)
    many = agent.act(images(4), goal=goal, rng=np.random.default_rng(3))
    assert many.shape == (4, 2)
    np.testing.assert_allclose(many[0], sampled, atol=1e-5)


@pytest.mark.parametrize("method", ["gcb", "goal_agnostic_bc"])
@pytest.mark.parametrize("by", ["goal", "example"])
def test_a_batch_matches_single_observations(method: str, by: str) -> None:
    agent, seen = fresh_agent(method), images(4)
    task: dict[str, Any] = {"goal": images(4, 1)} if by == "goal" else {"example": (images(4, 1), images(4, 2))}
    batch = agent.act(seen, **task)
    assert batch.shape == (4, 2)
    assert batch.dtype == np.float32
    assert np.abs(batch).max() <= 1
    for index in range(4):
        single_task: dict[str, Any] = (
            {"goal": task["goal"][index]} if by == "goal" else {"example": tuple(part[index] for part in task[by])}
        )
        single = agent.act(seen[index], **single_task)
        assert single.shape == (2,)
        np.testing.assert_allclose(single, batch[index], atol=1e-5)
        assert agent.value(seen[index], **single_task).shape == ()
        assert agent.done(seen[index], **single_task).shape == ()
    assert agent.value(seen, **task).shape == agent.done(seen, **task).shape == (4,)


def test_one_task_applies_to_a_batch() -> None:
    agent, seen, goal = fresh_agent("gcbc"), images(3), images(1, 1)[0]
    np.testing.assert_allclose(agent.act(seen, goal=goal), agent.act(seen, goal=np.stack([goal] * 3)), atol=1e-6)
    policy = fresh_agent("gcb").start_task(seen[0], goal=goal)
    assert policy.act(seen).shape == (3, 2)


def test_embeddings_and_their_distance() -> None:
    agent, states, goals = fresh_agent(method_config={"size": 24}), images(3), images(3, 1)
    phi = agent.phi(states, goals)
    assert phi.shape == (3, 24)
    assert agent.psi(states[0]).shape == (24,)
    np.testing.assert_allclose(agent.phi(states[1], goals[1]), phi[1], atol=1e-5)
    expected = np.abs(phi[0] - phi[1]).mean()
    assert agent.distance((states[0], goals[0]), (states[1], goals[1])) == pytest.approx(expected, abs=1e-6)
    assert agent.distance((states, goals), (states, goals)).tolist() == [0, 0, 0]
    assert agent.distance((states[0], goals[0]), (states, goals)).shape == (3,)


@contextmanager
def count_images(agent: Agent) -> Iterator[list[int]]:
    """Yield a list that grows by the number of images of each pass through an encoder's convolutions."""
    counts: list[int] = []
    trunks = [module for module in agent.method.modules() if isinstance(module, ImageTrunk)]
    hooks = [trunk.register_forward_hook(lambda _, images, __: counts.append(len(images[0]))) for trunk in trunks]
    yield counts
    for hook in hooks:
        hook.remove()


@pytest.mark.parametrize(
    ("method", "by", "at_start", "each_step"),
    [
        ("gcb", "goal", 1, 1),
        ("gcb", "example", 3, 1),  # the pair, and where the agent starts
        ("pixel", "goal", 1, 1),
        ("cpv", "goal", 1, 2),  # ψ(s), and the plan done so far
        ("gcbc", "goal", 0, 1),
        ("goal_agnostic_bc", "example", 0, 1),
    ],
)
def test_a_task_is_encoded_once(method: str, by: str, at_start: int, each_step: int) -> None:
    agent, seen, goal = fresh_agent(method), images(5), images(1, 1)[0]
    task: dict[str, Any] = {"goal": goal} if by == "goal" else {"example": (images(1, 2)[0], goal)}
    with count_images(agent) as counts:
        policy = agent.start_task(seen[0], **task)
        assert sum(counts) == at_start
        actions = [policy.act(observation) for observation in seen]
        policy.step(seen[0])  # `act` and `done` from one pass
        assert sum(counts) == at_start + 6 * each_step
    np.testing.assert_allclose(actions[4], agent.act(seen[4], **task, initial_state=seen[0]), atol=1e-6)


def set_done(agent: Agent, policy: str, logit: float) -> None:
    """Make a policy declare every task done with the same probability."""
    last: Any = agent.iql.policy(policy).done[-1]
    last.weight.zero_()
    last.bias.fill_(logit)


def test_done_is_the_probability_of_the_policy_that_is_given_the_task() -> None:
    agent, seen = fresh_agent(), images(4)
    tasks: dict[str, dict[str, Any]] = {"goal": {"goal": images(4, 1)}, "analogy": {"example": (seen, images(4, 2))}}
    for task in tasks.values():
        done = agent.done(seen, **task)
        assert ((done > 0) & (done < 1)).all()
        assert len(np.unique(done)) == 4
        np.testing.assert_array_equal(agent.start_task(seen, **task).done(seen), done)
    set_done(agent, "goal", np.log(3))
    set_done(agent, "analogy", -np.log(3))
    for policy, expected in (("goal", 0.75), ("analogy", 0.25)):
        np.testing.assert_allclose(agent.done(seen, **tasks[policy]), expected, atol=1e-6)


def test_a_task_is_declared_done_by_the_mean_of_the_last_estimates() -> None:
    assert (DONE_WINDOW, DONE_THRESHOLD) == (10, 0.35)
    monitor, estimates = DoneMonitor(), [0.8] * 5 + [0.0] * 6 + [0.8] * 2
    declared = [bool(monitor.update(np.asarray(done))) for done in estimates]
    # Never before ten steps. The means are then .40, .32, .32 and .32.
    assert declared == [False] * 9 + [True, False, False, False]
    batch = DoneMonitor()
    declared = [batch.update(np.array([0.5, step < 3])).tolist() for step in range(10)]
    assert declared == [[False, False]] * 9 + [[True, False]]


@pytest.mark.parametrize(("method", "only_now"), [("gcb", True), ("pixel", True), ("cta", True), ("cc_vae", False)])
def test_by_analogy_only_done_depends_on_where_the_task_started(method: str, only_now: bool) -> None:
    """Except where the method's code of a state is relative to the start."""
    agent, now, example = fresh_agent(method), images(3), (images(1, 1)[0], images(1, 2)[0])
    first, second = (agent.start_task(images(3, seed), example=example) for seed in (4, 5))
    assert np.allclose(first.act(now), second.act(now)) == only_now
    assert not np.allclose(first.done(now), second.done(now))
    assert not np.allclose(first.value(now), second.value(now))


@pytest.mark.parametrize("by", ["goal", "example"])
def test_a_step_is_an_action_and_whether_the_task_is_done(by: str) -> None:
    agent, seen = fresh_agent(), images(3)
    task: dict[str, Any] = {"goal": images(3, 1)} if by == "goal" else {"example": (images(3, 1), images(3, 2))}
    policy = agent.start_task(seen, **task)
    action, done = policy.step(seen)
    np.testing.assert_array_equal(action, policy.act(seen))
    np.testing.assert_array_equal(done, policy.done(seen))
    alone: dict[str, Any] = {by: task[by][0] if by == "goal" else tuple(part[0] for part in task[by])}
    action, done = agent.start_task(seen[0], **alone).step(seen[0], np.ones(2))
    assert (action.shape, done.shape) == ((2,), ())


def test_the_noise_of_a_step_vanishes_as_the_task_is_done() -> None:
    agent, seen, goal = fresh_agent(), images(3), images(1, 1)[0]
    noise = np.random.default_rng(0).standard_normal((3, 2))
    for logit, kept in ((-30.0, 1.0), (0.0, 0.5), (30.0, 0.0)):
        set_done(agent, "goal", logit)
        policy = agent.start_task(seen, goal=goal)
        action, done = policy.step(seen, noise)
        np.testing.assert_allclose(done, 1 - kept, atol=1e-6)
        np.testing.assert_allclose(action, policy.act(seen, kept * noise), atol=1e-6)
    np.testing.assert_allclose(action, policy.act(seen), atol=1e-6)
    assert not np.allclose(action, policy.act(seen, noise))


@pytest.mark.parametrize(("policies", "trained"), [("goal", ["goal"]), ("analogy", ["analogy"])])
def test_a_single_policy_is_given_goals_and_examples(policies: str, trained: list[str]) -> None:
    agent = fresh_agent(method_config={"policies": policies, **NO_PARTNERS})
    assert list(agent.iql.policies) == trained
    seen, goal = images(2), images(2, 1)
    by_goal, by_own_example = agent.act(seen, goal=goal), agent.act(seen, example=(seen, goal))
    np.testing.assert_allclose(by_goal, by_own_example, atol=1e-5)  # at the start of the task
    assert not np.allclose(by_goal, agent.act(seen, example=(images(2, 2), images(2, 3))), atol=1e-5)


def test_vector_observations() -> None:
    agent = fresh_agent(shapes=Shapes((6,), 3))
    state, goal = np.random.default_rng(0).normal(size=(2, 6))
    assert agent.act(state, goal=goal).shape == (3,)
    assert agent.phi(state.astype(np.float32), goal).shape == (32,)
    with pytest.raises(GCBError, match=r"observation is int64 \(6,\); accepted: floating-point \(6,\)"):
        agent.start_task(state, goal=goal).act(np.zeros(6, int))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"observation": np.zeros((32, 32, 3), np.float32)},
            r"initial_state is float32 \(32, 32, 3\); accepted: uint8",
        ),
        ({"observation": np.zeros((64, 64, 3), np.uint8)}, r"\(64, 64, 3\); accepted: uint8 \(32, 32, 3\)"),
        ({"observation": np.zeros((2, 2, 32, 32, 3), np.uint8)}, "accepted"),
        ({"observation": np.zeros((0, 32, 32, 3), np.uint8)}, "accepted"),
        ({"goal": np.zeros((32, 32), np.uint8)}, r"goal is uint8 \(32, 32\)"),
        ({"goal": "left"}, "goal is"),
        ({"goal": None}, "either goal"),
        ({"example": (images(1)[0], images(1)[0])}, "either goal"),
        ({"goal": None, "example": images(1)[0]}, "example is not a pair"),
        ({"goal": None, "example": (images(1)[0],)}, "example is not a pair"),
        ({"goal": None, "example": (images(1)[0], np.zeros(3))}, r"example\[1\] is float64 \(3,\)"),
        ({"observation": images(2), "goal": images(3)}, "batches of 2 and 3"),
    ],
)
def test_invalid_observations_and_tasks_are_refused(wrong: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"observation": images(1)[0], "goal": images(1)[0], **wrong}
    with pytest.raises(GCBError, match=message):
        fresh_agent().act(given.pop("observation"), **given)


def test_unsupported_embeddings_and_analogies_are_refused() -> None:
    cloned = fresh_agent("gcbc")
    with pytest.raises(GCBError, match="gcbc does not support analogies"):
        cloned.act(images(1)[0], example=(images(1)[0], images(1)[0]))
    with pytest.raises(GCBError, match="gcbc has no state embedding"):
        cloned.psi(images(1)[0])
    with pytest.raises(GCBError, match="goal_agnostic_bc has no task embedding"):
        fresh_agent("goal_agnostic_bc").phi(images(1)[0], images(1)[0])


def test_read_only_observations_are_accepted() -> None:
    seen = images(2)
    seen.flags.writeable = False
    assert fresh_agent().act(seen, goal=seen[::-1]).shape == (2, 2)


def test_weights_of_another_shape_are_refused(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in run.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    record = read_json(copy / RECORD)
    record["data"]["shapes"]["action"] = 3
    (copy / RECORD).write_text(json.dumps(record))
    with pytest.raises(GCBError, match=r"weights in .*copy"):
        gcb.load(copy)
    del record["data"]["shapes"]
    (copy / RECORD).write_text(json.dumps(record))
    with pytest.raises(GCBError, match=r"run\.json is damaged"):
        gcb.load(copy)
    (copy / CHECKPOINT).unlink()
    with pytest.raises(GCBError):
        gcb.load(copy)
    with pytest.raises(GCBError, match="device is 'tpu'"):
        gcb.load(run, "tpu")


def test_importing_the_package_does_not_import_torch() -> None:
    code = "import gcb, sys; gcb.load; print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code]) == b"False\n"


def test_an_agent_shows_what_it_is(run: Path) -> None:
    text = repr(gcb.load(run))
    assert text.startswith(f"<Agent {run}: gcb, ")
    assert "observations 32×32×3, actions 2, given goals and examples, on cpu>" in text
    assert "given goals, on cpu" in repr(fresh_agent("gcbc"))
