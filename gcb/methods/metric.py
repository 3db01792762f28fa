"""The bisimulation metric φ(s, g) of GCB and GC-DBC: its settings, L_φ on random pairs, and the reward decoder."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from gcb.methods.components import MethodConfig
from gcb.models.losses import Norm, phi_loss


@dataclass(frozen=True)
class MetricConfig(MethodConfig):
    """The metric φ; GCB's preset `paper` has the values of its text."""

    output_norm: bool = False
    """End φ and ψ with a layer norm, as the paper does. It fixes a scale that the metric should be free to choose."""
    left_norm: Norm = "mean_l1"
    """Norm of φ_i - φ_j in L_φ; the paper's is l1, its ablation l2."""
    right_norm: Norm = "mean_l1"
    """Norm of φ̄'_i - φ̄'_j in L_φ; the paper's is l2. Unequal norms shrink the discount, and the space with it."""
    metric_discount: float = 0.9
    """γ of L_φ; the paper's is .99."""
    scale_reward: bool = True
    """Weight immediate differences in L_φ by 1 - γ, as in Proposition 1, so that distances stay below 1."""
    policy_distance_weight: float = 1.0
    """Weight of |π_i - π_j| beside |r_i - r_j| in L_φ, with actions decoded from φ. The paper has no such term. Without
    it, tasks of equal length coincide."""
    phi_weight: float = 10.0
    """Weight of L_φ, 1 in the paper; scaled by 1 - γ, distances and their errors are small."""
    tau: float | None = None
    """Rate at which a target φ̄ follows φ, per step; None for a stop-gradient of φ itself, as in the paper."""

    intervals: ClassVar = {
        "metric_discount": "(0, 1)",
        "policy_distance_weight": "[0, inf)",
        "phi_weight": "[0, inf)",
        "tau": "(0, 1]",
    }


def metric_losses(
    config: MetricConfig, phi: Tensor, phi_next: Tensor, action: Tensor, reward: Tensor, decoder: nn.Module | None
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return L_φ on randomly permuted pairs and, if there is an action `decoder`, its loss; and metrics to log.

    `phi_next` is φ̄(s', g).
    """
    losses: dict[str, Tensor] = {}
    permutation, policy_distance = torch.randperm(len(phi), device=phi.device), None
    if decoder is not None:
        predicted = decoder(phi)
        losses["action_decoder_loss"] = (predicted - action).square().mean()
        policy = predicted.detach()
        policy_distance = config.policy_distance_weight * (policy - policy[permutation]).abs().mean(1)
    loss, logs = phi_loss(
        *(phi, phi_next, reward, permutation),
        discount=config.metric_discount,
        left_norm=config.left_norm,
        right_norm=config.right_norm,
        reward_weight=1 - config.metric_discount if config.scale_reward else 1.0,
        policy_distance=policy_distance,
    )
    losses["phi_loss"] = config.phi_weight * loss
    return losses, logs


class RewardDecoder(nn.Module):
    """R(φ(s, g), φ(s', g)), which predicts the reward."""

    def __init__(self, size: int):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2 * size, 512), nn.LayerNorm(512), nn.ReLU(), nn.Linear(512, 1))

    def loss(self, phi: Tensor, phi_next: Tensor, reward: Tensor) -> Tensor:
        """L_R, Eq. (r_loss): (R(φ(s, g), φ(s', g)) - r)²; the gradient enters φ(s, g)."""
        return (self.layers(torch.cat([phi, phi_next], -1)).squeeze(-1) - reward).square().mean()
