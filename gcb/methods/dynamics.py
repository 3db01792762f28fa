"""Learned dynamics in φ space, the paper's alternative to the next observation (appendix, Eq. phi_f_loss)."""

import torch
from torch import Tensor, nn

from gcb.methods.configs import DynamicsName

MEMBERS = 5
MIN_STD, MAX_STD = 1e-4, 10.0


class Dynamics(nn.Module):
    """f(φ(s, g), a): one or several networks that predict φ(s', g) - φ(s, g)."""

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
        """L_f, Eq. (f_loss): the squared error of φ' - φ, or its negative log likelihood. φ is given without gradient.

        The paper prints (f + φ' - φ)², which would make f the step backwards; Eq. (phi_f_loss) uses f + φ as the next
        φ, which requires the step forwards, as here.
        """
        step = phi_next - phi
        losses = []
        for mean, log_std in (self._predict(member, phi, action) for member in self.members):
            error = (mean - step).square()
            losses.append((0.5 * error * (-2 * log_std).exp() + log_std if self.probabilistic else error).mean())
        return torch.stack(losses).mean()

    @torch.no_grad()
    def next(self, phi: Tensor, action: Tensor) -> Tensor:
        """Return f + φ of Eq. (phi_f_loss), which takes the place of φ̄(s', g); a random member predicts each row.

        Gaussians are returned as concatenated means and standard deviations: the ℓ2 distance of two rows is then the
        2-Wasserstein distance of two diagonal Gaussians.
        """
        predictions = [self._predict(member, phi, action) for member in self.members]
        member = torch.randint(len(self.members), (len(phi),), device=phi.device)
        rows = torch.arange(len(phi), device=phi.device)
        mean = phi + torch.stack([mean for mean, _ in predictions])[member, rows]
        if not self.probabilistic:
            return mean
        return torch.cat([mean, torch.stack([log_std for _, log_std in predictions])[member, rows].exp()], -1)

    def _predict(self, member: nn.Module, phi: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean of φ' - φ and its log standard deviation (0 if the model is deterministic)."""
        output = member(torch.cat([phi, action], -1))
        if not self.probabilistic:
            return output, torch.zeros_like(output)
        mean, raw = output.chunk(2, -1)
        return mean, (MIN_STD + (MAX_STD - MIN_STD) * torch.sigmoid(raw)).log()


def make_dynamics(name: DynamicsName, size: int, actions: int) -> Dynamics | None:
    """Return the model of this name; None where the next observation itself is used."""
    if name == "next_observation":
        return None
    return Dynamics(size, actions, MEMBERS if name == "ensemble" else 1, name == "probabilistic")
