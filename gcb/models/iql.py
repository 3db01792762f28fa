"""Implicit Q-learning (IQL, Kostrikov et al. 2021) on feature vectors.

Rewards are 1 where the goal is reached and 0 elsewhere, and reaching it ends the episode: values are discounted
probabilities of success and lie in [0, 1].
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from gcb.models.config import IQLConfig
from gcb.models.losses import expectile_loss
from gcb.models.networks import mlp, soft_update


@dataclass(frozen=True)
class Transition:
    """A batch of transitions as vectors: B rows in G groups of equal size (see `gcb.data.Batch`).

    The inputs hold the features of state and task, by policy: there is one policy for each way of giving a task.
    """

    actor_inputs: Mapping[str, Tensor]
    """(B, inputs)."""
    critic_inputs: Mapping[str, Tensor]
    """(B, inputs): the same for values and critics."""
    next_inputs: Mapping[str, Tensor]
    """(G, inputs): at the next state of each group's first transition."""
    action: Tensor
    """(B, actions)."""
    final: Tensor
    """(B,) bool: the task is done in this state, and there is no action; never in the first row of a group."""
    reward: Tensor
    """(G,)."""
    terminal: Tensor
    """(G,)."""

    def first(self, rows: Tensor) -> Tensor:
        """Return the first row of each group."""
        return rows[:: len(rows) // len(self.reward)]


class IQL(nn.Module):
    """Policies, and twin critics with target networks, with their losses.

    The critics see the inputs of the first policy; the advantages weight the actions of all policies alike, because the
    value of an action does not depend on how the task was given.
    """

    def __init__(self, config: IQLConfig, inputs: Mapping[str, int], actions: int, history: Mapping[str, int]):
        """`inputs` is the number of inputs of each policy; its actor does not see the last `history` of them."""
        super().__init__()
        self.config, width = config, config.hidden
        self.policies = nn.ModuleDict(
            {name: Policy(config, size, actions, history.get(name, 0)) for name, size in inputs.items()}
        )
        self._critic_of = next(iter(inputs))
        sizes = [inputs[self._critic_of] + actions, width, width, 1]
        self.critics = nn.ModuleList(mlp(sizes) for _ in range(2))
        self.targets = nn.ModuleList(mlp(sizes) for _ in range(2))
        self.targets.load_state_dict(self.critics.state_dict())
        self.targets.requires_grad_(False)

    def policy(self, name: str) -> "Policy":
        """Return a policy by name; if there is only one, it serves every way of giving a task."""
        policy = self.policies[name if name in self.policies else self._critic_of]
        assert isinstance(policy, Policy)
        return policy

    def losses(self, batch: Transition) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return the losses by name, and metrics to log.

        Their sum can be minimised in one step: each loss has gradients in its own network only (and in the features,
        where these carry one).
        """
        value_loss, value, advantage = self.value_loss(batch)
        actor_loss, weight = self.actor_loss(batch, advantage)
        losses = {
            "value_loss": value_loss,
            "critic_loss": self.critic_loss(batch),
            "actor_loss": actor_loss,
            "done_loss": self.done_loss(batch),
        }
        logs = {"value": value.mean(), "advantage_std": advantage.std(), "weight": weight.mean()}
        return losses, logs

    def value_loss(self, batch: Transition) -> tuple[Tensor, Tensor, Tensor]:
        """IQL's Eq. 5: V(s) regresses an upper expectile of the target critics' Q(s, a). Also returns V and Q - V.

        The values of all policies regress the same Q. The advantages need that of the first policy only: the others
        are trained on the first row of each group.
        """
        with torch.no_grad():
            inputs = torch.cat([batch.critic_inputs[self._critic_of], batch.action], dim=-1)
            target = torch.minimum(*(critic(inputs).squeeze(-1) for critic in self.targets))
        losses, value, advantage = [], target, target
        for name, inputs in batch.critic_inputs.items():
            if name == self._critic_of:
                value = self.policy(name).value(inputs).squeeze(-1)
                # Final states have no action, and so no Q: their difference counts as 0.
                difference = advantage = (target - value).masked_fill(batch.final, 0.0)
            else:
                difference = batch.first(target) - self.policy(name).value(batch.first(inputs)).squeeze(-1)
            losses.append(expectile_loss(difference, self.config.expectile))
        return torch.stack(losses).sum(), value.detach(), advantage.detach()

    def critic_loss(self, batch: Transition) -> Tensor:
        """IQL's Eq. 6: both Q(s, a) regress r + γ V(s'); a terminal transition has no V(s'), a time-out has one."""
        with torch.no_grad():
            next_value = self.policy(self._critic_of).value(batch.next_inputs[self._critic_of]).squeeze(-1)
            target = batch.reward + self.config.discount * (~batch.terminal) * next_value
        inputs = torch.cat([batch.first(batch.critic_inputs[self._critic_of]), batch.first(batch.action)], dim=-1)
        return torch.stack([(critic(inputs).squeeze(-1) - target).square().mean() for critic in self.critics]).sum()

    def actor_loss(self, batch: Transition, advantage: Tensor) -> tuple[Tensor, Tensor]:
        """IQL's Eq. 7: -log π(a | s), weighted by min(exp(A / β), max_weight). Also returns the weights.

        The first policy learns from the data; the others learn in part from the first (`distillation`).
        """
        weight = (advantage / self.config.temperature).exp().clamp(max=self.config.max_weight)
        share, teacher, losses = self.config.distillation, None, []
        for name, inputs in batch.actor_inputs.items():
            actor = self.policy(name).actor
            mean = actor.mean_action(inputs)
            loss = -actor.log_likelihood(mean, batch.action)
            if teacher is not None and share:
                loss = (1 - share) * loss + share * actor.scaled_error(mean, teacher)
            teacher = mean.detach() if teacher is None else teacher
            losses.append(loss)
        return (weight * torch.stack(losses).sum(0).masked_fill(batch.final, 0.0)).mean(), weight

    def done_loss(self, batch: Transition) -> Tensor:
        """Binary cross-entropy of whether the state is final, for each policy.

        The first policy learns from the data; the others learn in part from its estimates (`distillation`), which are
        more informative than the labels about the states just before the last one.
        """
        share, label, losses = self.config.distillation, batch.final.float(), []
        for name, inputs in batch.actor_inputs.items():
            logit = self.policy(name).done(inputs).squeeze(-1)
            losses.append(functional.binary_cross_entropy_with_logits(logit, label))
            if len(losses) == 1:
                label = (1 - share) * label + share * logit.detach().sigmoid()
        return torch.stack(losses).sum()

    def after_step(self) -> None:
        """Update the target critics."""
        soft_update(self.targets, self.critics, self.config.tau)


class Policy(nn.Module):
    """The networks of one policy: an actor, the value V, and the logit of whether the task is done.

    The last `history` inputs describe the initial state. Whether the task is done depends on what has changed since
    then; what to do next follows from the current state, so the actor does not see them.
    """

    def __init__(self, config: IQLConfig, inputs: int, actions: int, history: int = 0):
        super().__init__()
        width = config.hidden
        self.actor = Actor(config, inputs - history, actions)
        self.value = mlp([inputs, width, width, 1])
        self.done = mlp([inputs, width, 1])


class Actor(nn.Module):
    """A Gaussian policy with independent dimensions and a standard deviation that does not depend on the state."""

    def __init__(self, config: IQLConfig, inputs: int, actions: int):
        super().__init__()
        self._fixed_std, self._inputs = config.fixed_std, inputs
        self._bounds = (config.log_std_min, config.log_std_max)
        self.mean = mlp([inputs, config.hidden, config.hidden, actions])
        self.log_std = nn.Parameter(torch.zeros(actions), requires_grad=config.fixed_std is None)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the mean action, clipped to [-1, 1]."""
        return self.mean_action(inputs).clamp(-1.0, 1.0)

    def mean_action(self, inputs: Tensor) -> Tensor:
        """Return the mean action; the actor sees only the first of the policy's inputs."""
        return self.mean(inputs[:, : self._inputs])

    def sample(self, inputs: Tensor, noise: Tensor) -> Tensor:
        """Return actions sampled from the policy, clipped to [-1, 1]; `noise` is standard normal, possibly scaled."""
        return (self.mean_action(inputs) + self._log_std().exp() * noise).clamp(-1.0, 1.0)

    def log_likelihood(self, mean: Tensor, action: Tensor) -> Tensor:
        """Return log π(a | s) without its constant, given the policy's mean action in s."""
        log_std = self._log_std()
        return -(0.5 * ((action - mean) / log_std.exp()).square() + log_std).sum(-1)

    def scaled_error(self, mean: Tensor, target: Tensor) -> Tensor:
        """Return half the squared distance of the policy's mean action to a target, in standard deviations."""
        return 0.5 * ((target - mean) / self._log_std().detach().exp()).square().sum(-1)

    def _log_std(self) -> Tensor:
        if self._fixed_std is None:
            return self.log_std.clamp(*self._bounds)
        return torch.full_like(self.log_std, math.log(self._fixed_std))
