"""The contract of every method: training, gradients, shapes, conditioning, reproducibility and presets."""

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
def test_losses_are_finite_and_decrease(name: str) -> None:
    trained, batch = learner(name, learning_rate=3e-3), image_batch(16)
    steps = [trained.step(batch, number) for number in range(30)]
    assert all(torch.isfinite(value) for metrics in steps for value in metrics.values())
    for loss in ["actor_loss", *(["representation_loss"] if name in OWN_LOSS else [])]:
        values = [float(metrics[loss]) for metrics in steps]
        assert np.mean(values[-5:]) < 0.9 * np.mean(values[:3]), loss
    assert name in OWN_LOSS or all(float(metrics["representation_loss"]) == 0 for metrics in steps)


@every_method
def test_all_but_the_target_networks_are_trained(name: str) -> None:
    trained = learner(name)
    method = trained.method
    before = {key: value.clone() for key, value in method.named_parameters()}
    trained.step(image_batch(16), 0)
    covered = {id(parameter) for group in method.optimizer_groups() for parameter in group["params"]}
    assert covered == {id(parameter) for parameter in method.parameters() if parameter.requires_grad}
    for key, parameter in method.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, key
            assert parameter.grad.abs().sum() > 0, key
            assert not torch.equal(parameter, before[key]), key
        else:
            assert "target" in key
            assert parameter.grad is None


@every_method
@pytest.mark.parametrize("gradient", ["none", "actor", "critic", "both"])
def test_rl_gradient_enters_the_encoders_as_configured(name: str, gradient: str) -> None:
    if "rl_gradient" not in {field.name for field in fields(METHODS[name].config_type)}:
        method, gradient = make_method(name), "actor"
    elif gradient == "none" and name in TRAINED_BY_RL_ONLY:
        with pytest.raises(GCBError, match="rl_gradient is 'none'; nothing else trains"):
            make_method(name, rl_gradient=gradient)
        return
    else:
        method = make_method(name, rl_gradient=gradient)
    features = method.compute_loss(image_batch())
    for network in ("actor", "critic"):
        expected = gradient in (network, "both")
        for part in ("state", "task"):
            output = getattr(features, f"{network}_{part}")
            if output.shape[1]:
                assert (encoder_gradient(method, output) > 0) == expected, (network, part)
    assert not features.next_state.requires_grad
    assert not features.next_task.requires_grad


def assert_shapes(method: Any, features: MethodOutput, batch: Batch, rows: int) -> None:
    assert features.loss.shape == ()
    assert torch.isfinite(features.loss)
    for part, size in (("state", method.state_size), ("task", method.task_size)):
        for network in ("actor", "critic"):
            assert getattr(features, f"{network}_{part}").shape == (rows, size)
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
@pytest.mark.parametrize("observations", ["images", "vectors"])
def test_shapes_for_images_and_vectors(name: str, rows: int, observations: str) -> None:
    shapes, batch = (IMAGES, image_batch(rows)) if observations == "images" else (VECTORS, vector_batch(rows))
    method = make_method(name, shapes)
    assert_shapes(method, method.compute_loss(batch), batch, rows)


@every_method
def test_extra_frames_name_every_optional_frame_in_use(name: str) -> None:
    method, batch = make_method(name), image_batch()
    if "initial_state" not in method.extra_frames:
        batch = replace(batch, initial_state=None)
    assert torch.isfinite(method.compute_loss(batch).loss)


@pytest.mark.parametrize("name", sorted(BASELINES))
def test_features_are_the_same_in_training_and_acting(name: str) -> None:
    method, batch = make_method(name).eval(), image_batch()
    features = method.compute_loss(batch)
    torch.testing.assert_close(method.state_features(batch.state), features.critic_state)
    torch.testing.assert_close(method.state_features(batch.next_state), features.next_state)
    for state, seen in ((batch.state, features.critic_task), (batch.next_state, features.next_task)):
        torch.testing.assert_close(method.goal_features(batch.initial_state, state, batch.goal), seen)


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].supports_analogy])
def test_the_task_itself_as_example_gives_the_goals_features(name: str) -> None:
    method, batch = make_method(name).eval(), image_batch()
    initial_state, state, goal = batch.initial_state, batch.state, batch.goal
    by_goal = method.goal_features(initial_state, state, goal)
    by_analogy = method.analogy_features(initial_state, state, (initial_state, goal))
    torch.testing.assert_close(by_analogy, by_goal, atol=1e-5, rtol=1e-4)
    if name != "goal_agnostic_bc":
        others = (initial_state.roll(1, 0), goal.roll(1, 0))
        assert (method.analogy_features(initial_state, state, others) - by_goal).abs().max() > 1e-4


@pytest.mark.parametrize("name", [name for name in METHODS if not METHODS[name].supports_analogy])
def test_unsupported_analogies_are_refused(name: str) -> None:
    agent = Agent(*build(tiny_config(name), IMAGES), IMAGES, CPU)
    image = np.zeros(IMAGES.observation, np.uint8)
    with pytest.raises(GCBError, match=rf"{name} .*(example|analog)"):
        agent.act(image, example=(image, image))
    with pytest.raises(GCBError, match=rf"{name} .*(example|analog)"):
        evaluate(agent, EnvSpec("gcb/ButtonDrawer-v0"), "strict", episodes=1)


@every_method
def test_agents_are_reproducible_by_seed_and_after_loading(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    config, data = tiny_config(name, steps=2, checkpoint_every=2, log_every=2), tiny_dataset()
    image, goal = np.asarray(data.frames[0]), np.asarray(data.frames[9])
    actions = []

    def act(agent: Agent, step: int) -> dict[str, float]:
        actions.append(agent.act(image, goal=goal))
        return {}

    for run in ("run", "same"):
        train(config, data, tmp_path / run, quiet=True, on_checkpoint=act)
        actions.append(gcb.load(tmp_path / run).act(image, goal=goal))
    assert all(np.array_equal(actions[0], other) for other in actions[1:])
    train(replace(config, seed=1), data, tmp_path / "other", quiet=True, on_checkpoint=act)
    assert not np.array_equal(actions[0], actions[-1])


# ---- a fair comparison ----------------------------------------------------------------------------------------------

DIFFERENT_BY_DEFINITION = {
    "pixel": ["random_shift"],
    "gcbc": ["iql.temperature"],
    "goal_agnostic_bc": ["iql.temperature"],
}


@every_method
def test_methods_share_all_other_training_settings(name: str) -> None:
    reference, other = (to_dict(make_config(method, "laptop")) for method in ("gcb", name))
    for config in (reference, other):
        del config["method"], config["method_config"]
    changed = [difference.name for difference in differences(reference, other)]
    assert changed == DIFFERENT_BY_DEFINITION.get(name, [])


@pytest.mark.parametrize("name", sorted(BASELINES | {"gcbc", "goal_agnostic_bc"}))
def test_shared_method_settings_have_gcbs_values(name: str) -> None:
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
