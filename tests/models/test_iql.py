"""IQL's losses against values worked out by hand, and the networks that each of them trains."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from gcb.errors import GCBError
from gcb.models.iql import IQL, Actor, IQLConfig, Transition
from gcb.models.losses import expectile_loss


class Lookup(nn.Module):
    """A network that returns one column of its input, times a weight."""

    def __init__(self, column: int, weight: float = 1.0) -> None:
        super().__init__()
        self.column, self.weight = column, nn.Parameter(torch.tensor(weight))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.weight * inputs[:, self.column, None]


def lookup_iql(config: IQLConfig | None = None) -> IQL:
    """V(s) = s₀, Q₁(s, a) = s₁, Q₂(s, a) = s₂, targets Q̄₁ = 2 s₁, Q̄₂ = 2 s₂, mean action = s₀, log std = 0."""
    iql = IQL(config or IQLConfig(), inputs=3, actions=1)
    iql.value = Lookup(0)  # pyright: ignore[reportAttributeAccessIssue]
    iql.critics = nn.ModuleList([Lookup(1), Lookup(2)])
    iql.targets = nn.ModuleList([Lookup(1, 2.0), Lookup(2, 2.0)]).requires_grad_(False)
    iql.actor.mean = Lookup(0)  # pyright: ignore[reportAttributeAccessIssue]
    return iql


def transition(inputs: list, next_inputs: list, action: list, reward: list, terminal: list) -> Transition:
    rows = torch.tensor(inputs, dtype=torch.float32)
    return Transition(
        actor_inputs=rows,
        inputs=rows,
        next_inputs=torch.tensor(next_inputs, dtype=torch.float32),
        action=torch.tensor(action, dtype=torch.float32)[:, None],
        reward=torch.tensor(reward, dtype=torch.float32),
        terminal=torch.tensor(terminal),
    )


def test_expectile_loss_by_hand() -> None:
    # τ = .7: .7 · 2² above and .3 · 1² below, mean of the two.
    assert expectile_loss(torch.tensor([2.0, -1.0]), 0.7).item() == pytest.approx((0.7 * 4 + 0.3 * 1) / 2)
    # At τ = .5 it is half the mean squared error.
    assert expectile_loss(torch.tensor([2.0, -1.0]), 0.5).item() == pytest.approx(0.5 * (4 + 1) / 2)


def test_expectile_minimises_the_expectile_loss() -> None:
    """For values 0 and 1 the τ-expectile solves τ (1 - v) = (1 - τ) v, so it is τ."""
    value = torch.zeros((), requires_grad=True)
    optimizer = torch.optim.SGD([value], lr=0.5)
    for _ in range(200):
        optimizer.zero_grad()
        expectile_loss(torch.tensor([0.0, 1.0]) - value, 0.7).backward()
        optimizer.step()
    assert value.item() == pytest.approx(0.7, abs=1e-4)


def test_value_loss_uses_the_smaller_target_critic() -> None:
    iql = lookup_iql()
    batch = transition([[0.5, 1, 2], [3, 1, 0.5]], [[0, 0, 0]] * 2, [0, 0], [0, 0], [False, False])
    losses, logs = iql.losses(batch)
    # Q̄ = 2 min(s₁, s₂) = 2 and 1; V = .5 and 3; u = 1.5 and -2.
    assert losses["value_loss"].item() == pytest.approx((0.7 * 1.5**2 + 0.3 * 2**2) / 2)
    assert logs["value"].item() == pytest.approx(1.75)


def test_terminal_transitions_are_not_bootstrapped_but_timeouts_are() -> None:
    iql = lookup_iql()
    batch = transition(
        inputs=[[0, 1, 2], [0, 1, 2], [0, 1, 2]],
        next_inputs=[[0.8, 0, 0]] * 3,
        action=[0, 0, 0],
        reward=[1, 0, 0],
        terminal=[True, False, False],  # goal reached; not reached; not reached at the horizon, a time-out
    )
    losses, _ = iql.losses(batch)
    targets = [1.0, 0.99 * 0.8, 0.99 * 0.8]
    expected = sum((1 - target) ** 2 for target in targets) / 3 + sum((2 - target) ** 2 for target in targets) / 3
    assert losses["critic_loss"].item() == pytest.approx(expected)


def test_advantage_weights_are_clipped() -> None:
    iql = lookup_iql(IQLConfig(temperature=0.5, max_weight=3.0))
    # A = Q̄ - V = 2 min(s₁, s₂) - s₀: 2 - 1 = 1, exp(1 / .5) = 7.4 → 3; and 0 - 1 = -1, exp(-2).
    batch = transition([[1, 1, 1], [1, 0, 0]], [[0, 0, 0]] * 2, [0, 3], [0, 0], [False, False])
    losses, logs = iql.losses(batch)
    # -log π = (a - μ)² / 2 + log σ with μ = s₀ = 1 and σ = 1, without the constant: ½ and 2.
    assert losses["actor_loss"].item() == pytest.approx((3.0 * 0.5 + math.exp(-2) * 2.0) / 2)
    assert logs["weight"].item() == pytest.approx((3.0 + math.exp(-2)) / 2)


def test_infinite_temperature_is_behaviour_cloning() -> None:
    iql = lookup_iql(IQLConfig(temperature=math.inf))
    batch = transition([[1, 5, 5], [1, -5, -5]], [[0, 0, 0]] * 2, [0, 3], [0, 0], [False, False])
    losses, _ = iql.losses(batch)
    assert losses["actor_loss"].item() == pytest.approx((0.5 + 2.0) / 2)


def test_likelihood_is_gaussian() -> None:
    actor = Actor(IQLConfig(hidden=8), inputs=4, actions=3)
    actor.log_std.data = torch.tensor([-1.0, 0.0, 0.5])
    inputs, action = torch.randn(6, 4), torch.randn(6, 3)
    gaussian = torch.distributions.Normal(actor.mean(inputs), actor.log_std.exp())
    expected = gaussian.log_prob(action).sum(-1) + 3 * 0.5 * math.log(2 * math.pi)
    torch.testing.assert_close(actor.log_likelihood(inputs, action), expected)


def test_actions_are_sampled_with_the_policys_std() -> None:
    actor = Actor(IQLConfig(hidden=8), inputs=4, actions=2)
    actor.log_std.data = torch.tensor([math.log(0.25), math.log(0.5)])
    inputs = 0.01 * torch.randn(3, 4)
    noise = torch.tensor([[0.0, 0.0], [1.0, -1.0], [100.0, 0.5]])
    deviation = actor.sample(inputs, noise) - actor(inputs)
    torch.testing.assert_close(deviation[:2], torch.tensor([[0.0, 0.0], [0.25, -0.5]]))
    assert actor.sample(inputs, noise)[2, 0] == 1
    fixed = Actor(IQLConfig(hidden=8, fixed_std=0.1), inputs=4, actions=2)
    torch.testing.assert_close(fixed.sample(inputs, noise)[1] - fixed(inputs)[1], torch.tensor([0.1, -0.1]))


def test_std_is_bounded_or_fixed() -> None:
    action = torch.ones(1, 1)
    wide = Actor(IQLConfig(hidden=8, log_std_max=0.0), inputs=1, actions=1)
    wide.log_std.data.fill_(5.0)
    distance = (action - wide.mean(action)).square()
    torch.testing.assert_close(wide.log_likelihood(action, action), -0.5 * distance[:, 0])
    fixed = Actor(IQLConfig(hidden=8, fixed_std=0.5), inputs=1, actions=1)
    distance = (action - fixed.mean(action)).square() / 0.25
    torch.testing.assert_close(fixed.log_likelihood(action, action), -0.5 * distance[:, 0] - math.log(0.5))
    assert not fixed.log_std.requires_grad


def test_actions_are_clipped() -> None:
    actor = Actor(IQLConfig(hidden=8), inputs=2, actions=5)
    actions = actor(1000 * torch.randn(50, 2))
    assert actions.abs().max() == 1.0


def test_target_critics_follow_at_rate_tau() -> None:
    iql = IQL(IQLConfig(hidden=4, tau=0.25), inputs=2, actions=1)
    before = [parameter.clone() for parameter in iql.targets.parameters()]
    for parameter in iql.critics.parameters():
        parameter.data += 1.0
    iql.after_step()
    for old, new in zip(before, iql.targets.parameters(), strict=True):
        torch.testing.assert_close(new, old + 0.25)


@pytest.mark.parametrize(
    ("loss", "trained"), [("value_loss", {"value"}), ("critic_loss", {"critics"}), ("actor_loss", {"actor"})]
)
def test_each_loss_trains_its_own_network(loss: str, trained: set[str]) -> None:
    iql = IQL(IQLConfig(hidden=8), inputs=3, actions=2)
    inputs = {name: torch.randn(7, 3, requires_grad=True) for name in ("actor_inputs", "inputs", "next_inputs")}
    batch = Transition(**inputs, action=torch.randn(7, 2), reward=torch.rand(7), terminal=torch.rand(7) > 0.5)
    iql.losses(batch)[0][loss].backward()
    with_gradient = {name.split(".")[0] for name, weight in iql.named_parameters() if weight.grad is not None}
    assert with_gradient == trained
    reached = {name for name, tensor in inputs.items() if tensor.grad is not None}
    assert reached == ({"actor_inputs"} if loss == "actor_loss" else {"inputs"})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("discount", 1.0),
        ("expectile", 0.0),
        ("tau", 1.5),
        ("temperature", 0.0),
        ("max_weight", -1.0),
        ("hidden", 0),
        ("log_std_min", 3.0),
        ("fixed_std", 0.0),
    ],
)
def test_settings_are_checked(field: str, value: float) -> None:
    with pytest.raises(GCBError, match=rf"iql\.{field} .*{value:g}"):
        replace(IQLConfig(), **{field: value})
