"""Implicit Q-learning (IQL, Kostrikov et al. 2021) on feature vectors.

Rewards are 1 where the goal is reached and 0 elsewhere, and reaching it ends the episode: values are discounted
probabilities of success and lie in [0, 1].
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gcb.errors import GCBError
from gcb.models.losses import expectile_loss
from gcb.models.networks import mlp, soft_update
from gcb.utils.dataclass_io import check_fields


@dataclass(frozen=True)
class IQLConfig:
    """Hyperparameters of IQL; the defaults are those of the GCB paper's table and its release."""

    discount: float = 0.99
    """Discount factor γ."""
    expectile: float = 0.7
    """τ of the value loss: .5 is the mean; towards 1 it is the value of the best action in the data."""
    temperature: float = 1.0
    """β in exp(A / β): the smaller, the greedier; inf gives all actions the same weight (behaviour cloning)."""
    max_weight: float = 100.0
    """Upper bound of the weight exp(A / β)."""
    tau: float = 0.005
    """Rate at which the target critics follow the critics, per step."""
    hidden: int = 256
    """Width of the two hidden layers of actor, critics and value."""
    log_std_min: float = -10.0
    """Lower bound of the policy's log standard deviation."""
    log_std_max: float = 2.0
    """Upper bound of the policy's log standard deviation."""
    fixed_std: float | None = None
    """A constant standard deviation instead of a learned one; 1 makes the actor's loss a weighted squared error."""

    def __post_init__(self) -> None:
        check_fields(self, "iql.", discount="(0, 1)", expectile="(0, 1)", tau="(0, 1]", temperature="(0, inf]")
        check_fields(self, "iql.", max_weight="(0, inf]", hidden="[1, inf)", fixed_std="(0, inf)")
        if not self.log_std_min < self.log_std_max:
            raise GCBError(f"iql.log_std_min is {self.log_std_min}; it must be below log_std_max, {self.log_std_max}.")


@dataclass(frozen=True)
class Transition:
    """A batch of transitions as vectors: the inputs are features of (state, task), side by side."""

    actor_inputs: Tensor
    inputs: Tensor
    next_inputs: Tensor
    action: Tensor
    reward: Tensor
    terminal: Tensor


class IQL(nn.Module):
    """Actor, twin critics with target networks, and value, with their three losses."""

    def __init__(self, config: IQLConfig, inputs: int, actions: int):
        super().__init__()
        self.config = config
        width = config.hidden
        self.value = mlp([inputs, width, width, 1])
        self.critics = nn.ModuleList(mlp([inputs + actions, width, width, 1]) for _ in range(2))
        self.targets = nn.ModuleList(mlp([inputs + actions, width, width, 1]) for _ in range(2))
        self.targets.load_state_dict(self.critics.state_dict())
        self.targets.requires_grad_(False)
        self.actor = Actor(config, inputs, actions)

    def losses(self, batch: Transition) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return the three losses by name, and metrics to log.

        Their sum can be minimised in one step: each loss has gradients in its own network only (and in the features,
        where these carry one).
        """
        value_loss, value, advantage = self.value_loss(batch)
        critic_loss = self.critic_loss(batch)
        actor_loss, weight = self.actor_loss(batch, advantage)
        losses = {"value_loss": value_loss, "critic_loss": critic_loss, "actor_loss": actor_loss}
        logs = {"value": value.mean(), "advantage_std": advantage.std(), "weight": weight.mean()}
        return losses, logs

    def value_loss(self, batch: Transition) -> tuple[Tensor, Tensor, Tensor]:
        """IQL's Eq. 5: V(s) regresses an upper expectile of the target critics' Q(s, a). Also returns V and Q - V."""
        with torch.no_grad():
            inputs = torch.cat([batch.inputs, batch.action], dim=-1)
            target = torch.minimum(*(critic(inputs).squeeze(-1) for critic in self.targets))
        value = self.value(batch.inputs).squeeze(-1)
        return expectile_loss(target - value, self.config.expectile), value.detach(), (target - value).detach()

    def critic_loss(self, batch: Transition) -> Tensor:
        """IQL's Eq. 6: both Q(s, a) regress r + γ V(s'); a terminal transition has no V(s'), a time-out has one."""
        with torch.no_grad():
            next_value = self.value(batch.next_inputs).squeeze(-1)
            target = batch.reward + self.config.discount * (~batch.terminal) * next_value
        inputs = torch.cat([batch.inputs, batch.action], dim=-1)
        return torch.stack([(critic(inputs).squeeze(-1) - target).square().mean() for critic in self.critics]).sum()

    def actor_loss(self, batch: Transition, advantage: Tensor) -> tuple[Tensor, Tensor]:
        """IQL's Eq. 7: -log π(a | s), weighted by min(exp(A / β), max_weight). Also returns the weights."""
        weight = (advantage / self.config.temperature).exp().clamp(max=self.config.max_weight)
        return -(weight * self.actor.log_likelihood(batch.actor_inputs, batch.action)).mean(), weight

    def after_step(self) -> None:
        """Update the target critics."""
        soft_update(self.targets, self.critics, self.config.tau)


class Actor(nn.Module):
    """A Gaussian policy with independent dimensions and a standard deviation that does not depend on the state."""

    def __init__(self, config: IQLConfig, inputs: int, actions: int):
        super().__init__()
        self._fixed_std = config.fixed_std
        self._bounds = (config.log_std_min, config.log_std_max)
        self.mean = mlp([inputs, config.hidden, config.hidden, actions])
        self.log_std = nn.Parameter(torch.zeros(actions), requires_grad=config.fixed_std is None)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the mean action, clipped to [-1, 1]."""
        return self.mean(inputs).clamp(-1.0, 1.0)

    def sample(self, inputs: Tensor, noise: Tensor) -> Tensor:
        """Return actions sampled from the policy, clipped to [-1, 1]; `noise` is standard normal, or scaled down."""
        return (self.mean(inputs) + self._log_std().exp() * noise).clamp(-1.0, 1.0)

    def log_likelihood(self, inputs: Tensor, action: Tensor) -> Tensor:
        """Return log π(a | inputs) without its constant."""
        log_std = self._log_std()
        standardised = (action - self.mean(inputs)) / log_std.exp()
        return -(0.5 * standardised.square() + log_std).sum(-1)

    def _log_std(self) -> Tensor:
        if self._fixed_std is None:
            return self.log_std.clamp(*self._bounds)
        return torch.full_like(self.log_std, math.log(self._fixed_std))
