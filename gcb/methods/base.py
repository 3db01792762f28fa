"""The interface of a method: it owns the representation of states and goals, and what the policy sees of it.

IQL, the training loop, the agent and the evaluation use a method through this interface only.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from gcb.data import Batch


@dataclass(frozen=True)
class Shapes:
    """Shapes of the data that a method is built for."""

    observation: tuple[int, ...]
    """(height, width, channels) of uint8 images, or (size,) of vectors."""
    action: int
    """Number of action dimensions, each in [-1, 1]."""


@dataclass
class MethodOutput:
    """A method's loss on a batch, and the features of the batch that IQL trains on.

    Features carry a gradient into the encoders exactly where the method wants one, and are detached elsewhere.
    """

    loss: Tensor
    """Loss of the representation."""
    actor_state: Tensor
    actor_task: Tensor
    critic_state: Tensor
    critic_task: Tensor
    next_state: Tensor
    """Features of s' for the bootstrap target; without gradient."""
    next_task: Tensor
    """Features of the task at s'; without gradient."""
    logs: dict[str, Tensor | float] = field(default_factory=dict)


class Method(nn.Module, ABC):
    """A representation of states and tasks for a policy. Built as `Method(config, shapes)`."""

    name: ClassVar[str]
    """Name on the command line."""
    paper: ClassVar[str]
    """Publication that it comes from."""
    summary: ClassVar[str]
    """One line for `gcb methods`."""
    config_type: ClassVar[type[Any]]
    """Frozen dataclass of its settings; every field has a default and is checked in `__post_init__`."""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Changes of `TrainConfig` in a preset for this method; its own settings are under "method_config"."""
    extra_frames: frozenset[str] = frozenset()
    """Optional fields of `Batch` that it trains on: {"initial_state"} or none."""
    shifted_together: tuple[frozenset[str], ...] = ()
    """Frames that random-shift augmentation moves by the same pixels; all others are shifted independently."""
    supports_analogy: ClassVar[bool] = True
    """Whether a task can be given as an analogy, an example pair."""

    config: Any
    state_size: int
    """Size of the state's features; may be 0."""
    task_size: int
    """Size of the task's features; may be 0."""

    @abstractmethod
    def compute_loss(self, batch: Batch[Tensor]) -> MethodOutput:
        """Return the representation's loss on a batch and the features for IQL, from one set of encoder passes."""

    @abstractmethod
    def state_features(self, state: Tensor) -> Tensor:
        """Return the policy's features of states."""

    @abstractmethod
    def goal_features(self, initial_state: Tensor, state: Tensor, goal: Tensor) -> Tensor:
        """Return the policy's features of the task "reach `goal`", started in `initial_state` and now in `state`."""

    def analogy_features(self, initial_state: Tensor, state: Tensor, example: tuple[Tensor, Tensor]) -> Tensor:
        """Return the policy's features of the task "do what leads from example[0] to example[1]"."""
        raise NotImplementedError(f"{self.name} does not support analogies")

    @property
    def task_depends_on_state(self) -> bool:
        """Whether the task's features depend on the current state and must be computed at every step."""
        return True

    def after_step(self) -> None:
        """Update target networks; called after every optimiser step."""

    def optimizer_groups(self) -> list[dict[str, Any]]:
        """Return parameter groups for AdamW, which together hold every trained parameter: by default one group."""
        trained = [parameter for parameter in self.parameters() if parameter.requires_grad]
        return [{"params": trained, "lr": self.config.learning_rate, "weight_decay": self.config.weight_decay}]

    @torch.no_grad()
    def phi(self, state: Tensor, goal: Tensor) -> Tensor:
        """Return the task embedding φ(s, g), if the method has one."""
        raise NotImplementedError(f"{self.name} has no task embedding φ")

    @torch.no_grad()
    def psi(self, state: Tensor) -> Tensor:
        """Return the state embedding ψ(s), if the method has one."""
        if not self.state_size:
            raise NotImplementedError(f"{self.name} has no state embedding ψ")
        return self.state_features(state)


def no_features(observation: Tensor) -> Tensor:
    """Return features of size 0, for methods whose policy sees nothing of the state, or nothing of the task."""
    return torch.empty(len(observation), 0, device=observation.device)
