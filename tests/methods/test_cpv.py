"""CPV: the composition loss by hand, and gradients in the pair encoder (the authors' release has none there)."""

from typing import Any

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


@pytest.mark.parametrize("group_size", [1, 2])
def test_task_is_the_whole_plan_minus_the_plan_done(group_size: int) -> None:
    """By goal in the encoder's own space; for an analogy in the bottleneck's, in which plans are compared."""
    method, batch = make_method("cpv"), image_batch(group_size=group_size)
    output, start = method.compute_loss(batch), batch.initial_state
    whole, next_done = method._pair(start, batch.goal), method._pair(start, batch.next_state)
    done = method._pair(batch.expand(start), batch.state)
    torch.testing.assert_close(output.critic_inputs["goal"][:, 32:], batch.expand(whole) - done)
    torch.testing.assert_close(output.next_inputs["goal"][:, 32:], whole - next_done)
    plan, plan_done = method.phi(start, batch.goal), method.phi(batch.expand(start), batch.state)
    torch.testing.assert_close(output.critic_inputs["analogy"][:, 32:], batch.expand(plan) - plan_done)
    assert plan.shape[1] == 16


@pytest.mark.parametrize("settings", [{}, {"bottleneck_dim": None}, {"policies": "goal"}, {"policies": "analogy"}])
def test_task_at_the_goal_is_zero(settings: dict[str, Any]) -> None:
    method, batch = make_method("cpv", **settings), image_batch()
    start, goal = batch.initial_state, batch.goal
    for left in (
        method.goal_inputs(goal, *method.prepare_goal(start, goal)),
        method.analogy_inputs(goal, *method.prepare_example(start, start, goal)),
    ):
        torch.testing.assert_close(left[:, 32:], torch.zeros_like(left[:, 32:]))


def test_analogy_uses_the_examples_plan() -> None:
    method, batch = make_method("cpv"), image_batch()
    start, example = batch.initial_state, (batch.state.roll(1, 0), batch.goal.roll(1, 0))
    seen = method.analogy_inputs(batch.state, *method.prepare_example(start, *example))
    torch.testing.assert_close(seen[:, 32:], method.phi(*example) - method.phi(start, batch.state))


def test_composition_uses_the_first_transition_of_each_group() -> None:
    method, batch = make_method("cpv", composition_weight=1.0, margin=5.0), image_batch(group_size=2)
    state, start = batch.first(batch.state), batch.initial_state
    plans = [method.phi(*pair) for pair in ((start, state), (state, batch.goal), (start, batch.goal))]
    expected = composition_loss(*plans, margin=5.0)
    assert method.compute_loss(batch).loss.item() == pytest.approx(expected.item(), rel=1e-4)


def test_rl_gradient_reaches_the_pair_encoder() -> None:
    for policy in ("goal", "analogy"):
        method = make_method("cpv", composition_weight=0.0)
        output = method.compute_loss(image_batch())
        assert output.loss.item() == 0.0
        output.actor_inputs[policy][:, 32:].square().sum().backward()
        for name, weight in method._pair.named_parameters():
            if name != "head.linear.bias":  # it cancels in the difference of two plans
                assert weight.grad is not None
                assert weight.grad.abs().sum() > 0, name


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
