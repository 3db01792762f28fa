"""CPC: contrast in time. Which of the batch's next observations follows this one?"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from gcb.methods.base import Batch, Shapes
from gcb.methods.baseline import StateConfig, StateMethod
from gcb.methods.components import InfoNCE, check_not_negative


@dataclass(frozen=True)
class ContrastConfig(StateConfig):
    """An encoder that learns by contrast."""

    contrast_weight: float = 1.0
    """Weight of the contrastive loss."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative(self, "contrast_weight")


class CPC(StateMethod):
    """ψ by InfoNCE between ψ(s) and ψ(s')."""

    name = "cpc"
    paper = "van den Oord et al. 2018, Representation learning with contrastive predictive coding"
    summary = "contrast in time: ψ(s) finds its own next ψ(s') among the batch's"
    config_type = ContrastConfig
    # Pictures that were shifted alike would be found by their shift.
    shifted_together = (frozenset({"state", "goal", "initial_state"}),)
    learns_from_next = True

    def __init__(self, config: ContrastConfig, shapes: Shapes):
        super().__init__(config, shapes)
        self.contrast = InfoNCE(config.size)

    def objective(self, batch: Batch, state: Tensor, next_state: Tensor) -> tuple[Tensor, dict[str, Any]]:
        loss, found = self.contrast(state, next_state)
        return self.config.contrast_weight * loss, {"infonce_accuracy": found}
