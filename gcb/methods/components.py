"""Building blocks of several methods: their settings, the bottleneck with its gradient rules, and InfoNCE."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from gcb.errors import GCBError
from gcb.methods.base import Method, MethodOutput
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
class BottleneckConfig(GradientConfig):
    """A bottleneck between the task and the policy."""

    bottleneck_dim: int | None = 16
    """Width of the bottleneck between task and policy, which keeps only what to do; None for no bottleneck."""
    bottleneck_noise: float = 0.3
    """Standard deviation of the noise on the bottleneck in training; its code lies in [-1, 1]."""

    intervals: ClassVar = {"bottleneck_dim": "[1, inf)", "bottleneck_noise": "[0, inf)"}


class Bottleneck(nn.Module):
    """A narrow code in [-1, 1] between the task and the policy; without a width the task passes unchanged.

    `noise` is the standard deviation of the Gaussian noise on the code in training; None for no noise.
    """

    def __init__(self, inputs: int, width: int | None, noise: float | None, hidden: tuple[int, ...] = ()):
        super().__init__()
        self.layers = None if width is None else mlp([inputs, *hidden, width])
        self.size, self.noise = width or inputs, noise

    def forward(self, task: Tensor, *, noisy: bool = False) -> Tensor:
        code = task if self.layers is None else torch.tanh(self.layers(task))
        return self.add_noise(code) if noisy else code

    def add_noise(self, code: Tensor) -> Tensor:
        return code if self.noise is None else code + self.noise * torch.randn_like(code)


class BottleneckMethod(Method):
    """A method whose policy sees the state and, through a bottleneck, the task.

    `config.rl_gradient` says whose gradient enters the encoders: none, actor, critic or both.
    """

    shifted_together = (frozenset({"state", "next_state", "goal", "initial_state"}),)
    bottleneck: Bottleneck

    def encode_task(self, task: Tensor, *, noisy: bool = False) -> Tensor:
        """Return the policy's features of a task from its embedding."""
        return self.bottleneck(task, noisy=noisy)

    def policy_output(
        self, loss: Tensor, logs: dict[str, Any], state: Tensor, task: Tensor, next_state: Tensor, next_task: Tensor
    ) -> MethodOutput:
        """Return the output for IQL, with gradients as `rl_gradient` says; tasks are given before the bottleneck.

        The bottleneck belongs to the policy: the actor trains it even where its gradient stops before the encoders.
        """
        actor, critic = (self.config.rl_gradient in (name, "both") for name in ("actor", "critic"))
        actor_task, critic_task = self.encode_for_training(task, actor)
        with torch.no_grad():
            next_code = self.encode_task(next_task)
        return MethodOutput(
            loss=loss,
            actor_state=state if actor else state.detach(),
            actor_task=actor_task,
            critic_state=state if critic else state.detach(),
            critic_task=critic_task if critic else critic_task.detach(),
            next_state=next_state.detach(),
            next_task=next_code,
            logs=logs,
        )

    def encode_for_training(self, task: Tensor, actor_gradient: bool) -> tuple[Tensor, Tensor]:
        """Return the actor's features of a task, with noise, and the critic's, without."""
        return self.encode_task(task if actor_gradient else task.detach(), noisy=True), self.encode_task(task)


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
