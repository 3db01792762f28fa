"""Two yardsticks: goal-conditioned behaviour cloning, and a policy that is never told its goal.

Both regress the dataset's actions and nothing else; what a representation is worth is what it adds to the first.
"""

from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import torch
from torch import Tensor

from gcb.methods.base import Batch, Method, MethodOutput, Shapes
from gcb.methods.components import EncoderConfig
from gcb.models.networks import encoder

PLAIN_CLONING = {"iql": {"temperature": inf}}
"""An infinite temperature gives every action the same weight: IQL's policy loss is then the plain likelihood."""


@dataclass(frozen=True)
class CloningConfig(EncoderConfig):
    """The encoder of a cloned policy."""


class Cloning(Method):
    """What both have in common: one encoder, trained by the policy's loss alone."""

    paper = "Ding et al. 2019, Goal-conditioned imitation learning"
    config_type = CloningConfig
    presets: ClassVar = {
        "paper": {**PLAIN_CLONING, "method_config": {"encoder": "paper", "learning_rate": 5e-4}},
        "laptop": PLAIN_CLONING,
        "smoke": {**PLAIN_CLONING, "method_config": {"size": 32}},
    }

    def __init__(self, config: CloningConfig, shapes: Shapes, stacked: int):
        super().__init__()
        self.config = config
        self.encoder = encoder(config.encoder, shapes.observation, config.size, stacked=stacked)

    def optimizer_groups(self) -> list[dict[str, Any]]:
        config = self.config
        return [{"params": self.encoder.parameters(), "lr": config.learning_rate, "weight_decay": config.weight_decay}]

    def compute_loss(self, batch: Batch) -> MethodOutput:
        """No loss of its own: the policy's gradient enters the encoder, the critics' does not."""
        state, task = self.state_features(batch.state), self.goal_features(batch.state, batch.state, batch.goal)
        with torch.no_grad():
            next_state = self.state_features(batch.next_state)
            next_task = self.goal_features(batch.state, batch.next_state, batch.goal)
        loss = batch.reward.new_zeros(())
        return MethodOutput(loss, state, task, state.detach(), task.detach(), next_state, next_task)


class GoalConditionedBC(Cloning):
    """π(f(s, g)): both images stacked, one encoder."""

    name = "gcbc"
    summary = "goal-conditioned behaviour cloning: one encoder sees state and goal side by side"
    supports_analogy = False

    def __init__(self, config: CloningConfig, shapes: Shapes):
        super().__init__(config, shapes, stacked=2)
        self.state_size, self.task_size = 0, config.size

    def state_features(self, state: Tensor) -> Tensor:
        """Nothing: all that is seen is seen in the pair."""
        return torch.empty(len(state), 0, device=state.device)

    def goal_features(self, initial_state: Tensor, state: Tensor, goal: Tensor) -> Tensor:
        return self.encoder(state, goal)

    @torch.no_grad()
    def phi(self, state: Tensor, goal: Tensor) -> Tensor:
        """What the pair's encoder says: the nearest thing to a task embedding that it has."""
        return self.goal_features(state, state, goal)

    def psi(self, state: Tensor) -> Tensor:
        raise NotImplementedError(f"{self.name} has no state embedding ψ")


class GoalAgnosticBC(Cloning):
    """π(f(s)): how far one gets without knowing the goal."""

    name = "goal_agnostic_bc"
    summary = "behaviour cloning that is never told the goal: what success is worth by chance"

    def __init__(self, config: CloningConfig, shapes: Shapes):
        super().__init__(config, shapes, stacked=1)
        self.state_size, self.task_size = config.size, 0

    @property
    def task_depends_on_state(self) -> bool:
        return False

    def state_features(self, state: Tensor) -> Tensor:
        return self.encoder(state)

    def goal_features(self, initial_state: Tensor, state: Tensor, goal: Tensor) -> Tensor:
        return torch.empty(len(state), 0, device=state.device)

    def analogy_features(self, initial_state: Tensor, state: Tensor, example: tuple[Tensor, Tensor]) -> Tensor:
        return torch.empty(len(state), 0, device=state.device)
