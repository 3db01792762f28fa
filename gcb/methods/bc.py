"""Two reference policies: goal-conditioned behaviour cloning, and behaviour cloning without the goal.

Both only regress the dataset's actions: a representation is worth what it adds to the former.
"""

from dataclasses import dataclass
from math import inf
from typing import ClassVar

import torch
from torch import Tensor

from gcb.data import Batch
from gcb.methods.base import Method, MethodOutput, Shapes, no_features
from gcb.methods.components import EncoderConfig, OptimizerConfig
from gcb.models.networks import encoder

UNWEIGHTED = {"iql": {"temperature": inf}}
"""An infinite temperature gives every action the same weight: IQL's actor loss is then the log likelihood."""


@dataclass(frozen=True)
class BCConfig(EncoderConfig, OptimizerConfig):
    """The encoder of a cloned policy."""


class BehaviorCloning(Method):
    """One encoder, trained by the actor's loss alone."""

    paper = "Ding et al. 2019, Goal-conditioned imitation learning"
    config_type = BCConfig
    presets: ClassVar = {
        "paper": {**UNWEIGHTED, "method_config": {"encoder": "paper", "learning_rate": 5e-4}},
        "laptop": UNWEIGHTED,
        "smoke": {**UNWEIGHTED, "method_config": {"size": 32}},
    }

    def __init__(self, config: BCConfig, shapes: Shapes, stacked: int):
        super().__init__()
        self.config = config
        self.encoder = encoder(config.encoder, shapes.observation, config.size, stacked=stacked)

    def compute_loss(self, batch: Batch[Tensor]) -> MethodOutput:
        """Return no loss of its own, and features whose gradient is the actor's only."""
        state, task = self.state_features(batch.state), self.goal_features(batch.state, batch.state, batch.goal)
        with torch.no_grad():
            next_state = self.state_features(batch.next_state)
            next_task = self.goal_features(batch.state, batch.next_state, batch.goal)
        loss = batch.reward.new_zeros(())
        return MethodOutput(loss, state, task, state.detach(), task.detach(), next_state, next_task)


class GoalConditionedBC(BehaviorCloning):
    """π(f(s, g)): one encoder of state and goal side by side."""

    name = "gcbc"
    summary = "goal-conditioned behaviour cloning"
    supports_analogy = False

    def __init__(self, config: BCConfig, shapes: Shapes):
        super().__init__(config, shapes, stacked=2)
        self.state_size, self.task_size = 0, config.size

    def state_features(self, state: Tensor) -> Tensor:
        return no_features(state)

    def goal_features(self, initial_state: Tensor, state: Tensor, goal: Tensor) -> Tensor:
        """Return f(s, g)."""
        return self.encoder(state, goal)

    @torch.no_grad()
    def phi(self, state: Tensor, goal: Tensor) -> Tensor:
        """Return f(s, g), the closest equivalent of a task embedding."""
        return self.encoder(state, goal)


class GoalAgnosticBC(BehaviorCloning):
    """π(f(s)): a policy that does not see the goal."""

    name = "goal_agnostic_bc"
    summary = "behaviour cloning without the goal: a lower bound"

    def __init__(self, config: BCConfig, shapes: Shapes):
        super().__init__(config, shapes, stacked=1)
        self.state_size, self.task_size = config.size, 0

    @property
    def task_depends_on_state(self) -> bool:
        return False

    def state_features(self, state: Tensor) -> Tensor:
        """Return f(s)."""
        return self.encoder(state)

    def goal_features(self, initial_state: Tensor, state: Tensor, goal: Tensor) -> Tensor:
        return no_features(state)

    def analogy_features(self, initial_state: Tensor, state: Tensor, example: tuple[Tensor, Tensor]) -> Tensor:
        return no_features(state)
