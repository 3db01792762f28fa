"""Building blocks of several methods: the bottleneck, policies with gradient rules, and InfoNCE."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from gcb.data import Batch
from gcb.methods.base import Method, MethodOutput, Prepared
from gcb.models.networks import mlp


class Bottleneck(nn.Module):
    """A narrow code between the task and the policy; without a width the task passes unchanged.

    The code has a root mean square of 1, so that it cannot escape the noise by growing. (A bounded function such as
    tanh would do that too, but noise drives it into saturation, where it learns nothing more.) `noise` is the standard
    deviation of the Gaussian noise on the code in training.
    """

    def __init__(self, inputs: int, width: int | None, noise: float, hidden: tuple[int, ...] = ()):
        super().__init__()
        self.layers = None if width is None else mlp([inputs, *hidden, width])
        self.size, self.noise = width or inputs, noise if width else 0.0

    def forward(self, task: Tensor) -> Tensor:
        if self.layers is None:
            return task
        return functional.normalize(self.layers(task), dim=-1) * self.size**0.5

    def add_noise(self, code: Tensor) -> Tensor:
        return code + self.noise * torch.randn_like(code) if self.noise else code


Features = Mapping[str, tuple[Tensor, ...]]
"""Features of states and tasks, by policy; those of a task are either one per row or one per group of the batch."""


class PolicyMethod(Method):
    """A method with a policy for goals, one for analogies, or both (`config.policies`).

    `config.rl_gradient` selects whose gradient enters the encoders: none, actor, critic or both.
    """

    bottleneck: Bottleneck | None

    @abstractmethod
    def inputs(self, policy: str, *features: Tensor, noisy: bool = False) -> Tensor:
        """Return a policy's inputs from features of states and tasks; `noisy` adds the bottleneck's noise."""

    @property
    def trained_policies(self) -> tuple[str, ...]:
        return ("goal", "analogy") if self.config.policies == "both" else (self.config.policies,)

    def encode_task(self, policy: str, task: Tensor, noisy: bool) -> Tensor:
        """Pass an example's embedding through the bottleneck; a goal's embedding stays as it is."""
        if policy == "goal" or self.bottleneck is None:
            return task
        code = self.bottleneck(task)
        return self.bottleneck.add_noise(code) if noisy else code

    # Without a policy for goals, the task "reach g" is the analogy whose example is (s_0, g).

    def prepare_goal(self, initial_state: Tensor, goal: Tensor) -> Prepared:
        if "goal" not in self.trained_policies:
            return self.prepare_example(initial_state, initial_state, goal)
        return self._prepare_goal(initial_state, goal)

    def goal_inputs(self, state: Tensor, *prepared: Tensor) -> Tensor:
        if "goal" not in self.trained_policies:
            return self.analogy_inputs(state, *prepared)
        return self._goal_inputs(state, *prepared)

    @abstractmethod
    def _prepare_goal(self, initial_state: Tensor, goal: Tensor) -> Prepared:
        """Return what the policy for goals needs at every step."""

    @abstractmethod
    def _goal_inputs(self, state: Tensor, *prepared: Tensor) -> Tensor:
        """Return the inputs of the policy for goals."""

    def policy_output(
        self, batch: Batch[Tensor], loss: Tensor, logs: dict[str, Any], features: Features, next_features: Features
    ) -> MethodOutput:
        """Return the output for IQL, with the gradients that `rl_gradient` selects.

        The bottleneck belongs to the policy: the actor trains it even where its gradient stops before the encoders.
        """
        actor, critic = (self.config.rl_gradient in (name, "both") for name in ("actor", "critic"))
        actor_inputs, critic_inputs, next_inputs = {}, {}, {}
        for policy in self.trained_policies:
            rows = tuple(batch.expand(part) if len(part) < len(batch.state) else part for part in features[policy])
            detached = tuple(part.detach() for part in rows)
            actor_inputs[policy] = self.inputs(policy, *(rows if actor else detached), noisy=True)
            with torch.set_grad_enabled(critic and torch.is_grad_enabled()):
                critic_inputs[policy] = self.inputs(policy, *(rows if critic else detached))
            with torch.no_grad():
                next_inputs[policy] = self.inputs(policy, *next_features[policy])
        return MethodOutput(loss, actor_inputs, critic_inputs, next_inputs, logs)


class InfoNCE(nn.Module):
    """Contrastive loss of queries and their keys with the learned similarity qᵀ W k."""

    def __init__(self, size: int):
        super().__init__()
        self.bilinear = nn.Parameter(torch.eye(size) / size**0.5)

    def forward(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Return the cross-entropy of each query's own key (van den Oord et al. 2018, Eq. 4), and the accuracy.

        At chance the loss is the logarithm of the batch size; its optimum is 0.
        """
        similarity = query @ self.bilinear @ key.T
        own = torch.arange(len(query), device=query.device)
        return functional.cross_entropy(similarity, own), (similarity.argmax(1) == own).float().mean()
