"""CTA: the value and its loss by hand, the task as a difference, and its bilinear combination with the state."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from helpers.batches import fit, image_batch, make_method

from gcb.errors import GCBError
from gcb.methods.cta import goal_value
from gcb.models.networks import layer_normed


def test_goal_value_by_hand() -> None:
    state, goal = torch.tensor([[1.0, 2.0, 0.0, 1.0]]), torch.tensor([[3.0, 0.5, 9.0, 2.0]])
    assert goal_value(state, goal).tolist() == [(3 + 1 + 0 + 2) / 2]


def test_value_loss_by_hand() -> None:
    method = make_method("cta", value_discount=0.5, expectile=0.8, value_weight=2.0)
    value, next_value = torch.tensor([0.0, 0.5, 0.9]), torch.tensor([0.8, 7.0, 3.0])
    reward, terminal = torch.tensor([0.0, 0.0, 1.0]), torch.tensor([False, False, True])
    # Targets: .5 · .8; .5 · 1, since values are clipped to 1; 1, since the step is terminal. Errors .4, 0 and .1.
    loss, _ = method.value_loss(value, next_value, reward, terminal)
    assert loss.item() == pytest.approx(2 * 0.8 * (0.4**2 + 0 + 0.1**2) / 3)
    below, _ = method.value_loss(torch.tensor([1.0]), torch.tensor([0.0]), torch.tensor([0.0]), torch.tensor([False]))
    assert below.item() == pytest.approx(2 * 0.2)


def test_bootstrap_uses_the_target_networks() -> None:
    method, batch = make_method("cta"), image_batch()
    before = method.compute_loss(batch).loss.item()
    for parameter in [*method._target_state.parameters(), *method._target_psi.parameters()]:
        parameter.data += 0.05
    assert method.compute_loss(batch).loss.item() != before
    method.compute_loss(batch).loss.backward()
    assert all(weight.grad is None for weight in method._target_psi.parameters())
    assert all(weight.grad is not None for weight in [*method._psi.parameters(), *method._state.parameters()])


def test_inputs_combine_task_and_state_bilinearly() -> None:
    """Doubling a projection of the state's or of the task's features doubles the result."""
    method = make_method("cta", bottleneck_dim=None)
    change, state = torch.randn(3, 32), torch.randn(3, 32)
    for policy in ("goal", "analogy"):
        method.state_projections[policy].bias.data.zero_()
        seen = method.inputs(policy, state, change)[:, 32:]
        torch.testing.assert_close(method.inputs(policy, 2 * state, change)[:, 32:], 2 * seen)
        method.task_projections[policy].weight.data *= 2
        torch.testing.assert_close(method.inputs(policy, state, change)[:, 32:], 2 * seen)


@pytest.mark.parametrize("group_size", [1, 2])
def test_task_is_a_difference_of_embeddings(group_size: int) -> None:
    method, batch = make_method("cta", bottleneck_dim=None), image_batch(group_size=group_size)
    goal, initial_state = batch.expand(batch.goal), batch.expand(batch.initial_state)
    state = method._state(batch.state)
    torch.testing.assert_close(method.phi(initial_state, goal), method.psi(goal) - method.psi(initial_state))
    for policy, start in (("goal", batch.state), ("analogy", initial_state)):
        change = layer_normed(method.psi(goal) - method.psi(start))
        expected = method.task_projections[policy](change) * method.state_projections[policy](state)
        seen = method.compute_loss(batch).critic_inputs[policy]
        where = [] if policy == "goal" else [layer_normed(method.psi(initial_state))]
        torch.testing.assert_close(seen, torch.cat([state, expected, *where], -1))


def test_value_loss_uses_the_first_transition_of_each_group() -> None:
    method, batch = make_method("cta"), image_batch(group_size=2)
    value = goal_value(method._state(batch.first(batch.state)), method.psi(batch.goal))
    next_value = goal_value(method._state(batch.next_state), method.psi(batch.goal))
    expected, _ = method.value_loss(value, next_value, batch.reward, batch.terminal)
    assert method.compute_loss(batch).loss.item() == pytest.approx(expected.item(), rel=1e-4)


def test_loss_of_one_batch_can_be_minimised() -> None:
    """If every transition is terminal, the value is the reward, and the optimal loss is 0."""
    batch = image_batch()
    batch = replace(batch, terminal=torch.ones_like(batch.terminal), reward=(torch.arange(8) % 2).float())
    losses = fit(make_method("cta"), batch, 80)
    assert losses[0] > 0.1
    assert losses[-1] < 0.005


def test_settings_are_checked() -> None:
    for name in ("value_discount", "expectile", "tau"):
        settings: dict[str, Any] = {name: 1.5}
        with pytest.raises(GCBError, match=f"{name} is 1.5"):
            make_method("cta", **settings)
