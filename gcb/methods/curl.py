"""CURL: contrastive learning between two augmentations of an observation."""

from typing import Any

import torch
from torch import Tensor

from gcb.data import Batch
from gcb.data.augment import shift_images
from gcb.methods.base import Shapes
from gcb.methods.baseline import StateMethod
from gcb.methods.components import InfoNCE
from gcb.methods.configs import CURLConfig
from gcb.methods.presets import SETTINGS
from gcb.models.networks import make_target, soft_update


class CURL(StateMethod):
    """ψ by InfoNCE between ψ(s) and the momentum encoder's ψ̄ of another view of s."""

    name = "curl"
    paper = "Laskin, Srinivas & Abbeel 2020, CURL: contrastive unsupervised representations for RL"
    summary = "contrastive over augmentations: InfoNCE between ψ(s) and a randomly shifted view of s"
    config_type, presets = SETTINGS["curl"]

    def __init__(self, config: CURLConfig, shapes: Shapes):
        super().__init__(config, shapes)
        self.infonce = InfoNCE(config.size)
        self._target = make_target(self._psi)

    def objective(self, batch: Batch[Tensor], state: Tensor, next_state: Tensor) -> tuple[Tensor, dict[str, Any]]:
        with torch.no_grad():
            key = self._target(self.other_view(batch.state))
        loss, accuracy = self.infonce(state, key)
        return self.config.contrast_weight * loss, {"infonce_accuracy": accuracy}

    def other_view(self, observation: Tensor) -> Tensor:
        """Return the observations, each with a new augmentation."""
        config, rows = self.config, len(observation)
        if observation.ndim == 2:
            return observation * (1 + config.view_scale * (2 * torch.rand(rows, 1, device=observation.device) - 1))
        offsets = torch.randint(-config.view_shift, config.view_shift + 1, (rows, 2), device=observation.device)
        return shift_images(observation, offsets, config.view_shift)

    def after_step(self) -> None:
        """Update the momentum encoder."""
        soft_update(self._target, self._psi, self.config.tau)
