"""GC-DBC: deep bisimulation for control lifted to pairs. φ(s, g) and nothing beside it: no ψ, so no analogies."""

from dataclasses import dataclass, fields
from typing import ClassVar

import torch
from torch import Tensor

from gcb.methods.base import Batch, MethodOutput, Shapes
from gcb.methods.baseline import SMOKE, Baseline, GradientConfig
from gcb.methods.components import Bottleneck, check_not_negative, check_share, make_target, normalised, soft_update
from gcb.methods.gcb import PAPER, GCBConfig, RewardDecoder, metric_losses
from gcb.models.losses import Norm
from gcb.models.networks import encoder, mlp


@dataclass(frozen=True)
class GCDBCConfig(GradientConfig):
    """The metric, with the settings that GCB has for it, and GCB's values."""

    output_norm: bool = GCBConfig.output_norm
    """End φ with a layer norm, as the paper does."""
    left_norm: Norm = GCBConfig.left_norm
    """Norm of φ_i - φ_j in L_φ; the paper's is l1."""
    right_norm: Norm = GCBConfig.right_norm
    """Norm of φ̄'_i - φ̄'_j in L_φ; the paper's is l2."""
    metric_discount: float = GCBConfig.metric_discount
    """γ of L_φ; the paper's is .99."""
    scale_reward: bool = GCBConfig.scale_reward
    """Weigh immediate differences in L_φ by 1 - γ."""
    policy_distance_weight: float = GCBConfig.policy_distance_weight
    """Weight of |π_i - π_j| in L_φ, of actions decoded from φ; 0 for none, and no decoder, as in the paper."""
    phi_weight: float = GCBConfig.phi_weight
    """Weight of L_φ."""
    tau: float | None = GCBConfig.tau
    """φ̄ follows φ as a moving average at this rate; none for the paper's stop-gradient of φ itself."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative(self, "policy_distance_weight", "phi_weight")
        check_share(self, "metric_discount", *(["tau"] if self.tau is not None else []))


class GCDBC(Baseline):
    """π(φ(s, g)), φ by L_φ (Eq. phi_loss) and a reward decoder (Eq. r_loss)."""

    name = "gc_dbc"
    paper = "Zhang et al. 2021, Learning invariant representations for RL without reconstruction, lifted to pairs"
    summary = "the bisimulation metric φ(s, g) alone, without ψ: acts by goal only"
    config_type = GCDBCConfig
    presets: ClassVar = {
        "paper": {
            "method_config": {
                **{name: value for name, value in PAPER.items() if name in {one.name for one in fields(GCDBCConfig)}},
                **{"learning_rate": PAPER["phi_learning_rate"], "weight_decay": PAPER["phi_weight_decay"]},
                **{"rl_gradient": "critic"},
            }
        },
        "smoke": {"method_config": SMOKE},
    }
    supports_analogy = False

    def __init__(self, config: GCDBCConfig, shapes: Shapes):
        super().__init__()
        self.config, size = config, config.size
        self._phi = encoder(config.encoder, shapes.observation, size, stacked=2, norm=config.output_norm)
        self._slow = None if config.tau is None else make_target(self._phi)
        self.reward_decoder = RewardDecoder(size)
        self.action_decoder = mlp([size, 256, shapes.action]) if config.policy_distance_weight else None
        self.bottleneck = Bottleneck(size, None, 0.0)
        self.state_size, self.task_size = 0, size

    def compute_loss(self, batch: Batch) -> MethodOutput:
        phi = self._phi(batch.state, batch.goal)
        with torch.no_grad():
            phi_next = self._phi(batch.next_state, batch.goal)
            target = phi_next if self._slow is None else self._slow(batch.next_state, batch.goal)
        losses, logs = metric_losses(self.config, phi, target, batch.action, batch.reward, self.action_decoder)
        losses["reward_decoder_loss"] = self.reward_decoder.loss(phi, target, batch.reward)
        loss = torch.stack(list(losses.values())).sum()
        logs |= {name: one.detach() for name, one in losses.items()}
        nothing = self.state_features(batch.state)
        return self._features(loss, logs, nothing, self._seen(phi), nothing, self._seen(phi_next))

    def after_step(self) -> None:
        """φ̄ follows φ."""
        if self._slow is not None:
            soft_update(self._slow, self._phi, self.config.tau)

    def state_features(self, state: Tensor) -> Tensor:
        """Nothing: all that is seen is seen in the pair."""
        return torch.empty(len(state), 0, device=state.device)

    def goal_features(self, initial_state: Tensor, state: Tensor, goal: Tensor) -> Tensor:
        return self._seen(self._phi(state, goal))

    @torch.no_grad()
    def phi(self, state: Tensor, goal: Tensor) -> Tensor:
        return self._phi(state, goal)

    def psi(self, state: Tensor) -> Tensor:
        raise NotImplementedError(f"{self.name} has no state embedding ψ")

    def _seen(self, phi: Tensor) -> Tensor:
        return phi if self.config.output_norm else normalised(phi)
