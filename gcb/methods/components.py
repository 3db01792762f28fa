"""Building blocks of several methods: their settings, policies with a bottleneck and gradient rules, and InfoNCE."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from gcb.data import Batch
from gcb.errors import GCBError
from gcb.methods.base import Method, MethodOutput, Prepared
from gcb.models.networks import EncoderName, mlp
from gcb.utils.dataclass_io import check_fields


@dataclass(frozen=True)
class MethodConfig:
    """Settings of a method; every class that adds fields also adds their `intervals`."""

    intervals: ClassVar[Mapping[str, str]] = {}
    """Accepted values of numeric fields, such as {"size": "[1, inf)"}."""

    def __post_init__(self) -> None:
        for config_type in type(self).__mro__:
            check_fields(self, "method_config.", **vars(config_type).get("intervals", {}))


@dataclass(frozen=True)
class OptimizerConfig(MethodConfig):
    """One learning rate and weight decay for all of a method; the defaults are those of GCB's ψ."""

    learning_rate: float = 1e-3
    """Learning rate of the encoder, 5e-4 in the paper."""
    weight_decay: float = 1e-4
    """Weight decay of the encoder."""

    intervals: ClassVar = {"learning_rate": "(0, inf)", "weight_decay": "[0, inf)"}


@dataclass(frozen=True)
class EncoderConfig(MethodConfig):
    """The architecture of the encoders."""

    encoder: EncoderName = "small"
    """Convolutional layers; see gcb.models.networks.ENCODERS."""
    size: int = 256
    """Dimension of the embeddings, 256 in the paper, 32 to 512 in its ablation."""

    intervals: ClassVar = {"size": "[1, inf)"}


@dataclass(frozen=True)
class GradientConfig(EncoderConfig):
    """Encoders that the policy's learner may train too."""

    rl_gradient: Literal["none", "actor", "critic", "both"] = "actor"
    """Whose gradient enters the encoders. In the paper: none for GCB, critic in its ablation and for the baselines."""

    def require_gradient(self) -> None:
        """Raise an error if no gradient of the policy's learner enters an encoder that has no loss of its own."""
        if self.rl_gradient == "none":
            raise GCBError(
                "method_config.rl_gradient is 'none'; nothing else trains the state encoder: use actor, critic or both."
            )


@dataclass(frozen=True)
class PolicyConfig(GradientConfig):
    """The policies, and the bottleneck between an example and its policy."""

    policies: Literal["both", "goal", "analogy"] = "both"
    """Policies to train: one for goals and one for analogies; only the former, which is then given an example's task
    embedding in the goal's place, as in the paper; or only the latter, which is then given (s₀, g) as its example."""
    bottleneck_dim: int | None = 16
    """Width of the bottleneck between an example and its policy, which keeps only what to do; None for none."""
    bottleneck_noise: float = 0.3
    """Standard deviation of the noise on the bottleneck in training; its code has a root mean square of 1."""

    intervals: ClassVar = {"bottleneck_dim": "[2, inf)", "bottleneck_noise": "[0, inf)"}


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
    """A method with a policy for goals and one for analogies, as `config.policies` says.

    `config.rl_gradient` says whose gradient enters the encoders: none, actor, critic or both.
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
        """Return the output for IQL, with gradients as `rl_gradient` says.

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
