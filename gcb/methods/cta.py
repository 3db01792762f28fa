"""After CTA (2026), the method closest to GCB in idea: a task is the change that it makes to temporal distances.

The value is V(s, g) = f(s)ᵀ ψ(g), as in dual goal representations (Park et al. 2025), so ψ(g) represents the values of
reaching g from all states. The task from s to g is ψ(g) - ψ(s). Task and state are combined bilinearly, so that unseen
combinations are made of parts that were seen. Unlike CTA it has one flat policy, as all methods here do.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from gcb.data import Batch
from gcb.methods.base import MethodOutput, Shapes
from gcb.methods.baseline import Baseline, BaselineConfig
from gcb.models.losses import expectile_loss
from gcb.models.networks import encoder, layer_normed, make_target, soft_update


@dataclass(frozen=True)
class CTAConfig(BaselineConfig):
    """The goal-conditioned value."""

    value_weight: float = 1.0
    """Weight of the loss of V(s, g) = f(s)ᵀ ψ(g)."""
    value_discount: float = 0.99
    """γ of V(s, g), which decreases with the time to the goal."""
    expectile: float = 0.7
    """.5 for the value of the behaviour policy; towards 1 it is the value of the best behaviour in the data."""
    tau: float = 0.01
    """Rate at which the targets of f and ψ follow them, per step."""

    intervals: ClassVar = {
        "value_weight": "[0, inf)",
        "value_discount": "(0, 1]",
        "expectile": "(0, 1]",
        "tau": "(0, 1]",
    }


class CTA(Baseline):
    """π(f(s), A (ψ(g) - ψ(s_0)) ∘ B f(s)); for an analogy ψ(g_a) - ψ(s_a)."""

    name = "cta"
    paper = "after Kim et al. 2026, Compositional transduction with latent analogies, and Park et al. 2025"
    summary = "value V = f(s)ᵀψ(g); the task ψ(g) - ψ(s) is combined bilinearly with the state"
    config_type = CTAConfig
    extra_frames = frozenset({"initial_state"})

    def __init__(self, config: CTAConfig, shapes: Shapes):
        super().__init__()
        self.config, size = config, config.size
        self._state = encoder(config.encoder, shapes.observation, size)
        self._psi = encoder(config.encoder, shapes.observation, size, norm=False)
        self._target_state, self._target_psi = make_target(self._state), make_target(self._psi)
        self.bottleneck = self.make_bottleneck(size)
        self.task_projection = nn.Linear(self.bottleneck.size, size, bias=False)
        self.state_projection = nn.Linear(size, size)
        self.state_size, self.task_size = size, size

    def compute_loss(self, batch: Batch[Tensor]) -> MethodOutput:
        assert batch.initial_state is not None, "`extra_frames` asks for it"
        state, goal = self._state(batch.state), self._psi(batch.goal)
        with torch.no_grad():
            next_state = self._state(batch.next_state)
            next_value = goal_value(self._target_state(batch.next_state), self._target_psi(batch.goal))
        loss, logs = self.value_loss(goal_value(state, goal), next_value, batch.reward, batch.terminal)
        change = layer_normed(goal - self._psi(batch.initial_state))
        task, next_task = torch.cat([change, state], -1), torch.cat([change, next_state], -1)
        return self.policy_output(loss, logs, state, task, next_state, next_task)

    def value_loss(
        self, value: Tensor, next_value: Tensor, reward: Tensor, terminal: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """V(s, g) regresses an upper expectile of r + γ V̄(s', g), which lies in [0, 1]."""
        target = reward + self.config.value_discount * (~terminal) * next_value.clamp(0, 1)
        loss = expectile_loss(target - value, self.config.expectile)
        return self.config.value_weight * loss, {"goal_value": value.detach().mean()}

    def encode_task(self, task: Tensor, *, noisy: bool = False) -> Tensor:
        """Combine task and state bilinearly."""
        change, state = task.chunk(2, -1)
        return self.task_projection(self.bottleneck(change, noisy=noisy)) * self.state_projection(state)

    def after_step(self) -> None:
        """Update the targets of f and ψ."""
        soft_update(self._target_state, self._state, self.config.tau)
        soft_update(self._target_psi, self._psi, self.config.tau)

    def state_features(self, state: Tensor) -> Tensor:
        """Return f(s)."""
        return self._state(state)

    def analogy_features(self, initial_state: Tensor, state: Tensor, example: tuple[Tensor, Tensor]) -> Tensor:
        """Return the features of the change ψ(g_a) - ψ(s_a) at s."""
        change = layer_normed(self._psi(example[1]) - self._psi(example[0]))
        return self.encode_task(torch.cat([change, self._state(state)], -1))

    @torch.no_grad()
    def phi(self, state: Tensor, goal: Tensor) -> Tensor:
        """Return ψ(g) - ψ(s)."""
        return self._psi(goal) - self._psi(state)

    @torch.no_grad()
    def psi(self, state: Tensor) -> Tensor:
        return self._psi(state)


def goal_value(state: Tensor, goal: Tensor) -> Tensor:
    """V(s, g) = f(s)ᵀ ψ(g), on a scale that does not grow with the dimension."""
    return (state * goal).sum(-1) / state.shape[-1] ** 0.5
