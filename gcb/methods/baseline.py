"""Base classes of the methods that GCB is compared with.

They share everything with GCB but the representation: the encoder, the learning rates, the batches, a policy for goals
and one for analogies, and the bottleneck of the latter.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor

from gcb.data import Batch
from gcb.methods.base import MethodOutput, Prepared, Shapes
from gcb.methods.components import Bottleneck, PolicyMethod
from gcb.methods.configs import StateConfig
from gcb.methods.presets import BASELINE, STATE, Presets
from gcb.models.networks import encoder, layer_normed


class Baseline(PolicyMethod):
    """A method that GCB is compared with."""

    presets: ClassVar[Presets] = BASELINE
    extra_frames = frozenset({"initial_state"})

    def make_bottleneck(self, inputs: int) -> Bottleneck | None:
        """Return the bottleneck for a task embedding of this size; None without a policy for analogies.

        Unlike GCB's it has a hidden layer: its input is the concatenation of two embeddings, which no network has
        compared yet, whereas φ(s, g) is computed from both images.
        """
        if "analogy" not in self.trained_policies:
            return None
        return Bottleneck(inputs, self.config.bottleneck_dim, self.config.bottleneck_noise, hidden=(256,))

    def set_input_sizes(self, state: int, task: int, start: int = 0) -> None:
        """Set the policies' sizes: the state's features, and the task's, which for an analogy pass the bottleneck.

        `start` is the size of the initial state's features, the last inputs of the policy for analogies.
        """
        sizes = {"goal": state + task, "analogy": state + start + (self.bottleneck.size if self.bottleneck else task)}
        self.input_sizes = {policy: sizes[policy] for policy in self.trained_policies}
        self.history_sizes = {"analogy": start}


class StateMethod(Baseline):
    """One encoder ψ of single states, trained by `objective` and by the policies' gradient."""

    config_type, presets = StateConfig, STATE
    learns_from_next: ClassVar[bool] = False
    """Whether the objective's gradient also enters ψ(s')."""

    def __init__(self, config: StateConfig, shapes: Shapes):
        super().__init__()
        self.config, size = config, config.size
        self._psi = self._make_encoder(shapes)
        self.bottleneck = self.make_bottleneck(2 * size)
        self._by_pair = config.goal_condition == "pair"
        self.set_input_sizes(size, 2 * size if self._by_pair else size, start=size)

    def objective(self, batch: Batch[Tensor], state: Tensor, next_state: Tensor) -> tuple[Tensor, dict[str, Any]]:
        """Return the representation's own loss from the encoder's output for s and s', and its logs; 0 by default."""
        return batch.reward.new_zeros(()), {}

    def compute_loss(self, batch: Batch[Tensor]) -> MethodOutput:
        assert batch.initial_state is not None, "`extra_frames` requests it"
        frames = [batch.state, batch.goal, batch.initial_state]
        output, goal, initial_state = self._psi(torch.cat(frames)).split([len(frame) for frame in frames])
        with torch.set_grad_enabled(self.learns_from_next and torch.is_grad_enabled()):
            next_output = self._psi(batch.next_state)
        loss, logs = self.objective(batch, output, next_output)
        goal, initial_state = self._embedding(goal), self._embedding(initial_state)
        state, next_state = self._embedding(output), self._embedding(next_output).detach()
        example = torch.cat([initial_state, goal], -1)
        return self.policy_output(
            *(batch, loss, logs),
            {"goal": (state, goal), "analogy": (state, example, initial_state)},
            {"goal": (next_state, goal), "analogy": (next_state, example, initial_state)},
        )

    def inputs(self, policy: str, *features: Tensor, noisy: bool = False) -> Tensor:
        """Return ψ(s) and ψ(g), or ψ(s), the bottleneck's code of ψ(s_a) and ψ(g_a), and ψ(s_0), concatenated."""
        state, task, *start = features
        current = [state] if policy == "goal" and self._by_pair else []
        return torch.cat([state, *current, self.encode_task(policy, task, noisy), *start], -1)

    def _prepare_goal(self, initial_state: Tensor, goal: Tensor) -> Prepared:
        """Return ψ(g)."""
        return (self.embed(goal),)

    def _goal_inputs(self, state: Tensor, *prepared: Tensor) -> Tensor:
        return self.inputs("goal", self.embed(state), *prepared)

    def prepare_example(self, initial_state: Tensor, before: Tensor, after: Tensor) -> Prepared:
        """Return the concatenation of ψ(s_a) and ψ(g_a), and ψ(s_0).

        Without a policy for analogies, return what the policy for goals takes: that concatenation, or for π(ψ(s), ψ(g))
        the goal ψ(s_0) + ψ(g_a) - ψ(s_a).
        """
        before, after = self.embed(before), self.embed(after)
        if self.bottleneck is not None:
            return torch.cat([before, after], -1), self.embed(initial_state)
        if self._by_pair:
            return (torch.cat([before, after], -1),)
        return (layer_normed(self.embed(initial_state) + after - before),)

    def analogy_inputs(self, state: Tensor, *prepared: Tensor) -> Tensor:
        return self.inputs("analogy", self.embed(state), *prepared)

    def embed(self, state: Tensor) -> Tensor:
        """Return ψ(s)."""
        return self._embedding(self._psi(state))

    @torch.no_grad()
    def psi(self, state: Tensor) -> Tensor:
        return self.embed(state)

    def _make_encoder(self, shapes: Shapes) -> torch.nn.Module:
        return encoder(self.config.encoder, shapes.observation, self.config.size)

    def _embedding(self, output: Tensor) -> Tensor:
        """Return ψ(s) from the encoder's output."""
        return output
