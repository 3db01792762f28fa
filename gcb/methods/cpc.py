"""CPC: contrastive learning in time, between an observation and the next one."""

from typing import Any

from torch import Tensor

from gcb.data import Batch
from gcb.methods.base import Shapes
from gcb.methods.baseline import StateMethod
from gcb.methods.components import InfoNCE
from gcb.methods.configs import ContrastiveConfig
from gcb.methods.presets import SETTINGS


class CPC(StateMethod):
    """ψ by InfoNCE between ψ(s) and ψ(s')."""

    name = "cpc"
    paper = "van den Oord et al. 2018, Representation learning with contrastive predictive coding"
    summary = "contrastive in time: InfoNCE between ψ(s) and ψ(s')"
    config_type, presets = SETTINGS["cpc"]
    # s' is shifted independently: otherwise a common shift would identify the pair.
    shifted_independently = frozenset({"next_state"})
    learns_from_next = True

    def __init__(self, config: ContrastiveConfig, shapes: Shapes):
        super().__init__(config, shapes)
        self.infonce = InfoNCE(config.size)

    def objective(self, batch: Batch[Tensor], state: Tensor, next_state: Tensor) -> tuple[Tensor, dict[str, Any]]:
        loss, accuracy = self.infonce(batch.first(state), next_state)
        return self.config.contrast_weight * loss, {"infonce_accuracy": accuracy}
