"""CPV: the composition loss by hand, and gradients in the pair encoder (the authors' release has none there)."""

import pytest
import torch
from helpers.batches import fit, image_batch, make_method

from gcb.errors import GCBError
from gcb.methods.cpv import CPVConfig, composition_loss


def test_composition_loss_by_hand() -> None:
    done, left = torch.tensor([[1.0, 0.0], [0.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 3.0]])
    whole = torch.tensor([[2.0, 1.0], [0.0, 3.0]])
    # Sums (2, 0) and (0, 3): squared distances 1 and 0 to their own task, 4 + 9 and 4 + 4 to the other.
    assert composition_loss(done, left, whole, margin=1.0).item() == 0.0
    assert composition_loss(done, left, whole, margin=13.0).item() == pytest.approx(((1 - 13 + 13) + (0 - 8 + 13)) / 2)


def test_task_is_the_whole_plan_minus_the_plan_done() -> None:
    method, batch = make_method("cpv", bottleneck_dim=None), image_batch()
    features = method.compute_loss(batch)
    whole, done, next_done = (
        method._pair(batch.initial_state, end) for end in (batch.goal, batch.state, batch.next_state)
    )
    torch.testing.assert_close(features.critic_task, whole - done)
    torch.testing.assert_close(features.next_task, whole - next_done)


def test_task_at_the_goal_is_zero() -> None:
    for method in (make_method("cpv"), make_method("cpv", bottleneck_dim=None)):
        batch = image_batch()
        left = method.goal_features(batch.initial_state, batch.goal, batch.goal)
        torch.testing.assert_close(left, torch.zeros_like(left))


def test_analogy_uses_the_examples_plan() -> None:
    method, batch = make_method("cpv"), image_batch()
    example = (batch.state.roll(1, 0), batch.goal.roll(1, 0))
    seen = method.analogy_features(batch.initial_state, batch.state, example)
    torch.testing.assert_close(seen, method.phi(*example) - method.phi(batch.initial_state, batch.state))


def test_rl_gradient_reaches_the_pair_encoder() -> None:
    method = make_method("cpv", composition_weight=0.0)
    features = method.compute_loss(image_batch())
    assert features.loss.item() == 0.0
    features.actor_task.square().sum().backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in method._pair.parameters())


def test_loss_of_one_batch_can_be_minimised() -> None:
    method, batch = make_method("cpv", composition_weight=1.0, margin=5.0), image_batch()
    losses = fit(method, batch, 60)
    assert losses[0] > 1.0
    assert losses[-1] < 0.05


def test_settings_are_checked() -> None:
    with pytest.raises(GCBError, match=r"margin is -1\.0"):
        CPVConfig(margin=-1.0)
    with pytest.raises(GCBError, match="rl_gradient is 'none'"):
        CPVConfig(rl_gradient="none")
