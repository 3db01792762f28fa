"""CPV: compositional plan vectors. The plan that is left is the plan of the whole task minus the plan done so far."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gcb.data import Batch
from gcb.methods.base import MethodOutput, Shapes
from gcb.methods.baseline import PAPER, SMOKE, Baseline, BaselineConfig
from gcb.models.networks import encoder, layer_normed


@dataclass(frozen=True)
class CPVConfig(BaselineConfig):
    """The plan vectors and their regulariser."""

    composition_weight: float = 0.1
    """Weight of the composition loss; 0 for the architecture alone, the only part that the GCB paper describes."""
    margin: float = 1.0
    """Margin of the composition loss, in squared distance."""

    intervals: ClassVar = {"composition_weight": "[0, inf)", "margin": "[0, inf)"}

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_gradient()


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
    config_type = CPVConfig
    presets: ClassVar = {
        "paper": {"method_config": {**PAPER, "composition_weight": 0.0}},
        "smoke": {"method_config": SMOKE},
    }
    extra_frames = frozenset({"initial_state"})

    def __init__(self, config: CPVConfig, shapes: Shapes):
        super().__init__()
        self.config, size = config, config.size
        self._psi = encoder(config.encoder, shapes.observation, size)
        # Without a layer norm: the plan of doing nothing must be able to be 0.
        self._pair = encoder(config.encoder, shapes.observation, size, stacked=2, norm=False)
        self.bottleneck = self.make_bottleneck(size)
        self.state_size, self.task_size = size, self.bottleneck.size

    def compute_loss(self, batch: Batch[Tensor]) -> MethodOutput:
        assert batch.initial_state is not None, "`extra_frames` asks for it"
        whole, done = self._pair(batch.initial_state, batch.goal), self._pair(batch.initial_state, batch.state)
        with torch.no_grad():
            next_state, next_done = self._psi(batch.next_state), self._pair(batch.initial_state, batch.next_state)
        loss, logs = batch.reward.new_zeros(()), {}
        if self.config.composition_weight:
            left = self._plan(self._pair(batch.state, batch.goal))
            composition = composition_loss(self._plan(done), left, self._plan(whole), self.config.margin)
            loss, logs = self.config.composition_weight * composition, {"composition": composition.detach()}
        task, next_task = torch.cat([whole, done], -1), torch.cat([whole, next_done], -1)
        return self.policy_output(loss, logs, self._psi(batch.state), task, next_state, next_task)

    def encode_task(self, task: Tensor, *, noisy: bool = False) -> Tensor:
        """Return the plan of the whole task minus the plan done so far."""
        whole, done = task.chunk(2, -1)
        return self._plan(whole, noisy) - self._plan(done)

    def state_features(self, state: Tensor) -> Tensor:
        """Return ψ(s)."""
        return self._psi(state)

    def analogy_features(self, initial_state: Tensor, state: Tensor, example: tuple[Tensor, Tensor]) -> Tensor:
        """Return g(s_a, g_a) - g(s_0, s)."""
        return self.encode_task(torch.cat([self._pair(*example), self._pair(initial_state, state)], -1))

    @torch.no_grad()
    def phi(self, state: Tensor, goal: Tensor) -> Tensor:
        """Return the plan vector g(s, goal)."""
        return self._plan(self._pair(state, goal))

    def _plan(self, pair: Tensor, noisy: bool = False) -> Tensor:
        return pair if self.config.bottleneck_dim is None else self.bottleneck(layer_normed(pair), noisy=noisy)
