"""The contract of every method: training, gradients, shapes, conditioning, reproducibility and presets."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.batches import IMAGES, NO_PARTNERS, VECTORS, encoder_gradient, image_batch, make_method, vector_batch
from helpers.tiny import tiny_config, tiny_dataset

import gcb
from gcb.agent.agent import Agent
from gcb.agent.build import build
from gcb.envs.spec import EnvSpec
from gcb.errors import GCBError
from gcb.evaluation.evaluate import evaluate
from gcb.methods import METHODS, Method, MethodOutput
from gcb.runs.config import PRESETS, make_config
from gcb.training.learner import Learner
from gcb.training.trainer import train
from gcb.utils.dataclass_io import differences, to_dict

CPU = torch.device("cpu")
OWN_LOSS = set(METHODS) - {"rad", "pixel", "gcbc", "goal_agnostic_bc"}
BASELINES = set(METHODS) - {"gcb", "gcbc", "goal_agnostic_bc"}
TRAINED_BY_RL_ONLY = {"cpv", "rad", "pixel"}
every_method = pytest.mark.parametrize("name", METHODS)


def fields_of(name: str) -> set[str]:
    return {field.name for field in fields(METHODS[name].config_type)}


def settings_of(name: str, policies: str) -> dict[str, Any]:
    """Return the settings of a method for these policies; "default" changes nothing."""
    if policies == "default":
        return {}
    return {"policies": policies, **(NO_PARTNERS if name == "gcb" and policies == "goal" else {})}


every_choice_of_policies = pytest.mark.parametrize(
    ("name", "policies"),
    [
        (name, policies)
        for name in METHODS
        for policies in (("both", "goal", "analogy") if "policies" in fields_of(name) else ("default",))
    ],
)


def learner(name: str, **changes: Any) -> Learner:
    torch.manual_seed(0)
    return Learner(tiny_config(name, **changes), IMAGES, CPU)


@every_method
def test_losses_are_finite_and_decrease(name: str) -> None:
    trained, batch = learner(name, learning_rate=3e-3), image_batch(16, group_size=2)
    steps = [trained.step(batch, number) for number in range(30)]
    assert all(torch.isfinite(value) for metrics in steps for value in metrics.values())
    ratios = {"actor_loss": 0.9, "done_loss": 1.0, **({"representation_loss": 0.9} if name in OWN_LOSS else {})}
    for loss, ratio in ratios.items():
        values = [float(metrics[loss]) for metrics in steps]
        assert np.mean(values[-5:]) < ratio * np.mean(values[:3]), loss
    assert name in OWN_LOSS or all(float(metrics["representation_loss"]) == 0 for metrics in steps)


@every_choice_of_policies
def test_all_but_the_target_networks_are_trained(name: str, policies: str) -> None:
    trained = learner(name, method_config=settings_of(name, policies))
    method, parameters = trained.method, dict(trained.modules.named_parameters())
    before = {key: value.clone() for key, value in parameters.items()}
    trained.step(image_batch(16, group_size=2), 0)
    covered = {id(parameter) for group in method.optimizer_groups() for parameter in group["params"]}
    assert covered == {id(parameter) for parameter in method.parameters() if parameter.requires_grad}
    for key, parameter in parameters.items():
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
    if "rl_gradient" not in fields_of(name):
        method, gradient = make_method(name), "actor"
    elif gradient == "none" and name in TRAINED_BY_RL_ONLY:
        with pytest.raises(GCBError, match="rl_gradient is 'none'; nothing else trains"):
            make_method(name, rl_gradient=gradient)
        return
    else:
        method = make_method(name, rl_gradient=gradient)
    output, size = method.compute_loss(image_batch(group_size=2)), method.config.size
    for policy in method.input_sizes:
        for network, inputs in (("actor", output.actor_inputs[policy]), ("critic", output.critic_inputs[policy])):
            expected = gradient in (network, "both")
            for part in (inputs[:, :size], inputs[:, size:]):  # the state's features, and the task's if there are any
                if part.shape[1]:
                    assert (encoder_gradient(method, part) > 0) == expected, (policy, network)
        assert output.critic_inputs[policy].requires_grad == (gradient in ("critic", "both"))
        assert not output.next_inputs[policy].requires_grad


def assert_shapes(method: Method, output: MethodOutput, batch: Any) -> None:
    rows, groups, sizes = len(batch.state), len(batch.goal), method.input_sizes
    assert all(0 <= method.history_sizes.get(policy, 0) < size for policy, size in sizes.items())
    assert output.loss.shape == ()
    assert torch.isfinite(output.loss)
    for inputs, count in ((output.actor_inputs, rows), (output.critic_inputs, rows), (output.next_inputs, groups)):
        assert {policy: tensor.shape for policy, tensor in inputs.items()} == {
            policy: (count, size) for policy, size in sizes.items()
        }
    by_goal = method.goal_inputs(batch.next_state, *method.prepare_goal(batch.initial_state, batch.goal))
    assert by_goal.shape == (groups, sizes.get("goal", sizes.get("analogy")))
    frames = (batch.initial_state, batch.next_state, batch.goal)
    if method.supports_analogy:
        by_analogy = method.analogy_inputs(batch.next_state, *method.prepare_example(*frames))
        assert by_analogy.shape == (groups, sizes.get("analogy", sizes.get("goal")))
    else:
        with pytest.raises(NotImplementedError):
            method.prepare_example(*frames)
        with pytest.raises(NotImplementedError):
            method.analogy_inputs(batch.next_state, batch.goal)


@every_choice_of_policies
@pytest.mark.parametrize("group_size", [1, 2])
@pytest.mark.parametrize("observations", ["images", "vectors"])
def test_shapes_for_images_and_vectors(name: str, policies: str, observations: str, group_size: int) -> None:
    shapes, make_batch = (IMAGES, image_batch) if observations == "images" else (VECTORS, vector_batch)
    method = make_method(name, shapes, **settings_of(name, policies))
    for groups in (2, 4):
        batch = make_batch(groups * group_size, group_size=group_size)
        assert_shapes(method, method.compute_loss(batch), batch)


@every_choice_of_policies
def test_extra_frames_name_every_optional_frame_in_use(name: str, policies: str) -> None:
    method, batch = make_method(name, **settings_of(name, policies)), image_batch()
    if "initial_state" not in method.extra_frames:
        batch = replace(batch, initial_state=None)
    assert torch.isfinite(method.compute_loss(batch).loss)


@every_choice_of_policies
@pytest.mark.parametrize("group_size", [1, 2])
def test_inputs_are_the_same_in_training_and_acting(name: str, policies: str, group_size: int) -> None:
    """By analogy, if the example is the episode's own (s_0, g); a single policy is given that in place of a goal."""
    method, batch = make_method(name, **settings_of(name, policies)).eval(), image_batch(group_size=group_size)
    output = method.compute_loss(batch)
    expand, initial_state, goal = batch.expand, batch.initial_state, batch.goal
    for state, start, end, seen in (
        (batch.state, expand(initial_state), expand(goal), output.critic_inputs),
        (batch.next_state, initial_state, goal, output.next_inputs),
    ):
        by_goal = method.goal_inputs(state, *method.prepare_goal(start, end))
        torch.testing.assert_close(by_goal, seen.get("goal", seen.get("analogy")), atol=1e-5, rtol=1e-4)
        if "analogy" in seen:
            by_analogy = method.analogy_inputs(state, *method.prepare_example(start, start, end))
            torch.testing.assert_close(by_analogy, seen["analogy"], atol=1e-5, rtol=1e-4)


@every_choice_of_policies
def test_the_example_is_the_task(name: str, policies: str) -> None:
    """Another example gives other inputs; without a policy of its own, the task itself is like its goal, at s_0."""
    if not METHODS[name].supports_analogy:
        return
    method, batch = make_method(name, **settings_of(name, policies)).eval(), image_batch()
    start, goal = batch.initial_state, batch.goal
    own, other = (
        method.analogy_inputs(start, *method.prepare_example(start, *example))
        for example in ((start, goal), (start.roll(1, 0), goal.roll(1, 0)))
    )
    assert ((own - other).abs().max() > 1e-4) == (name != "goal_agnostic_bc")
    if len(method.input_sizes) == 1:
        by_goal = method.goal_inputs(start, *method.prepare_goal(start, goal))
        # An embedding that arithmetic has rebuilt is normalised once more.
        torch.testing.assert_close(own, by_goal, atol=3e-3, rtol=1e-4)


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
    image, before, goal = (np.asarray(data.frames[index]) for index in (0, 4, 9))
    actions = []

    def act(agent: Agent, step: int | None) -> dict[str, float]:
        tasks: list[dict[str, Any]] = [{"goal": goal}]
        if agent.method.supports_analogy:
            tasks.append({"example": (before, goal)})
        actions.append(np.stack([agent.act(image, **task) for task in tasks]))
        return {}

    for run in ("run", "same"):
        train(config, data, tmp_path / run, quiet=True, on_checkpoint=act)
        act(agent := gcb.load(tmp_path / run), agent.step)
    assert all(np.array_equal(actions[0], other) for other in actions[1:])
    train(replace(config, seed=1), data, tmp_path / "other", quiet=True, on_checkpoint=act)
    assert not np.array_equal(actions[0], actions[-1])


# ---- a fair comparison ----------------------------------------------------------------------------------------------

DIFFERENT_BY_DEFINITION = {
    "pixel": ["random_shift", "horizontal_flip"],
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
    # GCB needs no target network; the momentum encoder of CURL and the targets of CTA are part of their ideas.
    own = {"goal_condition", "tau"} if name in ("curl", "cta") else {"goal_condition"}
    shared = fields_of("gcb") & fields_of(name) - own
    assert {"encoder", "size"} <= shared
    for setting in sorted(shared):
        assert getattr(other, setting) == getattr(reference, setting), setting


@pytest.mark.parametrize("preset", PRESETS)
@every_method
def test_every_preset_can_be_built(name: str, preset: str) -> None:
    method, _ = build(make_config(name, preset), VECTORS)
    assert method.name == name
