"""The interface of a method: it owns the representation of states and goals, and what the policies see of it.

A task is given by a goal or by an analogy, an example pair of another scene, and each has a policy of its own:
"goal" and "analogy". IQL, the training loop, the agent and the evaluation use a method through this interface only.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from gcb.data import Batch
from gcb.data.partners import PartnerConfig

Prepared = tuple[Tensor, ...]
"""The tensors that are computed once for a task, before its first step, each with a batch axis."""


@dataclass(frozen=True)
class Shapes:
    """Shapes of the data that a method is built for."""

    observation: tuple[int, ...]
    """(height, width, channels) of uint8 images, or (size,) of vectors."""
    action: int
    """Number of action dimensions, each in [-1, 1]."""


@dataclass
class MethodOutput:
    """A method's loss on a batch, and the policies' inputs that IQL trains on, by policy.

    Inputs carry a gradient into the encoders where the method trains them, and are detached elsewhere.
    """

    loss: Tensor
    """Loss of the representation."""
    actor_inputs: dict[str, Tensor]
    """(B, inputs): one row for each transition."""
    critic_inputs: dict[str, Tensor]
    """(B, inputs): the same for values and critics, without noise."""
    next_inputs: dict[str, Tensor]
    """(G, inputs): at the next state of each group's first transition; without gradient."""
    logs: dict[str, Tensor | float] = field(default_factory=dict)


class Method(nn.Module, ABC):
    """A representation of states and tasks for policies. Built as `Method(config, shapes)`."""

    name: ClassVar[str]
    """Name on the command line."""
    paper: ClassVar[str]
    """Publication that introduces it."""
    summary: ClassVar[str]
    """One line for `gcb methods`."""
    config_type: ClassVar[type[Any]]
    """Frozen dataclass of its settings; every field has a default and is checked in `__post_init__`."""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Changes of `TrainConfig` in a preset for this method; its own settings are under "method_config"."""
    extra_frames: frozenset[str] = frozenset()
    """Optional fields of `Batch` that it trains on: {"initial_state"} or none."""
    shifted_independently: frozenset[str] = frozenset()
    """Frames that random-shift augmentation moves independently of the others of a group."""
    partners: PartnerConfig | None = None
    """How to find partner episodes for its batches by the embedding φ(s₀, g); None for none."""
    supports_analogy: ClassVar[bool] = True
    """Whether a task can be given as an analogy, an example pair."""

    config: Any
    input_sizes: dict[str, int]
    """Number of inputs of each policy, "goal" and "analogy"; if there is one policy only, it serves both."""

    history_sizes: Mapping[str, int] = {}
    """Number of each policy's last inputs that describe the initial state. The actor does not see them."""

    @abstractmethod
    def compute_loss(self, batch: Batch[Tensor]) -> MethodOutput:
        """Return the representation's loss on a batch and the inputs for IQL, from one set of encoder passes."""

    def prepare_goal(self, initial_state: Tensor, goal: Tensor) -> Prepared:
        """Return what the task "reach `goal`", started in `initial_state`, needs at every step."""
        return (goal,)

    @abstractmethod
    def goal_inputs(self, state: Tensor, *prepared: Tensor) -> Tensor:
        """Return the policy's inputs in `state`, for tasks prepared by `prepare_goal`."""

    def prepare_example(self, initial_state: Tensor, before: Tensor, after: Tensor) -> Prepared:
        """Return what the task "do what leads from `before` to `after`" needs at every step."""
        raise NotImplementedError(f"{self.name} does not support analogies")

    def analogy_inputs(self, state: Tensor, *prepared: Tensor) -> Tensor:
        """Return the policy's inputs in `state`, for tasks prepared by `prepare_example`."""
        raise NotImplementedError(f"{self.name} does not support analogies")

    def after_step(self) -> None:
        """Update target networks; called after every optimizer step."""

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
        raise NotImplementedError(f"{self.name} has no state embedding ψ")
