"""Two reference policies: goal-conditioned behaviour cloning, and behaviour cloning without the goal.

Both only regress the dataset's actions. The value of a representation is what it adds to the former.
"""

import torch
from torch import Tensor

from gcb.data import Batch
from gcb.methods.base import Method, MethodOutput, Prepared, Shapes
from gcb.methods.configs import BCConfig
from gcb.methods.presets import SETTINGS
from gcb.models.networks import encoder


class BehaviorCloning(Method):
    """One encoder, trained by the actor's loss alone."""

    paper = "Ding et al. 2019, Goal-conditioned imitation learning"
    config_type, presets = SETTINGS["gcbc"]

    def __init__(self, config: BCConfig, shapes: Shapes, stacked: int):
        super().__init__()
        self.config = config
        self.encoder = encoder(config.encoder, shapes.observation, config.size, stacked=stacked)
        self.input_sizes = {"goal": config.size}

    def compute_loss(self, batch: Batch[Tensor]) -> MethodOutput:
        """Return no loss of its own, and inputs whose gradient is the actor's only."""
        inputs = self.goal_inputs(batch.state, batch.expand(batch.goal))
        with torch.no_grad():
            next_inputs = self.goal_inputs(batch.next_state, batch.goal)
        loss = batch.reward.new_zeros(())
        return MethodOutput(loss, {"goal": inputs}, {"goal": inputs.detach()}, {"goal": next_inputs})


class GoalConditionedBC(BehaviorCloning):
    """π(f(s, g)): one encoder of the stacked state and goal."""

    name = "gcbc"
    summary = "goal-conditioned behaviour cloning"
    supports_analogy = False

    def __init__(self, config: BCConfig, shapes: Shapes):
        super().__init__(config, shapes, stacked=2)

    def goal_inputs(self, state: Tensor, *prepared: Tensor) -> Tensor:
        """Return f(s, g)."""
        return self.encoder(state, *prepared)

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

    def prepare_goal(self, initial_state: Tensor, goal: Tensor) -> Prepared:
        return ()

    def goal_inputs(self, state: Tensor, *prepared: Tensor) -> Tensor:
        """Return f(s)."""
        return self.encoder(state)

    def prepare_example(self, initial_state: Tensor, before: Tensor, after: Tensor) -> Prepared:
        return ()

    def analogy_inputs(self, state: Tensor, *prepared: Tensor) -> Tensor:
        return self.encoder(state)

    @torch.no_grad()
    def psi(self, state: Tensor) -> Tensor:
        return self.encoder(state)
