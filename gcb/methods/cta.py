"""After CTA (2026), the method closest to GCB in idea: a task is the change that it makes to temporal distances.

The value is V(s, g) = f(s)ᵀ ψ(g), as in dual goal representations (Park et al. 2025), so ψ(g) represents the values of
reaching g from all states. The task from s to g is ψ(g) - ψ(s). Task and state are combined bilinearly, so that unseen
combinations are made of parts that were seen. Unlike CTA it has one flat policy, as all methods here do.
"""

import torch
from torch import Tensor, nn

from gcb.data import Batch
from gcb.methods.base import MethodOutput, Prepared, Shapes
from gcb.methods.baseline import Baseline
from gcb.methods.configs import CTAConfig
from gcb.methods.presets import SETTINGS
from gcb.models.losses import expectile_loss
from gcb.models.networks import encoder, layer_normed, make_target, soft_update


class CTA(Baseline):
    """π(f(s), A c ∘ B f(s)) with the change c = ψ(g) - ψ(s); for an analogy, the code of ψ(g_a) - ψ(s_a)."""

    name = "cta"
    paper = "after Kim et al. 2026, Compositional transduction with latent analogies, and Park et al. 2025"
    summary = "value V = f(s)ᵀψ(g); the task ψ(g) - ψ(s) is combined bilinearly with the state"
    config_type, presets = SETTINGS["cta"]

    def __init__(self, config: CTAConfig, shapes: Shapes):
        super().__init__()
        self.config, size = config, config.size
        self._state = encoder(config.encoder, shapes.observation, size)
        self._psi = encoder(config.encoder, shapes.observation, size, norm=False)
        self._target_state, self._target_psi = make_target(self._state), make_target(self._psi)
        self.bottleneck = self.make_bottleneck(size)
        width = self.bottleneck.size if self.bottleneck else size
        sizes = {"goal": size, "analogy": width}
        self.task_projections = nn.ModuleDict(
            {policy: nn.Linear(sizes[policy], size, bias=False) for policy in self.trained_policies}
        )
        self.state_projections = nn.ModuleDict({policy: nn.Linear(size, size) for policy in self.trained_policies})
        widths = {"goal": 2 * size, "analogy": 3 * size}
        self.input_sizes = {policy: widths[policy] for policy in self.trained_policies}
        self.history_sizes = {"analogy": size}

    def compute_loss(self, batch: Batch[Tensor]) -> MethodOutput:
        assert batch.initial_state is not None, "`extra_frames` requests it"
        state = self._state(batch.state)
        frames = [batch.goal, batch.initial_state, *([batch.state] if "goal" in self.trained_policies else [])]
        goal, initial_state, *current = self._psi(torch.cat(frames)).split([len(frame) for frame in frames])
        with torch.no_grad():
            next_state, next_psi = self._state(batch.next_state), self._psi(batch.next_state)
            next_value = goal_value(self._target_state(batch.next_state), self._target_psi(batch.goal))
        value = goal_value(batch.first(state), goal)
        loss, logs = self.value_loss(value, next_value, batch.reward, batch.terminal)
        change = goal - initial_state
        start = layer_normed(initial_state)
        features: dict[str, tuple[Tensor, ...]] = {"analogy": (state, change, start)}
        next_features: dict[str, tuple[Tensor, ...]] = {"analogy": (next_state, change, start)}
        if current:
            features["goal"] = (state, batch.expand(goal) - current[0])
            next_features["goal"] = (next_state, goal - next_psi)
        return self.policy_output(batch, loss, logs, features, next_features)

    def value_loss(
        self, value: Tensor, next_value: Tensor, reward: Tensor, terminal: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """V(s, g) regresses an upper expectile of r + γ V̄(s', g), which lies in [0, 1]."""
        target = reward + self.config.value_discount * (~terminal) * next_value.clamp(0, 1)
        loss = expectile_loss(target - value, self.config.expectile)
        return self.config.value_weight * loss, {"goal_value": value.detach().mean()}

    def inputs(self, policy: str, *features: Tensor, noisy: bool = False) -> Tensor:
        """Return f(s), the bilinear combination of the change and f(s), and for an analogy ψ(s_0), concatenated."""
        state, change, *start = features
        name = policy if policy in self.task_projections else self.trained_policies[0]
        task = self.task_projections[name](self.encode_task(name, layer_normed(change), noisy))
        return torch.cat([state, task * self.state_projections[name](state), *start], -1)

    def after_step(self) -> None:
        """Update the targets of f and ψ."""
        soft_update(self._target_state, self._state, self.config.tau)
        soft_update(self._target_psi, self._psi, self.config.tau)

    def _prepare_goal(self, initial_state: Tensor, goal: Tensor) -> Prepared:
        """Return ψ(g)."""
        return (self._psi(goal),)

    def _goal_inputs(self, state: Tensor, *prepared: Tensor) -> Tensor:
        return self.inputs("goal", self._state(state), prepared[0] - self._psi(state))

    def prepare_example(self, initial_state: Tensor, before: Tensor, after: Tensor) -> Prepared:
        """Return the change ψ(g_a) - ψ(s_a), and ψ(s_0) for the policy for analogies."""
        change = self._psi(after) - self._psi(before)
        return (change, layer_normed(self._psi(initial_state))) if "analogy" in self.input_sizes else (change,)

    def analogy_inputs(self, state: Tensor, *prepared: Tensor) -> Tensor:
        return self.inputs("analogy", self._state(state), *prepared)

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
