"""Base classes of the methods that GCB is compared with.

They share with GCB everything that is not part of its idea: the encoder, the learning rates, the bottleneck, and a
policy that is conditioned in training as it is in evaluation. What differs is the representation.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from gcb.data import Batch
from gcb.errors import GCBError
from gcb.methods.base import MethodOutput, Shapes
from gcb.methods.components import Bottleneck, BottleneckConfig, BottleneckMethod, OptimizerConfig
from gcb.models.networks import encoder, layer_normed

PAPER = {"encoder": "paper", "learning_rate": 5e-4, "rl_gradient": "critic", "bottleneck_dim": None}
"""In the paper all baselines take the critic's gradient (appendix, "Backpropagating RL Objectives")."""
SMOKE = {"size": 32}


@dataclass(frozen=True)
class BaselineConfig(BottleneckConfig, OptimizerConfig):
    """A method whose policy sees the task through a bottleneck."""


class Baseline(BottleneckMethod):
    """A method that GCB is compared with."""

    presets: ClassVar = {"paper": {"method_config": PAPER}, "smoke": {"method_config": SMOKE}}

    def make_bottleneck(self, inputs: int) -> Bottleneck:
        """Return the bottleneck for a task embedding of this size.

        Unlike GCB's it has a hidden layer: its input is two embeddings side by side, which no network has compared yet,
        whereas φ(s, g) has seen both images.
        """
        width, noise = self.config.bottleneck_dim, self.config.bottleneck_noise
        return Bottleneck(inputs, width, None if width is None else noise, hidden=(256,))

    def goal_features(self, initial_state: Tensor, state: Tensor, goal: Tensor) -> Tensor:
        """Return the features of the analogy whose example is the task itself, (s_0, g)."""
        return self.analogy_features(initial_state, state, (initial_state, goal))


@dataclass(frozen=True)
class StateConfig(BaselineConfig):
    """A method with an embedding ψ of single states."""

    condition: Literal["initial_pair", "current_pair", "goal"] = "initial_pair"
    """What the policy sees beside ψ(s): ψ(s_0) and ψ(g), which match an example's ψ(s_a) and ψ(g_a); ψ(s_t) and ψ(g),
    as the paper trains GCB; or ψ(g) alone, inferred from an example by arithmetic."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.condition == "goal" and self.bottleneck_dim is not None:
            raise GCBError("method_config.condition is 'goal'; it uses no pair: set bottleneck_dim to None.")


class StateMethod(Baseline):
    """One encoder ψ of single states, trained by `objective` and by the policy's gradient."""

    config_type = StateConfig
    presets: ClassVar = {
        "paper": {"method_config": {**PAPER, "condition": "current_pair"}},
        "smoke": {"method_config": SMOKE},
    }
    learns_from_next: ClassVar[bool] = False
    """Whether the objective's gradient also enters ψ(s')."""

    def __init__(self, config: StateConfig, shapes: Shapes):
        super().__init__()
        self.config = config
        self._psi = self._make_encoder(shapes)
        self.bottleneck = self.make_bottleneck(config.size if config.condition == "goal" else 2 * config.size)
        self.extra_frames = frozenset({"initial_state"}) if config.condition == "initial_pair" else frozenset()
        self.state_size, self.task_size = config.size, self.bottleneck.size

    def objective(self, batch: Batch[Tensor], state: Tensor, next_state: Tensor) -> tuple[Tensor, dict[str, Any]]:
        """Return the representation's own loss from the encoder's output for s and s', and its logs; 0 by default."""
        return batch.reward.new_zeros(()), {}

    def compute_loss(self, batch: Batch[Tensor]) -> MethodOutput:
        output, goal = self._psi(batch.state), self.state_features(batch.goal)
        with torch.set_grad_enabled(self.learns_from_next):
            next_output = self._psi(batch.next_state)
        loss, logs = self.objective(batch, output, next_output)
        state, next_state = self._embedding(output), self._embedding(next_output).detach()
        start = state
        if self.config.condition == "initial_pair":
            assert batch.initial_state is not None, "`extra_frames` asks for it"
            start = self.state_features(batch.initial_state)
        task, next_task = self._task(start, goal), self._task(self._current(start, next_state), goal)
        return self.policy_output(loss, logs, state, task, next_state, next_task)

    @property
    def task_depends_on_state(self) -> bool:
        return self.config.condition == "current_pair"

    def state_features(self, state: Tensor) -> Tensor:
        """Return ψ(s)."""
        return self._embedding(self._psi(state))

    def goal_features(self, initial_state: Tensor, state: Tensor, goal: Tensor) -> Tensor:
        """Return the features of (ψ(s_0), ψ(g)), (ψ(s_t), ψ(g)) or ψ(g)."""
        start = self.state_features(self._current(initial_state, state))
        return self.encode_task(self._task(start, self.state_features(goal)))

    def analogy_features(self, initial_state: Tensor, state: Tensor, example: tuple[Tensor, Tensor]) -> Tensor:
        """Return the features of (ψ(s_a), ψ(g_a)), or of the goal ψ(s_0) + ψ(g_a) - ψ(s_a) for π(ψ(s), ψ(g))."""
        before, after = self.state_features(example[0]), self.state_features(example[1])
        if self.config.condition == "goal":
            return self.encode_task(layer_normed(self.state_features(initial_state) + after - before))
        return self.encode_task(self._task(before, after))

    def _make_encoder(self, shapes: Shapes) -> torch.nn.Module:
        return encoder(self.config.encoder, shapes.observation, self.config.size)

    def _embedding(self, output: Tensor) -> Tensor:
        """Return ψ(s) from the encoder's output."""
        return output

    def _task(self, start: Tensor, goal: Tensor) -> Tensor:
        return goal if self.config.condition == "goal" else torch.cat([start, goal], -1)

    def _current(self, initial: Tensor, current: Tensor) -> Tensor:
        """Return what stands for the pair's state: the current state or the initial one."""
        return current if self.task_depends_on_state else initial
