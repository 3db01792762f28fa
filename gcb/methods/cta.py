"""After CTA (2026), the nearest rival in idea: a task is the change that it makes to the temporal distances.

Of its idea: V(s, g) = f(s)ᵀ ψ(g) as in dual goal representations (Park et al. 2025), so that ψ(g) stands for the
field of values of reaching g from everywhere; the task from s to g is the difference of fields ψ(g) - ψ(s); task and
state meet bilinearly, so that pairs of them that were never seen are combined from parts that were. It has one flat
policy here, as every other method.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from gcb.methods.base import Batch, MethodOutput, Shapes
from gcb.methods.baseline import PAPER, SMOKE, Baseline, BaselineConfig
from gcb.methods.components import Bottleneck, check_not_negative, check_share, make_target, normalised, soft_update
from gcb.models.iql import expectile_loss
from gcb.models.networks import encoder


@dataclass(frozen=True)
class CTAConfig(BaselineConfig):
    """The field of values."""

    value_weight: float = 1.0
    """Weight of the loss of V(s, g) = f(s)ᵀ ψ(g)."""
    value_discount: float = 0.99
    """γ of that value: it falls off with the time to the goal."""
    expectile: float = 0.7
    """.5 for the value of the data's behaviour, towards 1 for the best that was seen."""
    tau: float = 0.01
    """How far the slow copies of f and ψ move at every step."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative(self, "value_weight")
        check_share(self, "value_discount", "expectile", "tau")


class CTA(Baseline):
    """π(f(s), A (ψ(g) - ψ(s_0)) ∘ B f(s)); of an example, ψ(g_a) - ψ(s_a)."""

    name = "cta"
    paper = "after Kim et al. 2026, Compositional transduction with latent analogies, and Park et al. 2025"
    summary = "fields of temporal distance: V = f(s)ᵀψ(g), the task is ψ(g) - ψ(s), joined bilinearly with the state"
    config_type = CTAConfig
    presets: ClassVar = {"paper": {"method_config": PAPER}, "smoke": {"method_config": SMOKE}}
    extra_frames = frozenset({"initial_state"})

    def __init__(self, config: CTAConfig, shapes: Shapes):
        super().__init__()
        self.config, size = config, config.size
        self._state = encoder(config.encoder, shapes.observation, size)
        self._psi = encoder(config.encoder, shapes.observation, size, norm=False)
        self._slow_state, self._slow_psi = make_target(self._state), make_target(self._psi)
        self.bottleneck = Bottleneck(size, config.bottleneck_dim, config.bottleneck_noise)
        self.of_task = nn.Linear(self.bottleneck.size, size, bias=False)
        self.of_state = nn.Linear(size, size)
        self.state_size, self.task_size = size, size

    def compute_loss(self, batch: Batch) -> MethodOutput:
        assert batch.initial_state is not None, "`extra_frames` asks for it"
        state, goal = self._state(batch.state), self._psi(batch.goal)
        with torch.no_grad():
            next_state = self._state(batch.next_state)
            future = field_value(self._slow_state(batch.next_state), self._slow_psi(batch.goal))
        loss, logs = self.value_loss(field_value(state, goal), future, batch.reward, batch.terminal)
        change = normalised(goal - self._psi(batch.initial_state))
        task, next_task = torch.cat([change, state], -1), torch.cat([change, next_state], -1)
        return self._features(loss, logs, state, task, next_state, next_task)

    def value_loss(
        self, value: Tensor, future: Tensor, reward: Tensor, terminal: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """V(s, g) towards an upper expectile of r + γ V̄(s', g), which lies in [0, 1]."""
        target = reward + self.config.value_discount * (~terminal) * future.clamp(0, 1)
        loss = expectile_loss(target - value, self.config.expectile)
        return self.config.value_weight * loss, {"field_value": value.detach().mean()}

    def encode_task(self, task: Tensor, *, noisy: bool = False) -> Tensor:
        """Task and state joined bilinearly."""
        change, state = task.chunk(2, -1)
        return self.of_task(self.bottleneck(change, noisy=noisy)) * self.of_state(state)

    def after_step(self) -> None:
        """The slow copies follow f and ψ."""
        soft_update(self._slow_state, self._state, self.config.tau)
        soft_update(self._slow_psi, self._psi, self.config.tau)

    def state_features(self, state: Tensor) -> Tensor:
        """f(s)."""
        return self._state(state)

    def goal_features(self, initial_state: Tensor, state: Tensor, goal: Tensor) -> Tensor:
        return self.analogy_features(initial_state, state, (initial_state, goal))

    def analogy_features(self, initial_state: Tensor, state: Tensor, example: tuple[Tensor, Tensor]) -> Tensor:
        change = normalised(self._psi(example[1]) - self._psi(example[0]))
        return self.encode_task(torch.cat([change, self._state(state)], -1))

    @torch.no_grad()
    def phi(self, state: Tensor, goal: Tensor) -> Tensor:
        """ψ(g) - ψ(s)."""
        return self._psi(goal) - self._psi(state)

    @torch.no_grad()
    def psi(self, state: Tensor) -> Tensor:
        return self._psi(state)


def field_value(state: Tensor, goal: Tensor) -> Tensor:
    """f(s)ᵀ ψ(g), in units that do not grow with the dimension."""
    return (state * goal).sum(-1) / state.shape[-1] ** 0.5
