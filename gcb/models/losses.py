"""Losses as pure functions of tensors: L_φ (Eq. phi_loss), L_ψ (Eq. psi_obj) and IQL's expectile loss.

The agent and the exact MDPs of `gcb.theory` share this code. L_φ and L_ψ return `(loss, info)`, where `info` holds
detached scalars to log.
"""

from typing import get_args

import torch
from torch import Tensor

from gcb.errors import GCBError
from gcb.models.config import Norm

NORMS = get_args(Norm)


def distance(first: Tensor, second: Tensor, norm: Norm) -> Tensor:
    """Return the distances between the rows of two embeddings [batch, dimension] as [batch].

    `mean_l1` is ℓ1 divided by the dimension: the same geometry on a scale that does not grow with the dimension.
    """
    if norm not in NORMS:
        raise GCBError(f"norm is {norm!r}; accepted: {', '.join(NORMS)}.")
    if first.shape != second.shape or first.ndim != 2:
        raise GCBError(
            f"The embeddings have shapes {tuple(first.shape)} and {tuple(second.shape)}; "
            "accepted: two of the same shape [batch, dimension]."
        )
    difference = first - second
    if norm == "l2":
        return torch.linalg.vector_norm(difference, dim=1)
    return difference.abs().mean(dim=1) if norm == "mean_l1" else difference.abs().sum(dim=1)


def phi_loss(
    phi: Tensor,
    phi_next_target: Tensor,
    reward: Tensor,
    permutation: Tensor,
    *,
    discount: float,
    left_norm: Norm = "l1",
    right_norm: Norm = "l2",
    reward_weight: float = 1.0,
    policy_distance: Tensor | None = None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """L_φ, Eq. (phi_loss): (||φ_i - φ_j|| - |r_i - r_j| - γ ||φ̄'_i - φ̄'_j||)², averaged over the batch.

    j is the batch in the order of `permutation`. `phi_next_target` is φ̄(s', g), which gets no gradient. The default
    norms are the paper's, ℓ1 on the left and ℓ2 on the right; γ is the effective discount only if both are equal.
    `reward_weight=1 - discount` is the scaling of Proposition 1. `policy_distance` [batch], such as |π_i - π_j|, is
    added to the reward term, as in policy-similarity metrics.
    """
    if reward.shape != phi.shape[:1] or permutation.shape != reward.shape:
        shapes = [tuple(tensor.shape) for tensor in (phi, reward, permutation)]
        raise GCBError(
            f"phi, reward and permutation have shapes {shapes}; accepted: [batch, dimension], [batch], [batch]."
        )
    with torch.no_grad():
        target = (reward - reward[permutation]).abs()
        if policy_distance is not None:
            target = target + policy_distance
        target = reward_weight * target
        target = target + discount * distance(phi_next_target, phi_next_target[permutation], right_norm)
    learned = distance(phi, phi[permutation], left_norm)
    loss = (learned - target).square().mean()
    return loss, {"phi_distance": learned.detach().mean(), "phi_target": target.mean()}


def psi_loss(phi_sg: Tensor, phi_gg: Tensor | None, psi_s: Tensor, psi_g: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """L_ψ, Eq. (psi_obj): ||(φ̄(s, g) - φ̄(g, g)) - (ψ(g) - ψ(s))||², averaged over the batch.

    φ gets no gradient. With `phi_gg=None` it is the ungrounded form, Eq. (analogy). `info` holds the fraction of
    ||φ̄(s, g) - φ̄(g, g)||² that ψ(g) - ψ(s) leaves unexplained: 0 is perfect.
    """
    target = phi_sg.detach() if phi_gg is None else phi_sg.detach() - phi_gg.detach()
    difference = psi_g - psi_s
    if target.shape != difference.shape:
        raise GCBError(f"φ has shape {tuple(target.shape)} and ψ {tuple(difference.shape)}; accepted: the same shape.")
    loss = (target - difference).square().sum(dim=1).mean()
    total = target.square().sum(dim=1).mean()
    return loss, {"psi_unexplained": loss.detach() / total.clamp_min(1e-12)}


def expectile_loss(difference: Tensor, expectile: float) -> Tensor:
    """L_τ(u) = |τ - 1(u < 0)| u², averaged over the batch: IQL's Eq. 5 with u = Q - V."""
    weight = torch.where(difference < 0, 1 - expectile, expectile)
    return (weight * difference.square()).mean()
