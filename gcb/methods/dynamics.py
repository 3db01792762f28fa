"""Learned dynamics in φ space, the paper's alternative to the next observation (appendix, Eq. phi_f_loss)."""

from typing import Literal

import torch
from torch import Tensor, nn

DynamicsKind = Literal["next_observation", "deterministic", "probabilistic", "ensemble"]
MEMBERS = 5
MIN_STD, MAX_STD = 1e-4, 10.0


class Dynamics(nn.Module):
    """f(φ(s, g), a), one or several networks that predict φ(s', g) - φ(s, g).

    The text prints the loss as (f + φ' - φ)², which would make f the step back; its use in Eq. (phi_f_loss), f + φ,
    asks for the step forward, and so does the loss here.
    """

    def __init__(self, size: int, actions: int, members: int, probabilistic: bool):
        super().__init__()
        self.probabilistic = probabilistic
        outputs = 2 * size if probabilistic else size
        self.members = nn.ModuleList(
            nn.Sequential(
                *(nn.Linear(size + actions, 512), nn.ReLU()),
                *(nn.Linear(512, 512), nn.LayerNorm(512), nn.ReLU()),
                nn.Linear(512, outputs),
            )
            for _ in range(members)
        )

    def loss(self, phi: Tensor, phi_next: Tensor, action: Tensor) -> Tensor:
        """Squared error of the step, or its negative log likelihood; φ is given without gradient."""
        step = phi_next - phi
        losses = []
        for mean, log_std in (self._predict(member, phi, action) for member in self.members):
            error = (mean - step).square()
            losses.append((0.5 * error * (-2 * log_std).exp() + log_std if self.probabilistic else error).mean())
        return torch.stack(losses).mean()

    @torch.no_grad()
    def next(self, phi: Tensor, action: Tensor) -> Tensor:
        """What L_φ compares instead of φ̄(s', g): the predicted next φ, by a member drawn for each row.

        Of Gaussians also the standard deviations: with them side by side, the ℓ2 distance of two rows is the
        2-Wasserstein distance of two diagonal Gaussians.
        """
        predictions = [self._predict(member, phi, action) for member in self.members]
        chosen = torch.randint(len(self.members), (len(phi),), device=phi.device)
        rows = torch.arange(len(phi), device=phi.device)
        mean = phi + torch.stack([mean for mean, _ in predictions])[chosen, rows]
        if not self.probabilistic:
            return mean
        return torch.cat([mean, torch.stack([log_std for _, log_std in predictions])[chosen, rows].exp()], -1)

    def _predict(self, member: nn.Module, phi: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        output = member(torch.cat([phi, action], -1))
        if not self.probabilistic:
            return output, torch.zeros_like(output)
        mean, log_std = output.chunk(2, -1)
        std = (MIN_STD + (MAX_STD - MIN_STD) * torch.sigmoid(log_std)).log()
        return mean, std


def make_dynamics(kind: DynamicsKind, size: int, actions: int) -> Dynamics | None:
    """The model of this kind; None where the next observation itself is used."""
    if kind == "next_observation":
        return None
    return Dynamics(size, actions, MEMBERS if kind == "ensemble" else 1, kind == "probabilistic")
