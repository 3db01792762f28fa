"""Methods with an embedding of single states: what their policies see, the bottleneck; Pixel and RAD."""

from typing import Any

import pytest
import torch
from helpers.batches import gradient, image_batch, make_method

from gcb.errors import GCBError
from gcb.methods.baseline import StateConfig
from gcb.models.networks import layer_normed
from gcb.runs.config import make_config

each_group_size = pytest.mark.parametrize("group_size", [1, 2])


@each_group_size
def test_a_policy_for_goals_sees_the_goals_embedding(group_size: int) -> None:
    method, batch = make_method("pixel"), image_batch(group_size=group_size)
    output, goal = method.compute_loss(batch), method.psi(batch.goal)
    seen = torch.cat([method.psi(batch.state), batch.expand(goal)], -1)
    torch.testing.assert_close(output.critic_inputs["goal"], seen)
    torch.testing.assert_close(output.next_inputs["goal"], torch.cat([method.psi(batch.next_state), goal], -1))


@each_group_size
def test_a_policy_for_goals_can_see_the_current_pair(group_size: int) -> None:
    method, batch = make_method("pixel", goal_condition="pair"), image_batch(group_size=group_size)
    state, goal = method.psi(batch.state), batch.expand(method.psi(batch.goal))
    torch.testing.assert_close(method.compute_loss(batch).critic_inputs["goal"], torch.cat([state, state, goal], -1))


@each_group_size
def test_a_policy_for_analogies_sees_the_code_of_a_pair_and_where_it_started(group_size: int) -> None:
    method, batch = make_method("pixel"), image_batch(group_size=group_size)
    start = method.psi(batch.initial_state)
    code = method.bottleneck(torch.cat([start, method.psi(batch.goal)], -1))
    assert code.shape == (8 // group_size, 16)
    output, task = method.compute_loss(batch), torch.cat([code, start], -1)
    seen = torch.cat([method.psi(batch.state), batch.expand(task)], -1)
    torch.testing.assert_close(output.critic_inputs["analogy"], seen)
    torch.testing.assert_close(output.next_inputs["analogy"], torch.cat([method.psi(batch.next_state), task], -1))
    example = (batch.next_state, batch.goal)
    seen = method.analogy_inputs(batch.next_state, *method.prepare_example(batch.initial_state, *example))
    code = method.bottleneck(torch.cat([method.psi(part) for part in example], -1))
    torch.testing.assert_close(seen[:, 32:], torch.cat([code, start], -1))


def test_a_policy_for_goals_alone_infers_the_goal_by_arithmetic_or_is_given_the_pair() -> None:
    batch = image_batch()
    for condition in ("goal", "pair"):
        method = make_method("pixel", policies="goal", goal_condition=condition)
        start, before, after = (method.psi(frame) for frame in (batch.initial_state, batch.next_state, batch.goal))
        inferred = layer_normed(start + after - before) if condition == "goal" else torch.cat([before, after], -1)
        prepared = method.prepare_example(batch.initial_state, batch.next_state, batch.goal)
        torch.testing.assert_close(method.analogy_inputs(batch.state, *prepared)[:, 32:], inferred)


def test_settings_are_checked() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"bottleneck_dim": 0}, "bottleneck_dim is 0"),
        ({"bottleneck_noise": -1.0}, "bottleneck_noise is -1"),
    ]
    for settings, message in wrong:
        with pytest.raises(GCBError, match=message):
            StateConfig(**settings)
    for name in ("policies", "goal_condition"):
        with pytest.raises(GCBError, match=f"method_config.{name} is 'none'"):
            make_config("vae", "laptop", {"method_config": {name: "none"}})


def test_actor_trains_the_bottleneck_even_without_gradient_in_the_encoder() -> None:
    method = make_method("vae", rl_gradient="none")
    output = method.compute_loss(image_batch())
    output.actor_inputs["analogy"].square().sum().backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in method.bottleneck.parameters())
    assert gradient(method._psi) == 0
    assert not output.critic_inputs["analogy"].requires_grad


def test_only_the_actors_code_is_noisy() -> None:
    method, batch = make_method("pixel"), image_batch()
    torch.manual_seed(0)
    first, second = method.compute_loss(batch), method.compute_loss(batch)
    assert not torch.equal(first.actor_inputs["analogy"], second.actor_inputs["analogy"])
    assert torch.equal(first.critic_inputs["analogy"], second.critic_inputs["analogy"])
    assert torch.equal(first.actor_inputs["goal"], second.critic_inputs["goal"])


def test_rad_is_pixel_with_augmentation() -> None:
    for preset, pixel_shift, rad_shift in (("laptop", 0, 4), ("paper", 0, 4), ("smoke", 0, 2)):
        pixel, rad = make_config("pixel", preset), make_config("rad", preset)
        assert pixel.method_config == rad.method_config
        assert (pixel.random_shift, rad.random_shift) == (pixel_shift, rad_shift)
        assert (pixel.horizontal_flip, pixel.channel_shuffle, pixel.random_overlay) == (False, False, 0)
    batch = image_batch()
    pixel_output, rad_output = make_method("pixel").compute_loss(batch), make_method("rad").compute_loss(batch)
    for policy in ("goal", "analogy"):
        assert torch.equal(pixel_output.critic_inputs[policy], rad_output.critic_inputs[policy])
    assert pixel_output.loss.item() == rad_output.loss.item() == 0.0


def test_paper_preset_has_one_policy_on_the_current_pair_and_the_critics_gradient() -> None:
    config = make_config("vae", "paper").method_config
    assert (config.rl_gradient, config.policies, config.goal_condition) == ("critic", "goal", "pair")
    assert config.encoder == "paper"
    assert (config.learning_rate, config.weight_decay) == (5e-4, 1e-4)
