"""The two representation losses as pure functions of tensors: Eq. (phi_loss) and Eq. (psi_obj).

Nothing here knows about networks or images: the agent and the exact worlds of `gcb.theory` use the same code.
Every function returns `(loss, info)`; `info` holds detached scalars worth logging.
"""

from typing import Literal

import torch
from torch import Tensor

from gcb.errors import GCBError

Norm = Literal["l1", "l2", "mean_l1"]
NORMS = ("l1", "l2", "mean_l1")


def distance(first: Tensor, second: Tensor, norm: Norm) -> Tensor:
    """The distance of embeddings [batch, dimension] row by row, [batch].

    `mean_l1` is ℓ1 divided by the dimension: the same geometry, a scale that does not grow with the dimension.
    """
    if norm not in NORMS:
        raise GCBError(f"norm is {norm!r}; one of {', '.join(NORMS)} was expected.")
    if first.shape != second.shape or first.ndim != 2:
        raise GCBError(
            f"Embeddings of shapes {tuple(first.shape)} and {tuple(second.shape)}; two equal ones, [batch, dimension]."
        )
    gap = first - second
    if norm == "l2":
        return torch.linalg.vector_norm(gap, dim=1)
    return gap.abs().mean(dim=1) if norm == "mean_l1" else gap.abs().sum(dim=1)


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
    policy_gap: Tensor | None = None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """L_φ, Eq. (phi_loss): (||φ_i - φ_j|| - |r_i - r_j| - γ ||φ̄'_i - φ̄'_j||)², averaged over the batch.

    j runs through the batch in the order of `permutation`. `phi_next_target` is φ̄(s', g); no gradient enters it.
    The defaults are the paper's, ℓ1 on the left and ℓ2 on the right; `left_norm=right_norm` makes the discount
    the one that is written. `reward_weight=1 - discount` is the scaling of Proposition 1. `policy_gap` [batch], for
    instance |π_i - π_j|, is added to the reward term, as policy-similarity metrics do.
    """
    if reward.shape != phi.shape[:1] or permutation.shape != reward.shape:
        shapes = [tuple(tensor.shape) for tensor in (phi, reward, permutation)]
        raise GCBError(f"phi, reward and permutation have shapes {shapes}; [batch, dimension], [batch], [batch].")
    with torch.no_grad():
        target = (reward - reward[permutation]).abs()
        if policy_gap is not None:
            target = target + policy_gap
        target = reward_weight * target
        target = target + discount * distance(phi_next_target, phi_next_target[permutation], right_norm)
    learned = distance(phi, phi[permutation], left_norm)
    loss = (learned - target).square().mean()
    return loss, {"phi_distance": learned.detach().mean(), "phi_target": target.mean()}


def psi_loss(phi_sg: Tensor, phi_gg: Tensor | None, psi_s: Tensor, psi_g: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """L_ψ, Eq. (psi_obj): ||(φ̄(s, g) - φ̄(g, g)) - (ψ(g) - ψ(s))||², averaged over the batch.

    No gradient enters φ. Without φ(g, g) (`phi_gg=None`) it is Eq. (analogy), the ungrounded form. `info` holds the
    share of the left-hand side's squared length that the arithmetic leaves unexplained: 0 is perfect.
    """
    wanted = phi_sg.detach() if phi_gg is None else phi_sg.detach() - phi_gg.detach()
    offered = psi_g - psi_s
    if wanted.shape != offered.shape:
        raise GCBError(f"φ gives {tuple(wanted.shape)} and ψ {tuple(offered.shape)}; the same shape was expected.")
    loss = (wanted - offered).square().sum(dim=1).mean()
    total = wanted.square().sum(dim=1).mean()
    return loss, {"psi_unexplained": loss.detach() / total.clamp_min(1e-12)}
