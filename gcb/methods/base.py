"""The contract of a method: it owns what is learned about states and goals, and what the policy sees.

IQL, the training loop, the agent and the evaluation know nothing else of a method, and never ask which one it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Shapes:
    """What a method must know of the data."""

    observation: tuple[int, ...]
    """(height, width, channels) of uint8 images, or (size,) of vectors."""
    action: int
    """Number of action dimensions, each in [-1, 1]."""


@dataclass(frozen=True)
class Batch:
    """One batch as a method sees it: observations as stored (uint8 images channels last, or vectors), B of each."""

    state: Tensor
    next_state: Tensor
    goal: Tensor
    action: Tensor
    reward: Tensor
    terminal: Tensor
    """bool: the goal is reached in next_state. A time-out is not terminal."""
    initial_state: Tensor | None = None
    """s_0 of the same episode, if the method asks for it."""


@dataclass
class MethodOutput:
    """What one step of a method gives to the policy's learner, and its own loss.

    Each tensor carries a gradient into the encoders exactly where the method wants one: `detach` where it does not.
    """

    loss: Tensor
    """The loss of the representation."""
    actor_state: Tensor
    actor_task: Tensor
    critic_state: Tensor
    critic_task: Tensor
    next_state: Tensor
    """MethodOutput of s' for the bootstrap; never with a gradient."""
    next_task: Tensor
    """MethodOutput of the task as it stands at s'."""
    logs: dict[str, Tensor | float] = field(default_factory=dict)


class Method(nn.Module, ABC):
    """A representation of states and tasks that a policy can act on. Built as `Method(config, shapes)`."""

    name: ClassVar[str]
    """Its name on the command line."""
    paper: ClassVar[str]
    """Where it comes from."""
    summary: ClassVar[str]
    """One line for `gcb methods`."""
    config_type: ClassVar[type[Any]]
    """The frozen dataclass of its settings; each has a default and is checked when it is built."""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Changes of `TrainConfig` in a preset for this method; its own settings under "method_config"."""
    extra_frames: frozenset[str] = frozenset()
    """Optional fields of `Batch` that it trains on: {"initial_state"} or none."""
    shifted_together: tuple[frozenset[str], ...] = ()
    """Frames that random-shift augmentation moves by the same pixels; all others move on their own."""
    supports_analogy: ClassVar[bool] = True
    """Whether it can be told what to do by an analogous pair."""

    state_size: int
    task_size: int

    @abstractmethod
    def compute_loss(self, batch: Batch) -> MethodOutput:
        """The representation's loss on a batch, and the features for the policy, from one set of encoder passes."""

    @abstractmethod
    def state_features(self, state: Tensor) -> Tensor:
        """What the policy sees of states."""

    @abstractmethod
    def goal_features(self, initial_state: Tensor, state: Tensor, goal: Tensor) -> Tensor:
        """What the policy sees of the task "reach `goal`", begun at `initial_state` and now at `state`."""

    def analogy_features(self, initial_state: Tensor, state: Tensor, example: tuple[Tensor, Tensor]) -> Tensor:
        """What the policy sees of the task "do what leads from example[0] to example[1]"."""
        raise NotImplementedError(f"{self.name} cannot be told what to do by an example")

    @property
    def task_depends_on_state(self) -> bool:
        """Whether the task's features change with the current state, so that they must be computed at every step."""
        return True

    def after_step(self) -> None:
        """What follows an optimiser step: target networks and the like."""

    def optimizer_groups(self) -> list[dict[str, Any]]:
        """Parameter groups for AdamW, with their learning rates and decays; must cover every trained parameter."""
        raise NotImplementedError

    @torch.no_grad()
    def phi(self, state: Tensor, goal: Tensor) -> Tensor:
        """The task embedding φ(s, g), for methods that have one."""
        raise NotImplementedError(f"{self.name} has no task embedding φ")

    @torch.no_grad()
    def psi(self, state: Tensor) -> Tensor:
        """The state embedding ψ(s)."""
        return self.state_features(state)
