"""CURL: contrast of augmentations. Which of the batch's pictures is this one, seen another way?"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gcb.data.augment import shift_images
from gcb.methods.base import Batch, Shapes
from gcb.methods.baseline import StateMethod
from gcb.methods.components import InfoNCE, check_not_negative, check_share, make_target, soft_update
from gcb.methods.cpc import ContrastConfig


@dataclass(frozen=True)
class CURLConfig(ContrastConfig):
    """Contrast between two views, the second one through a slow encoder."""

    view_shift: int = 4
    """Pixels by which the second view is shifted at most, in each direction."""
    view_scale: float = 0.2
    """For vectors, which cannot be shifted: each is scaled by up to this share, as RAD does with states."""
    tau: float = 0.05
    """How far the slow encoder moves towards ψ at every step."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative(self, "view_shift", "view_scale")
        check_share(self, "tau")


class CURL(StateMethod):
    """ψ by InfoNCE between ψ(s) and the momentum encoder's ψ̄ of another view of s."""

    name = "curl"
    paper = "Laskin, Srinivas & Abbeel 2020, CURL: contrastive unsupervised representations for RL"
    summary = "contrast of augmentations: ψ(s) finds the same picture, shifted, among the batch's"
    config_type = CURLConfig

    def __init__(self, config: CURLConfig, shapes: Shapes):
        super().__init__(config, shapes)
        self.contrast = InfoNCE(config.size)
        self._slow = make_target(self._psi)

    def objective(self, batch: Batch, state: Tensor, next_state: Tensor) -> tuple[Tensor, dict[str, Any]]:
        with torch.no_grad():
            key = self._slow(self.other_view(batch.state))
        loss, found = self.contrast(state, key)
        return self.config.contrast_weight * loss, {"infonce_accuracy": found}

    def other_view(self, observation: Tensor) -> Tensor:
        """The same observations, each augmented anew."""
        config, rows = self.config, len(observation)
        if observation.ndim == 2:
            return observation * (1 + config.view_scale * (2 * torch.rand(rows, 1, device=observation.device) - 1))
        offsets = torch.randint(-config.view_shift, config.view_shift + 1, (rows, 2), device=observation.device)
        return shift_images(observation, offsets, config.view_shift)

    def after_step(self) -> None:
        """The slow encoder follows ψ."""
        soft_update(self._slow, self._psi, self.config.tau)
