"""Pixel: no representation learning; the policy's gradient alone trains the encoder."""

from dataclasses import dataclass
from typing import ClassVar

from gcb.methods.baseline import StateConfig, StateMethod


@dataclass(frozen=True)
class PixelConfig(StateConfig):
    """The encoder, and whose gradient trains it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_gradient()


class Pixel(StateMethod):
    """ψ trained by the RL losses alone, without augmentation."""

    name = "pixel"
    paper = "Kostrikov et al. 2021, Offline reinforcement learning with implicit Q-learning, on pixels"
    summary = "no representation loss: the policy's gradient trains ψ(s), without augmentation"
    config_type = PixelConfig
    # Without augmentation by definition: with it, it would be RAD.
    presets: ClassVar = {
        "paper": StateMethod.presets["paper"],
        "laptop": {"random_shift": 0, "horizontal_flip": False},
        "laptop_video": {"random_overlay": 0.0},
        "smoke": {**StateMethod.presets["smoke"], "random_shift": 0},
    }
