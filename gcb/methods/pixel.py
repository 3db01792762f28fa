"""Pixel: no representation learning at all; the encoder is what the policy's loss makes of it."""

from dataclasses import dataclass
from typing import ClassVar

from gcb.methods.baseline import StateConfig, StateMethod


@dataclass(frozen=True)
class PixelConfig(StateConfig):
    """The encoder, and whose gradient trains it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.need_gradient()


class Pixel(StateMethod):
    """ψ trained by the RL loss alone, on pictures as they are."""

    name = "pixel"
    paper = "Kostrikov et al. 2021, Offline reinforcement learning with implicit Q-learning, on pixels"
    summary = "no representation loss: ψ(s) is what the policy's gradient makes of it, without augmentation"
    config_type = PixelConfig
    # Without augmentation by definition: with it, it would be RAD.
    presets: ClassVar = {
        "paper": StateMethod.presets["paper"],
        "laptop": {"random_shift": 0},
        "laptop_video": {"random_overlay": 0.0, "horizontal_flip": False},
        "smoke": {**StateMethod.presets["smoke"], "random_shift": 0},
    }
