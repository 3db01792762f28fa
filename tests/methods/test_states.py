"""Methods with one embedding of states: the three ways of telling their policy what to do; Pixel and RAD."""

import pytest
import torch
from helpers.batches import image_batch, make_method

from gcb.errors import GCBError
from gcb.methods.baseline import StateConfig
from gcb.models.networks import layer_normed
from gcb.runs.config import make_config


def test_the_pair_from_the_first_frame_stays_where_it_is() -> None:
    method, batch = make_method("pixel", bottleneck_dim=None), image_batch()
    features = method.compute_loss(batch)
    psi = method.state_features
    assert not method.task_depends_on_state
    torch.testing.assert_close(features.critic_task, torch.cat([psi(batch.initial_state), psi(batch.goal)], -1))
    assert torch.equal(features.next_task, features.critic_task)


def test_the_papers_pair_moves_with_the_state() -> None:
    method, batch = make_method("pixel", bottleneck_dim=None, condition="current_pair"), image_batch()
    features, psi = method.compute_loss(batch), method.state_features
    assert method.task_depends_on_state
    assert method.extra_frames == frozenset()
    torch.testing.assert_close(features.critic_task, torch.cat([psi(batch.state), psi(batch.goal)], -1))
    torch.testing.assert_close(features.next_task, torch.cat([psi(batch.next_state), psi(batch.goal)], -1))


def test_a_goal_alone_is_inferred_from_an_example_by_arithmetic() -> None:
    method, batch = make_method("pixel", bottleneck_dim=None, condition="goal"), image_batch()
    psi, example = method.state_features, (batch.next_state, batch.goal)
    torch.testing.assert_close(method.compute_loss(batch).critic_task, psi(batch.goal))
    inferred = psi(batch.initial_state) + psi(batch.goal) - psi(batch.next_state)
    seen = method.analogy_features(batch.initial_state, batch.state, example)
    torch.testing.assert_close(seen, layer_normed(inferred))


def test_contradictions_are_named() -> None:
    with pytest.raises(GCBError, match="condition is 'goal'"):
        StateConfig(condition="goal")
    with pytest.raises(GCBError, match="bottleneck_dim is 0"):
        StateConfig(bottleneck_dim=0)
    with pytest.raises(GCBError, match="bottleneck_noise is -1"):
        StateConfig(bottleneck_noise=-1.0)


def test_the_actor_trains_the_passage_even_when_its_gradient_ends_there() -> None:
    method = make_method("vae", rl_gradient="none")
    features = method.compute_loss(image_batch())
    features.actor_task.square().sum().backward()
    assert all(one.grad is not None and one.grad.abs().sum() > 0 for one in method.bottleneck.parameters())
    assert all(one.grad is None for one in method._psi.parameters())
    assert not features.critic_task.requires_grad


def test_the_actors_task_is_noisy_and_the_critics_is_not() -> None:
    method, batch = make_method("pixel"), image_batch()
    torch.manual_seed(0)
    one, other = method.compute_loss(batch), method.compute_loss(batch)
    assert not torch.equal(one.actor_task, other.actor_task)
    assert torch.equal(one.critic_task, other.critic_task)


def test_rad_is_pixel_but_for_the_augmentation() -> None:
    for preset, there, here in (("laptop", 0, 4), ("paper", 0, 4), ("smoke", 0, 2)):
        pixel, rad = make_config("pixel", preset), make_config("rad", preset)
        assert pixel.method_config == rad.method_config
        assert (pixel.random_shift, rad.random_shift) == (there, here)
    batch = image_batch()
    one, other = make_method("pixel").compute_loss(batch), make_method("rad").compute_loss(batch)
    assert torch.equal(one.critic_task, other.critic_task)
    assert one.loss.item() == other.loss.item() == 0.0


def test_in_the_paper_baselines_take_the_critics_gradient_and_the_current_pair() -> None:
    config = make_config("vae", "paper")
    assert config.method_config.rl_gradient == "critic"
    assert config.method_config.condition == "current_pair"
    assert config.method_config.bottleneck_dim is None
    assert config.method_config.encoder == "paper"
    assert (config.method_config.learning_rate, config.method_config.weight_decay) == (5e-4, 1e-4)
