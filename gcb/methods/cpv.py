"""CPV: plan vectors that add up. What is left to do is what is to be done less what has been done."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gcb.methods.base import Batch, MethodOutput, Shapes
from gcb.methods.baseline import PAPER, SMOKE, Baseline, BaselineConfig
from gcb.methods.components import Bottleneck, check_not_negative, normalised
from gcb.models.networks import encoder


@dataclass(frozen=True)
class CPVConfig(BaselineConfig):
    """The plan vectors and their regulariser."""

    composition_weight: float = 0.1
    """Weight of the loss that makes plans add up; 0 for the architecture alone, which is all the paper speaks of."""
    margin: float = 1.0
    """By how much a plan's parts must be nearer to their whole than to another plan, in squared distance."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative(self, "composition_weight", "margin")
        self.need_gradient()


def composition_loss(done: Tensor, left: Tensor, whole: Tensor, margin: float) -> Tensor:
    """v(o_0, o_t) + v(o_t, o_T) shall be nearer to v(o_0, o_T) than to another task's v (Devin et al. 2019, L_Hom).

    max(‖x - y‖² - ‖x - z‖² + margin, 0), the other task being the next one in the batch.
    """
    both = done + left
    own, other = (both - whole).square().sum(-1), (both - whole.roll(1, 0)).square().sum(-1)
    return (own - other + margin).clamp_min(0).mean()


class CPV(Baseline):
    """π(ψ(s_t), v) with v = g(o_0, o_T) - g(o_0, o_t), all three of the current trajectory.

    Told by example, v = g(s_a, g_a) - g(o_0, o_t).
    """

    name = "cpv"
    paper = "Devin et al. 2019, Compositional plan vectors"
    summary = "plan vectors: what is left, g(s_0, goal) - g(s_0, s); an example's plan takes the place of the first"
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
        # Without a layer norm: doing nothing must be able to have the plan 0.
        self._pair = encoder(config.encoder, shapes.observation, size, stacked=2, norm=False)
        self.bottleneck = Bottleneck(size, config.bottleneck_dim, config.bottleneck_noise)
        self.state_size, self.task_size = size, self.bottleneck.size

    def compute_loss(self, batch: Batch) -> MethodOutput:
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
        return self._features(loss, logs, self._psi(batch.state), task, next_state, next_task)

    def encode_task(self, task: Tensor, *, noisy: bool = False) -> Tensor:
        """The plan of the whole less the plan of what is done."""
        whole, done = task.chunk(2, -1)
        return self._plan(whole, noisy) - self._plan(done)

    def state_features(self, state: Tensor) -> Tensor:
        return self._psi(state)

    def goal_features(self, initial_state: Tensor, state: Tensor, goal: Tensor) -> Tensor:
        return self.analogy_features(initial_state, state, (initial_state, goal))

    def analogy_features(self, initial_state: Tensor, state: Tensor, example: tuple[Tensor, Tensor]) -> Tensor:
        return self.encode_task(torch.cat([self._pair(*example), self._pair(initial_state, state)], -1))

    @torch.no_grad()
    def phi(self, state: Tensor, goal: Tensor) -> Tensor:
        """The plan vector of the pair."""
        return self._plan(self._pair(state, goal))

    def _plan(self, pair: Tensor, noisy: bool = False) -> Tensor:
        return pair if self.config.bottleneck_dim is None else self.bottleneck(normalised(pair), noisy=noisy)
