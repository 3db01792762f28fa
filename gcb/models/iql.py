"""Implicit Q-learning (Kostrikov et al. 2021) on feature vectors. It has never heard of images.

Rewards are 1 where the goal is reached and 0 elsewhere, and reaching ends the episode: values are discounted
probabilities of success and lie in [0, 1].
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gcb.errors import GCBError
from gcb.models.networks import mlp
from gcb.utils.dataclass_io import check_fields


@dataclass(frozen=True)
class IQLConfig:
    """Hyperparameters; the defaults are the paper's table and its release."""

    discount: float = 0.99
    """γ."""
    expectile: float = 0.7
    """τ of the value loss; .5 is the mean, towards 1 the best action seen."""
    temperature: float = 1.0
    """β in exp(A / β): the smaller, the greedier; inf gives every action the same weight (behaviour cloning)."""
    max_weight: float = 100.0
    """Upper limit of exp(A / β), applied before use."""
    tau: float = 0.005
    """How far the target critics move at every step."""
    hidden: int = 256
    """Width of the two hidden layers of actor, critics and value."""
    log_std_min: float = -10.0
    """Lower bound of the policy's log standard deviation."""
    log_std_max: float = 2.0
    """Upper bound of it."""
    fixed_std: float | None = None
    """A constant standard deviation instead of a learned one; 1 makes the actor's loss a weighted squared error."""

    def __post_init__(self) -> None:
        check_fields(self, "iql.", discount="(0, 1)", expectile="(0, 1)", tau="(0, 1]", temperature="(0, inf]")
        check_fields(self, "iql.", max_weight="(0, inf]", hidden="[1, inf)", fixed_std="(0, inf)")
        if not self.log_std_min < self.log_std_max:
            raise GCBError(f"iql.log_std_min is {self.log_std_min}; it must be below log_std_max, {self.log_std_max}.")


@dataclass(frozen=True)
class Transition:
    """A batch of transitions as vectors: `inputs` and `next_inputs` are the features of (state, task)."""

    actor_inputs: Tensor
    inputs: Tensor
    next_inputs: Tensor
    action: Tensor
    reward: Tensor
    terminal: Tensor


def expectile_loss(difference: Tensor, expectile: float) -> Tensor:
    """L_τ(u) = |τ - 1(u < 0)| u², averaged: IQL's Equation 5 with u = Q - V."""
    weight = torch.where(difference < 0, 1 - expectile, expectile)
    return (weight * difference.square()).mean()


class IQL(nn.Module):
    """Actor, twin critics with a target, and value, with their three losses."""

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
        """The three losses by name, and figures for the log. Their sum may be minimised in one step: each part's
        gradient stays in its own network (and in the features, where those carry one).
        """
        value_loss, advantage, value = self._value_loss(batch)
        critic_loss = self._critic_loss(batch)
        actor_loss, weight = self._actor_loss(batch, advantage)
        losses = {"value_loss": value_loss, "critic_loss": critic_loss, "actor_loss": actor_loss}
        logs = {"value": value.mean(), "advantage_std": advantage.std(), "weight": weight.mean()}
        return losses, logs

    def _value_loss(self, batch: Transition) -> tuple[Tensor, Tensor, Tensor]:
        """V(s) towards an upper expectile of the target critics' Q(s, a) (IQL's Equation 5)."""
        with torch.no_grad():
            target = self._smallest(self.targets, batch.inputs, batch.action)
        value = self.value(batch.inputs).squeeze(-1)
        return expectile_loss(target - value, self.config.expectile), (target - value).detach(), value.detach()

    def _critic_loss(self, batch: Transition) -> Tensor:
        """Q(s, a) towards r + γ V(s'), with no future after the goal; a time-out has one (IQL's Equation 6)."""
        with torch.no_grad():
            future = self.value(batch.next_inputs).squeeze(-1)
            target = batch.reward + self.config.discount * (~batch.terminal) * future
        together = torch.cat([batch.inputs, batch.action], dim=-1)
        return torch.stack([(critic(together).squeeze(-1) - target).square().mean() for critic in self.critics]).sum()

    def _actor_loss(self, batch: Transition, advantage: Tensor) -> tuple[Tensor, Tensor]:
        """Likelihood of the dataset's actions, weighted by min(exp(A / β), limit) (IQL's Equation 7)."""
        weight = (advantage / self.config.temperature).exp().clamp(max=self.config.max_weight)
        return -(weight * self.actor.log_likelihood(batch.actor_inputs, batch.action)).mean(), weight

    def after_step(self) -> None:
        """Move the target critics a little towards the critics."""
        with torch.no_grad():
            for target, source in zip(self.targets.parameters(), self.critics.parameters(), strict=True):
                target.lerp_(source, self.config.tau)

    def _smallest(self, critics: nn.ModuleList, inputs: Tensor, action: Tensor) -> Tensor:
        together = torch.cat([inputs, action], dim=-1)
        return torch.minimum(*(critic(together).squeeze(-1) for critic in critics))


class Actor(nn.Module):
    """A Gaussian policy with independent dimensions and a spread that does not depend on the state."""

    def __init__(self, config: IQLConfig, inputs: int, actions: int):
        super().__init__()
        self._fixed = config.fixed_std
        self._bounds = (config.log_std_min, config.log_std_max)
        self.mean = mlp([inputs, config.hidden, config.hidden, actions])
        self.log_std = nn.Parameter(torch.zeros(actions), requires_grad=config.fixed_std is None)

    def forward(self, inputs: Tensor) -> Tensor:
        """The mean action, cut to [-1, 1]."""
        return self.mean(inputs).clamp(-1.0, 1.0)

    def sample(self, inputs: Tensor, noise: Tensor) -> Tensor:
        """Actions of the policy itself, cut to [-1, 1]; `noise` is standard normal, or less for a calmer policy."""
        return (self.mean(inputs) + self._log_std().exp() * noise).clamp(-1.0, 1.0)

    def log_likelihood(self, inputs: Tensor, action: Tensor) -> Tensor:
        """log π(a | inputs) without its constant."""
        log_std = self._log_std()
        standardised = (action - self.mean(inputs)) / log_std.exp()
        return -(0.5 * standardised.square() + log_std).sum(-1)

    def _log_std(self) -> Tensor:
        if self._fixed is None:
            return self.log_std.clamp(*self._bounds)
        return torch.full_like(self.log_std, math.log(self._fixed))
