"""What every method promises, whichever it is."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.batches import IMAGES, ROWS, VECTORS, encoder_gradient, image_batch, make_method, vector_batch
from helpers.tiny import tiny_config, tiny_dataset

import gcb
from gcb.agent.agent import Agent
from gcb.agent.build import build
from gcb.data import Batch
from gcb.envs.spec import EnvSpec
from gcb.errors import GCBError
from gcb.evaluation.evaluate import evaluate
from gcb.methods import METHODS, MethodOutput
from gcb.runs.config import PRESETS, make_config
from gcb.training.learner import Learner
from gcb.training.trainer import train
from gcb.utils.dataclass_io import differences, to_dict

CPU = torch.device("cpu")
OWN_LOSS = set(METHODS) - {"rad", "pixel", "gcbc", "goal_agnostic_bc"}
BASELINES = set(METHODS) - {"gcb", "gcbc", "goal_agnostic_bc"}
TRAINED_BY_RL_ONLY = {"cpv", "rad", "pixel"}
every_method = pytest.mark.parametrize("name", METHODS)


def learner(name: str, **changes: Any) -> Learner:
    torch.manual_seed(0)
    return Learner(tiny_config(name, **changes), IMAGES, CPU)


@every_method
def test_the_losses_are_finite_and_fall(name: str) -> None:
    it, batch = learner(name, learning_rate=3e-3), image_batch(16)
    found = [it.step(batch, number) for number in range(30)]
    assert all(torch.isfinite(value) for figures in found for value in figures.values())
    for loss in ["actor_loss", *(["representation_loss"] if name in OWN_LOSS else [])]:
        values = [float(figures[loss]) for figures in found]
        assert np.mean(values[-5:]) < 0.9 * np.mean(values[:3]), loss
    assert name in OWN_LOSS or all(float(figures["representation_loss"]) == 0 for figures in found)


@every_method
def test_what_should_be_trained_is_trained_and_nothing_else(name: str) -> None:
    it = learner(name)
    before = {key: value.clone() for key, value in it.method.named_parameters()}
    it.step(image_batch(16), 0)
    covered = {id(one) for group in it.method.optimizer_groups() for one in group["params"]}
    assert covered == {id(one) for one in it.method.parameters() if one.requires_grad}
    for key, parameter in it.method.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, key
            assert parameter.grad.abs().sum() > 0, key
            assert not torch.equal(parameter, before[key]), key
        else:
            assert "slow" in key or "target" in key
            assert parameter.grad is None


@every_method
@pytest.mark.parametrize("gradient", ["none", "actor", "critic", "both"])
def test_the_policys_gradient_enters_where_it_is_let_in(name: str, gradient: str) -> None:
    kind = METHODS[name].config_type
    if "rl_gradient" not in {field.name for field in fields(kind)}:
        method, gradient = make_method(name), "actor"
    elif gradient == "none" and name in TRAINED_BY_RL_ONLY:
        with pytest.raises(GCBError, match="rl_gradient is 'none'; nothing else trains"):
            make_method(name, rl_gradient=gradient)
        return
    else:
        method = make_method(name, rl_gradient=gradient)
    features = method.compute_loss(image_batch())
    for who in ("actor", "critic"):
        wanted = gradient in (who, "both")
        for part in ("state", "task"):
            output = getattr(features, f"{who}_{part}")
            if output.shape[1]:
                assert (encoder_gradient(method, output) > 0) == wanted, (who, part)
    assert not features.next_state.requires_grad
    assert not features.next_task.requires_grad


def assert_shapes(method: Any, features: MethodOutput, batch: Batch, rows: int) -> None:
    assert features.loss.shape == ()
    assert torch.isfinite(features.loss)
    for part, size in (("state", method.state_size), ("task", method.task_size)):
        for who in ("actor", "critic"):
            assert getattr(features, f"{who}_{part}").shape == (rows, size)
        assert getattr(features, f"next_{part}").shape == (rows, size)
    assert method.state_features(batch.state).shape == (rows, method.state_size)
    assert method.goal_features(batch.initial_state, batch.state, batch.goal).shape == (rows, method.task_size)
    example = (batch.next_state, batch.goal)
    if method.supports_analogy:
        assert method.analogy_features(batch.initial_state, batch.state, example).shape == (rows, method.task_size)
    else:
        with pytest.raises(NotImplementedError):
            method.analogy_features(batch.initial_state, batch.state, example)


@every_method
@pytest.mark.parametrize("rows", [2, ROWS])
@pytest.mark.parametrize("kind", ["images", "vectors"])
def test_shapes_for_images_and_vectors(name: str, rows: int, kind: str) -> None:
    shapes, batch = (IMAGES, image_batch(rows)) if kind == "images" else (VECTORS, vector_batch(rows))
    method = make_method(name, shapes)
    assert_shapes(method, method.compute_loss(batch), batch, rows)


@every_method
def test_it_asks_for_no_frame_that_it_does_not_name(name: str) -> None:
    method, batch = make_method(name), image_batch()
    if "initial_state" not in method.extra_frames:
        batch = replace(batch, initial_state=None)
    assert torch.isfinite(method.compute_loss(batch).loss)


@pytest.mark.parametrize("name", sorted(BASELINES))
def test_the_policy_sees_at_the_test_what_it_was_trained_on(name: str) -> None:
    method, batch = make_method(name).eval(), image_batch()
    features = method.compute_loss(batch)
    torch.testing.assert_close(method.state_features(batch.state), features.critic_state)
    torch.testing.assert_close(method.state_features(batch.next_state), features.next_state)
    for state, seen in ((batch.state, features.critic_task), (batch.next_state, features.next_task)):
        torch.testing.assert_close(method.goal_features(batch.initial_state, state, batch.goal), seen)


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].supports_analogy])
def test_an_example_that_is_the_task_itself_says_the_same_as_the_goal(name: str) -> None:
    method, batch = make_method(name).eval(), image_batch()
    initial_state, state, goal = batch.initial_state, batch.state, batch.goal
    by_goal = method.goal_features(initial_state, state, goal)
    by_analogy = method.analogy_features(initial_state, state, (initial_state, goal))
    torch.testing.assert_close(by_analogy, by_goal, atol=1e-5, rtol=1e-4)
    if name != "goal_agnostic_bc":
        others = (initial_state.roll(1, 0), goal.roll(1, 0))
        assert (method.analogy_features(initial_state, state, others) - by_goal).abs().max() > 1e-4


@pytest.mark.parametrize("name", [name for name in METHODS if not METHODS[name].supports_analogy])
def test_asked_for_an_analogy_a_method_without_one_says_so(name: str) -> None:
    agent = Agent(*build(tiny_config(name), IMAGES), IMAGES, CPU)
    image = np.zeros(IMAGES.observation, np.uint8)
    with pytest.raises(GCBError, match=rf"{name} .*(example|analog)"):
        agent.act(image, example=(image, image))
    with pytest.raises(GCBError, match=rf"{name} .*(example|analog)"):
        evaluate(agent, EnvSpec("gcb/ButtonDrawer-v0"), "strict", episodes=1)


@every_method
def test_the_same_seed_gives_the_same_agent_and_loading_gives_it_back(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    config, data = tiny_config(name, steps=2, checkpoint_every=2, log_every=2), tiny_dataset()
    image, goal = np.asarray(data.frames[0]), np.asarray(data.frames[9])
    actions = []

    def act(agent: Agent, step: int) -> dict[str, float]:
        actions.append(agent.act(image, goal=goal))
        return {}

    for folder in ("one", "same"):
        train(config, data, tmp_path / folder, quiet=True, on_checkpoint=act)
        actions.append(gcb.load(tmp_path / folder).act(image, goal=goal))
    assert all(np.array_equal(actions[0], other) for other in actions[1:])
    train(replace(config, seed=1), data, tmp_path / "other", quiet=True, on_checkpoint=act)
    assert not np.array_equal(actions[0], actions[-1])


# ---- the same care for all ------------------------------------------------------------------------------------------

ITS_OWN_BY_DEFINITION = {
    "pixel": ["random_shift"],
    "gcbc": ["iql.temperature"],
    "goal_agnostic_bc": ["iql.temperature"],
}


@every_method
def test_outside_the_method_every_training_is_the_same(name: str) -> None:
    reference, other = (to_dict(make_config(method, "laptop")) for method in ("gcb", name))
    for plain in (reference, other):
        del plain["method"], plain["method_config"]
    changed = [difference.name for difference in differences(reference, other)]
    assert changed == ITS_OWN_BY_DEFINITION.get(name, [])


@pytest.mark.parametrize("name", sorted(BASELINES | {"gcbc", "goal_agnostic_bc"}))
def test_what_is_no_part_of_the_idea_is_gcbs_own_choice(name: str) -> None:
    reference, other = (make_config(method, "laptop").method_config for method in ("gcb", name))
    assert (other.learning_rate, other.weight_decay) == (reference.psi_learning_rate, reference.psi_weight_decay)
    # CURL's momentum encoder has a rate of its own, which is part of its idea.
    own = {"condition", "tau"} if name == "curl" else {"condition"}
    shared = {field.name for field in fields(reference)} & {field.name for field in fields(other)} - own
    assert {"encoder", "size"} <= shared
    for setting in sorted(shared):
        assert getattr(other, setting) == getattr(reference, setting), setting


@pytest.mark.parametrize("preset", PRESETS)
@every_method
def test_every_preset_can_be_built(name: str, preset: str) -> None:
    method, _ = build(make_config(name, preset), VECTORS)
    assert method.name == name
