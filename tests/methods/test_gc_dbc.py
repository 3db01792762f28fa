"""GC-DBC: its loss by hand, its target network, and that the loss can be minimised."""

from typing import Any

import pytest
import torch
from helpers.batches import VECTORS, encoder_gradient, fit, image_batch, make_method, vector_batch
from torch import Tensor, nn

from gcb.data import Batch
from gcb.errors import GCBError
from gcb.runs.config import make_config


class Difference(nn.Module):
    """φ(s, g) = the first two numbers of g - s."""

    def forward(self, state: Tensor, goal: Tensor) -> Tensor:
        return (goal - state)[:, :2]


class Constant(nn.Module):
    """A decoder with a constant output."""

    def __init__(self, *values: float) -> None:
        super().__init__()
        self.values = torch.tensor(values)

    def forward(self, phi: Tensor) -> Tensor:
        return self.values.expand(len(phi), -1)


@pytest.mark.parametrize("group_size", [1, 2])
def test_loss_by_hand(monkeypatch: pytest.MonkeyPatch, group_size: int) -> None:
    settings = {"metric_discount": 0.5, "scale_reward": False, "tau": None, "phi_weight": 2.0, "size": 2}
    method = make_method("gc_dbc", VECTORS, **settings)
    method._phi, method.action_decoder = Difference(), Constant(0.5, 0.0)
    method.reward_decoder.layers = Constant(0.25)
    goal, state, next_state = torch.zeros(2, 7), torch.zeros(2, 7), torch.zeros(2, 7)
    goal[1, :2] = torch.tensor([3.0, 5.0])  # φ is (0, 0) and (3, 5), at distance 4 in mean_l1
    next_state[1, :2] = torch.tensor([1.0, 1.0])  # then (0, 0) and (2, 4), at 3
    rows, action = torch.full((2 * group_size, 7), 9.0), torch.full((2 * group_size, 2), 9.0)
    rows[::group_size], action[::group_size] = state, torch.tensor([[0.5, 0.0], [-0.5, 0.0]])
    reward, final = torch.tensor([0.0, 1.0]), torch.zeros(2 * group_size, dtype=torch.bool)
    monkeypatch.setattr(torch, "randperm", lambda rows, device=None: torch.tensor([1, 0]))
    output = method.compute_loss(Batch(rows, next_state, goal, action, final, reward, reward.bool()))
    metric = (4 - 1 - 0.5 * 3) ** 2
    decoded_reward, decoded_action = (0.25**2 + 0.75**2) / 2, (0 + 0 + 1 + 0) / 4
    assert output.loss.item() == pytest.approx(2 * metric + decoded_reward + decoded_action)
    assert output.logs["phi_loss"].item() == pytest.approx(2 * metric)


def test_target_follows_without_gradient() -> None:
    method, batch = make_method("gc_dbc", tau=0.5, rl_gradient="none"), image_batch()
    assert encoder_gradient(method, method.compute_loss(batch).actor_inputs["goal"]) == 0
    target, source = next(method._target.parameters()), next(method._phi.parameters())
    before = target.clone()
    source.data += 1
    method.after_step()
    torch.testing.assert_close(target, before + 0.5)
    assert not target.requires_grad
    by_goal = method.goal_inputs(batch.next_state, batch.goal)  # the policy sees φ itself
    torch.testing.assert_close(method.compute_loss(batch).next_inputs["goal"], by_goal)


def test_loss_of_one_batch_can_be_minimised() -> None:
    """The optimum is 0: the metric of the batch is exact, and rewards and actions are decoded."""
    method = make_method("gc_dbc", VECTORS, tau=None)
    losses = fit(method, vector_batch(), 150)
    assert losses[0] > 0.3
    assert max(losses[-5:]) < 0.02


def test_no_action_decoder_without_policy_distance() -> None:
    assert make_method("gc_dbc", policy_distance_weight=0.0).action_decoder is None


def test_paper_preset_has_the_papers_metric_and_the_critics_gradient() -> None:
    config = make_config("gc_dbc", "paper").method_config
    assert (config.left_norm, config.right_norm, config.metric_discount, config.policy_distance_weight) == (
        "l1",
        "l2",
        0.99,
        0.0,
    )
    assert (config.encoder, config.output_norm, config.tau) == ("paper", True, None)
    assert (config.learning_rate, config.weight_decay, config.rl_gradient) == (1e-4, 1e-3, "critic")


def test_it_has_no_state_embedding() -> None:
    with pytest.raises(NotImplementedError, match="gc_dbc has no state embedding ψ"):
        make_method("gc_dbc").psi(image_batch().state)


def test_settings_are_checked() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"metric_discount": 0.0}, "metric_discount is 0.0"),
        ({"tau": 2.0}, "tau is 2.0"),
        ({"policy_distance_weight": -1.0}, "policy_distance_weight is -1.0"),
    ]
    for settings, message in wrong:
        with pytest.raises(GCBError, match=message):
            make_method("gc_dbc", **settings)
