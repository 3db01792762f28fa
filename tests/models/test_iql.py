"""IQL's losses against values worked out by hand, and the networks that each of them trains."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gcb.errors import GCBError
from gcb.models.iql import IQL, Actor, IQLConfig, Policy, Transition
from gcb.models.losses import expectile_loss


class Lookup(nn.Module):
    """A network that returns one column of its input, times a weight."""

    def __init__(self, column: int, weight: float = 1.0) -> None:
        super().__init__()
        self.column, self.weight = column, nn.Parameter(torch.tensor(weight))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.weight * inputs[:, self.column, None]


def lookup_iql(config: IQLConfig | None = None, *others: str) -> IQL:
    """Q₁(s, a) = s₁, Q₂(s, a) = s₂, targets Q̄₁ = 2 s₁, Q̄₂ = 2 s₂; of each policy V(s) = mean action = s₀, log std = 0.

    The first policy is "goal"; the logit of whether its task is done is s₁. Another policy's inputs are separate, and
    its logit is -s₁.
    """
    iql = IQL(config or IQLConfig(), dict.fromkeys(["goal", *others], 3), actions=1, history={})
    for name in ("goal", *others):
        policy: Any = iql.policy(name)
        policy.value, policy.actor.mean = Lookup(0), Lookup(0)
        policy.done = Lookup(1, 1.0 if name == "goal" else -1.0)
    iql.critics = nn.ModuleList([Lookup(1), Lookup(2)])
    iql.targets = nn.ModuleList([Lookup(1, 2.0), Lookup(2, 2.0)]).requires_grad_(False)
    return iql


def transition(
    inputs: list, next_inputs: list, action: list, reward: list, terminal: list, final: list | None = None
) -> Transition:
    """Return transitions for the policy "goal"."""
    rows = {"goal": torch.tensor(inputs, dtype=torch.float32)}
    return Transition(
        actor_inputs=rows,
        critic_inputs=rows,
        next_inputs={"goal": torch.tensor(next_inputs, dtype=torch.float32)},
        action=torch.tensor(action, dtype=torch.float32)[:, None],
        final=torch.tensor(final or [False] * len(action)),
        reward=torch.tensor(reward, dtype=torch.float32),
        terminal=torch.tensor(terminal),
    )


def with_analogy(batch: Transition, inputs: list, next_inputs: list) -> Transition:
    """Add inputs of the policy "analogy"."""
    rows, after = (torch.tensor(values, dtype=torch.float32) for values in (inputs, next_inputs))
    return replace(
        batch,
        actor_inputs={**batch.actor_inputs, "analogy": rows},
        critic_inputs={**batch.critic_inputs, "analogy": rows},
        next_inputs={**batch.next_inputs, "analogy": after},
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


def test_critic_loss_uses_the_first_row_of_each_group() -> None:
    groups = transition([[0, 1, 2], [9, 9, 9], [0, 3, 1], [9, 9, 9]], [[0.5, 0, 0]] * 2, [0] * 4, [1, 0], [True, False])
    alone = transition([[0, 1, 2], [0, 3, 1]], [[0.5, 0, 0]] * 2, [0] * 2, [1, 0], [True, False])
    # Targets 1 and .99 · .5; Q₁ = 1 and 3, Q₂ = 2 and 1.
    second = 0.99 * 0.5
    expected = ((1 - 1) ** 2 + (3 - second) ** 2) / 2 + ((2 - 1) ** 2 + (1 - second) ** 2) / 2
    for batch in (groups, alone):
        assert lookup_iql().critic_loss(batch).item() == pytest.approx(expected)
    # Values and actions are learned from all rows: Q̄ = 2 · 9 and V = 9 in the others.
    value_loss = lookup_iql().losses(groups)[0]["value_loss"].item()
    assert value_loss == pytest.approx(0.7 * (2**2 + 9**2 + 2**2 + 9**2) / 4)


def test_values_of_all_policies_regress_the_same_q() -> None:
    batch = transition([[0.5, 1, 2], [3, 1, 0.5]], [[0, 0, 0]] * 2, [0, 0], [0, 0], [False, False])
    both = with_analogy(batch, [[1, 7, 7], [0.25, 7, 7]], [[0, 0, 0]] * 2)
    losses, logs = lookup_iql(None, "analogy").losses(both)
    # Q̄ = 2 and 1 by the goal's inputs. By goal V = .5 and 3, by analogy V = 1 and .25.
    by_goal, by_analogy = (0.7 * 1.5**2 + 0.3 * 2**2) / 2, 0.7 * (1**2 + 0.75**2) / 2
    assert losses["value_loss"].item() == pytest.approx(by_goal + by_analogy)
    assert losses["critic_loss"].item() == lookup_iql().losses(batch)[0]["critic_loss"].item()
    assert logs["value"].item() == pytest.approx(1.75)


def test_the_same_advantages_weight_the_actions_of_all_policies() -> None:
    # A = 2 min(s₁, s₂) - s₀ = 1 and -1 by the goal's inputs.
    batch = transition([[1, 1, 1], [1, 0, 0]], [[0, 0, 0]] * 2, [0, 3], [0, 0], [False, False])
    both = with_analogy(batch, [[2, 9, 9], [0, 9, 9]], [[0, 0, 0]] * 2)
    losses, logs = lookup_iql(IQLConfig(distillation=0.0), "analogy").losses(both)
    # -log π by goal: ½ · 1² and ½ · 2²; by analogy, with means 2 and 0: ½ · 2² and ½ · 3².
    expected = (math.e * (0.5 + 2) + math.exp(-1) * (2 + 4.5)) / 2
    assert losses["actor_loss"].item() == pytest.approx(expected)
    assert logs["weight"].item() == pytest.approx((math.e + math.exp(-1)) / 2)


def test_the_policy_for_analogies_imitates_the_one_for_goals() -> None:
    batch = transition([[1, 0.5, 0.5], [1, 0.5, 0.5]], [[0, 0, 0]] * 2, [0, 3], [0, 0], [False, False])  # A = 0
    both = with_analogy(batch, [[2, 9, 9], [0, 9, 9]], [[0, 0, 0]] * 2)
    iql = lookup_iql(IQLConfig(distillation=0.25), "analogy")
    by_goal: Any = iql.policy("goal").actor
    by_analogy: Any = iql.policy("analogy").actor
    by_analogy.log_std.data.fill_(math.log(2.0))
    loss, _ = iql.actor_loss(both, torch.zeros(2))
    # By goal ½ and 2. By analogy the means are 2 and 0 with σ = 2; the actions are 0 and 3, the other's means 1 and 1.
    data = [0.5 * (2 / 2) ** 2 + math.log(2), 0.5 * (3 / 2) ** 2 + math.log(2)]
    teacher = [0.5 * (1 / 2) ** 2, 0.5 * (1 / 2) ** 2]
    imitation = sum(0.75 * own + 0.25 * other for own, other in zip(data, teacher, strict=True)) / 2
    assert loss.item() == pytest.approx((0.5 + 2) / 2 + imitation)
    loss.backward()
    # The one that is imitated learns from the data alone, as its mean times s₀ = 1: -(0 - 1) and -(3 - 1).
    assert by_goal.mean.weight.grad.item() == pytest.approx((1 - 2) / 2)
    # The standard deviation is learned from the data alone: 1 - (error / σ)², of 2 and 3.
    assert by_analogy.log_std.grad.item() == pytest.approx(0.75 * (1 - 1 + 1 - 2.25) / 2)


def test_done_loss_by_hand() -> None:
    """Cross-entropy of the logits x in all states: log(1 + e⁻ˣ) if the state is final, else log(1 + eˣ)."""
    final = [False, True, False, False]
    inputs = [[0, 2, 0], [0, 2, 0], [0, -1, 0], [0, 0, 0]]
    batch = transition(inputs, [[9, 9, 9]] * 2, [0] * 4, [1, 0], [True, False], final)
    terms = [math.exp(2), math.exp(-2), math.exp(-1), 1]
    by_goal = sum(math.log(1 + term) for term in terms) / 4
    assert lookup_iql().losses(batch)[0]["done_loss"].item() == pytest.approx(by_goal)
    both = with_analogy(batch, [[0, 3, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]], [[9, 9, 9]] * 2)
    by_analogy = (math.log(1 + math.exp(-3)) + 3 * math.log(2)) / 4
    iql = lookup_iql(IQLConfig(distillation=0.0), "analogy")
    assert iql.done_loss(both).item() == pytest.approx(by_goal + by_analogy)


def test_the_policy_for_analogies_imitates_the_estimate_of_done() -> None:
    batch = transition([[0, 2, 0], [0, 0, 0]], [[9, 9, 9]], [0] * 2, [1], [True], [False, True])
    both = with_analogy(batch, [[0, 3, 0], [0, -1, 0]], [[9, 9, 9]])
    iql = lookup_iql(IQLConfig(distillation=0.25), "analogy")
    by_goal: Any = iql.policy("goal").done
    loss = iql.done_loss(both)
    # By goal the logits are 2 and 0. By analogy they are -3 and 1, and the labels 0 and 1 move towards σ(2) and σ(0).
    goal = (math.log(1 + math.exp(2)) + math.log(2)) / 2
    first, second = 0.25 / (1 + math.exp(-2)), 0.75 + 0.25 / 2
    cross_entropies = [math.log(1 + math.exp(-3)) + 3 * first, math.log(1 + math.exp(1)) - second]
    assert loss.item() == pytest.approx(goal + sum(cross_entropies) / 2)
    loss.backward()
    # The one that is imitated learns from the data alone: (σ(x) - label) x, of x = 2 and 0.
    assert by_goal.weight.grad.item() == pytest.approx(2 / (1 + math.exp(-2)) / 2)


def test_final_states_have_neither_an_action_nor_a_value() -> None:
    rows, final = [[0.5, 1, 2], [7, 7, 7], [3, 1, 0.5], [8, 8, 8]], [False, True, False, True]
    batch = transition(rows, [[0, 0, 0]] * 2, [0, 9, 0, 9], [0, 0], [False, False], final)
    both = with_analogy(batch, [[1, 7, 7], [6, 6, 6], [0.25, 7, 7], [6, 6, 6]], [[0, 0, 0]] * 2)
    iql = lookup_iql(IQLConfig(temperature=math.inf), "analogy")
    losses, logs = iql.losses(both)
    # As in the tests above, with two rows more in the mean; by analogy only the first row of each group counts.
    by_goal, by_analogy = 0.7 * 1.5**2 + 0.3 * 2**2, 0.7 * (1**2 + 0.75**2)
    assert losses["value_loss"].item() == pytest.approx(by_goal / 4 + by_analogy / 2)
    data, imitation = 0.5 * (0.5**2 + 3**2), 0.5 * (0.5 * (1**2 + 0.25**2) + 0.5 * (0.5**2 + 2.75**2))
    assert losses["actor_loss"].item() == pytest.approx((data + imitation) / 4)
    assert logs["weight"].item() == 1.0
    losses["actor_loss"].backward()
    clean = replace(both, action=both.action * 0.0)  # the action that stands in changes nothing
    assert iql.losses(clean)[0]["actor_loss"].item() == pytest.approx(losses["actor_loss"].item())


def test_a_single_policy_serves_every_way_of_giving_a_task() -> None:
    only = IQL(IQLConfig(hidden=4), {"analogy": 2}, actions=1, history={})
    assert isinstance(only.policy("goal"), Policy)
    assert only.policy("goal") is only.policy("analogy")
    both = IQL(IQLConfig(hidden=4), {"goal": 2, "analogy": 5}, actions=1, history={})
    assert both.policy("goal") is not both.policy("analogy")
    assert both.policy("analogy").actor(torch.zeros(3, 5)).shape == (3, 1)


def test_the_actor_does_not_see_what_was_before() -> None:
    torch.manual_seed(0)
    policy = IQL(IQLConfig(hidden=8), {"goal": 3, "analogy": 5}, actions=2, history={"analogy": 2}).policy("analogy")
    inputs, noise = torch.randn(4, 5), torch.randn(4, 2)
    other = torch.cat([inputs[:, :3], torch.randn(4, 2)], -1)
    assert torch.equal(policy.actor(inputs), policy.actor(other))
    assert torch.equal(policy.actor.sample(inputs, noise), policy.actor.sample(other, noise))
    assert torch.equal(policy.actor.mean_action(inputs), policy.actor.mean(inputs[:, :3]))
    for network in (policy.value, policy.done):
        assert not torch.allclose(network(inputs), network(other))


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
    torch.testing.assert_close(actor.log_likelihood(actor.mean(inputs), action), expected)


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
    mean = wide.mean(action)
    torch.testing.assert_close(wide.log_likelihood(mean, action), -0.5 * (action - mean).square()[:, 0])
    fixed = Actor(IQLConfig(hidden=8, fixed_std=0.5), inputs=1, actions=1)
    mean = fixed.mean(action)
    expected = -0.5 * (action - mean).square()[:, 0] / 0.25
    torch.testing.assert_close(fixed.log_likelihood(mean, action), expected - math.log(0.5))
    torch.testing.assert_close(fixed.scaled_error(mean, action), -expected)
    assert not fixed.log_std.requires_grad


def test_actions_are_clipped() -> None:
    actor = Actor(IQLConfig(hidden=8), inputs=2, actions=5)
    actions = actor(1000 * torch.randn(50, 2))
    assert actions.abs().max() == 1.0


def test_target_critics_follow_at_rate_tau() -> None:
    iql = IQL(IQLConfig(hidden=4, tau=0.25), {"goal": 2}, actions=1, history={})
    before = [parameter.clone() for parameter in iql.targets.parameters()]
    for parameter in iql.critics.parameters():
        parameter.data += 1.0
    iql.after_step()
    for old, new in zip(before, iql.targets.parameters(), strict=True):
        torch.testing.assert_close(new, old + 0.25)


@pytest.mark.parametrize(
    ("loss", "network", "reached"),
    [
        ("value_loss", "value", {("critic_inputs", "goal"), ("critic_inputs", "analogy")}),
        ("critic_loss", "critics", {("critic_inputs", "goal")}),
        ("actor_loss", "actor", {("actor_inputs", "goal"), ("actor_inputs", "analogy")}),
        ("done_loss", "done", {("actor_inputs", "goal"), ("actor_inputs", "analogy")}),
    ],
)
def test_each_loss_trains_its_own_networks(loss: str, network: str, reached: set[tuple[str, str]]) -> None:
    sizes = {"goal": 3, "analogy": 5}
    iql = IQL(IQLConfig(hidden=8), sizes, actions=2, history={"analogy": 2})
    given = {
        field: {policy: torch.randn(rows, size, requires_grad=True) for policy, size in sizes.items()}
        for field, rows in (("actor_inputs", 8), ("critic_inputs", 8), ("next_inputs", 4))
    }
    outcome: dict[str, Any] = {"final": torch.arange(8) == 3, "reward": torch.rand(4), "terminal": torch.rand(4) > 0.5}
    batch = Transition(**given, action=torch.randn(8, 2), **outcome)
    iql.losses(batch)[0][loss].backward()
    trained = {name for name, weight in iql.named_parameters() if weight.grad is not None}
    own = [f"policies.{policy}.{network}." for policy in sizes] if network != "critics" else ["critics."]
    assert trained == {name for name in dict(iql.named_parameters()) if name.startswith(tuple(own))}
    tensors = {(field, policy): tensor for field, by in given.items() for policy, tensor in by.items()}
    assert {key for key, tensor in tensors.items() if tensor.grad is not None} == reached


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("discount", 1.0),
        ("expectile", 0.0),
        ("tau", 1.5),
        ("temperature", 0.0),
        ("max_weight", -1.0),
        ("distillation", 1.0),
        ("hidden", 0),
        ("log_std_min", 3.0),
        ("fixed_std", 0.0),
    ],
)
def test_settings_are_checked(field: str, value: float) -> None:
    with pytest.raises(GCBError, match=rf"iql\.{field} .*{value:g}"):
        replace(IQLConfig(), **{field: value})
