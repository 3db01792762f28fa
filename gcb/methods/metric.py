"""The bisimulation metric φ(s, g) of GCB and GC-DBC: L_φ on random pairs, and the decoders' losses."""

import torch
from torch import Tensor, nn

from gcb.methods.configs import MetricConfig
from gcb.models.losses import phi_loss


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
