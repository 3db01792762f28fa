"""Methods with an embedding of single states: their three conditions, the bottleneck; Pixel and RAD."""

import pytest
import torch
from helpers.batches import image_batch, make_method

from gcb.errors import GCBError
from gcb.methods.baseline import StateConfig
from gcb.models.networks import layer_normed
from gcb.runs.config import make_config


def test_initial_pair_does_not_depend_on_the_state() -> None:
    method, batch = make_method("pixel", bottleneck_dim=None), image_batch()
    features = method.compute_loss(batch)
    psi = method.state_features
    assert not method.task_depends_on_state
    torch.testing.assert_close(features.critic_task, torch.cat([psi(batch.initial_state), psi(batch.goal)], -1))
    assert torch.equal(features.next_task, features.critic_task)


def test_current_pair_depends_on_the_state() -> None:
    method, batch = make_method("pixel", bottleneck_dim=None, condition="current_pair"), image_batch()
    features, psi = method.compute_loss(batch), method.state_features
    assert method.task_depends_on_state
    assert method.extra_frames == frozenset()
    torch.testing.assert_close(features.critic_task, torch.cat([psi(batch.state), psi(batch.goal)], -1))
    torch.testing.assert_close(features.next_task, torch.cat([psi(batch.next_state), psi(batch.goal)], -1))


def test_goal_is_inferred_from_an_example_by_arithmetic() -> None:
    method, batch = make_method("pixel", bottleneck_dim=None, condition="goal"), image_batch()
    psi, example = method.state_features, (batch.next_state, batch.goal)
    torch.testing.assert_close(method.compute_loss(batch).critic_task, psi(batch.goal))
    inferred = psi(batch.initial_state) + psi(batch.goal) - psi(batch.next_state)
    seen = method.analogy_features(batch.initial_state, batch.state, example)
    torch.testing.assert_close(seen, layer_normed(inferred))


def test_settings_are_checked() -> None:
    with pytest.raises(GCBError, match="condition is 'goal'"):
        StateConfig(condition="goal")
    with pytest.raises(GCBError, match="bottleneck_dim is 0"):
        StateConfig(bottleneck_dim=0)
    with pytest.raises(GCBError, match="bottleneck_noise is -1"):
        StateConfig(bottleneck_noise=-1.0)


def test_actor_trains_the_bottleneck_even_without_gradient_in_the_encoder() -> None:
    method = make_method("vae", rl_gradient="none")
    features = method.compute_loss(image_batch())
    features.actor_task.square().sum().backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in method.bottleneck.parameters())
    assert all(weight.grad is None for weight in method._psi.parameters())
    assert not features.critic_task.requires_grad


def test_only_the_actors_task_is_noisy() -> None:
    method, batch = make_method("pixel"), image_batch()
    torch.manual_seed(0)
    first, second = method.compute_loss(batch), method.compute_loss(batch)
    assert not torch.equal(first.actor_task, second.actor_task)
    assert torch.equal(first.critic_task, second.critic_task)


def test_rad_is_pixel_with_augmentation() -> None:
    for preset, pixel_shift, rad_shift in (("laptop", 0, 4), ("paper", 0, 4), ("smoke", 0, 2)):
        pixel, rad = make_config("pixel", preset), make_config("rad", preset)
        assert pixel.method_config == rad.method_config
        assert (pixel.random_shift, rad.random_shift) == (pixel_shift, rad_shift)
    batch = image_batch()
    pixel_output, rad_output = make_method("pixel").compute_loss(batch), make_method("rad").compute_loss(batch)
    assert torch.equal(pixel_output.critic_task, rad_output.critic_task)
    assert pixel_output.loss.item() == rad_output.loss.item() == 0.0


def test_paper_preset_has_the_critics_gradient_and_the_current_pair() -> None:
    config = make_config("vae", "paper")
    assert config.method_config.rl_gradient == "critic"
    assert config.method_config.condition == "current_pair"
    assert config.method_config.bottleneck_dim is None
    assert config.method_config.encoder == "paper"
    assert (config.method_config.learning_rate, config.method_config.weight_decay) == (5e-4, 1e-4)
