"""CPV: compositional plan vectors. The remaining plan is the plan of the whole task minus that of the part done."""

import torch
from torch import Tensor

from gcb.data import Batch
from gcb.methods.base import MethodOutput, Prepared, Shapes
from gcb.methods.baseline import Baseline
from gcb.methods.configs import CPVConfig
from gcb.methods.presets import SETTINGS
from gcb.models.networks import encoder, layer_normed


def composition_loss(done: Tensor, left: Tensor, whole: Tensor, margin: float) -> Tensor:
    """L_Hom of Devin et al. 2019: v(o_0, o_t) + v(o_t, o_T) is nearer to v(o_0, o_T) than to another task's v.

    max(‖x - y‖² - ‖x - z‖² + margin, 0), where the other task is the next one in the batch.
    """
    both = done + left
    own, other = (both - whole).square().sum(-1), (both - whole.roll(1, 0)).square().sum(-1)
    return (own - other + margin).clamp_min(0).mean()


class CPV(Baseline):
    """π(ψ(s_t), v) with v = g(o_0, o_T) - g(o_0, o_t), all three of the current trajectory.

    For an analogy, v = g(s_a, g_a) - g(o_0, o_t).
    """

    name = "cpv"
    paper = "Devin et al. 2019, Compositional plan vectors"
    summary = "plan vectors: the task left is g(s_0, goal) - g(s_0, s); for an analogy g(s_a, g_a) - g(s_0, s)"
    config_type, presets = SETTINGS["cpv"]

    def __init__(self, config: CPVConfig, shapes: Shapes):
        super().__init__()
        self.config, size = config, config.size
        self._psi = encoder(config.encoder, shapes.observation, size)
        # Without a layer norm: the plan of doing nothing must be able to be 0.
        self._pair = encoder(config.encoder, shapes.observation, size, stacked=2, norm=False)
        self.bottleneck = self.make_bottleneck(size)
        self.set_input_sizes(size, size)

    def compute_loss(self, batch: Batch[Tensor]) -> MethodOutput:
        assert batch.initial_state is not None, "`extra_frames` requests it"
        whole = self._pair(batch.initial_state, batch.goal)
        done = self._pair(batch.expand(batch.initial_state), batch.state)
        with torch.no_grad():
            next_state, next_done = self._psi(batch.next_state), self._pair(batch.initial_state, batch.next_state)
        loss, logs = batch.reward.new_zeros(()), {}
        if self.config.composition_weight:
            left = self._pair(batch.first(batch.state), batch.goal)
            plans = (self._plan(batch.first(done)), self._plan(left), self._plan(whole))
            composition = composition_loss(*plans, self.config.margin)
            loss, logs = self.config.composition_weight * composition, {"composition": composition.detach()}
        features, next_features = (self._psi(batch.state), whole, done), (next_state, whole, next_done)
        policies = self.trained_policies
        return self.policy_output(
            *(batch, loss, logs), dict.fromkeys(policies, features), dict.fromkeys(policies, next_features)
        )

    def inputs(self, policy: str, *features: Tensor, noisy: bool = False) -> Tensor:
        """Return ψ(s), concatenated with the plan of the whole task minus that of the part done."""
        state, whole, done = features
        if policy == "analogy" and self.bottleneck is not None and self.bottleneck.layers is not None:
            return torch.cat([state, self.encode_task(policy, layer_normed(whole), noisy) - self._plan(done)], -1)
        return torch.cat([state, whole - done], -1)

    def _prepare_goal(self, initial_state: Tensor, goal: Tensor) -> Prepared:
        """Return s_0, and g(s_0, goal)."""
        return self.prepare_example(initial_state, initial_state, goal)

    def _goal_inputs(self, state: Tensor, *prepared: Tensor) -> Tensor:
        initial_state, whole = prepared
        return self.inputs("goal", self._psi(state), whole, self._pair(initial_state, state))

    def prepare_example(self, initial_state: Tensor, before: Tensor, after: Tensor) -> Prepared:
        """Return s_0, and g(s_a, g_a)."""
        return initial_state, self._pair(before, after)

    def analogy_inputs(self, state: Tensor, *prepared: Tensor) -> Tensor:
        initial_state, whole = prepared
        return self.inputs("analogy", self._psi(state), whole, self._pair(initial_state, state))

    @torch.no_grad()
    def psi(self, state: Tensor) -> Tensor:
        return self._psi(state)

    @torch.no_grad()
    def phi(self, state: Tensor, goal: Tensor) -> Tensor:
        """Return the plan vector g(s, goal)."""
        return self._plan(self._pair(state, goal))

    def _plan(self, pair: Tensor) -> Tensor:
        """Return the plan vector, in the bottleneck's code if there is one."""
        if self.bottleneck is None or self.bottleneck.layers is None:
            return pair
        return self.bottleneck(layer_normed(pair))
