"""RAD: reinforcement learning with augmented data, without a representation loss."""

from typing import ClassVar

from gcb.methods.baseline import StateMethod
from gcb.methods.pixel import Pixel


class RAD(Pixel):
    """Pixel on randomly shifted images, by up to `TrainConfig.random_shift` pixels."""

    name = "rad"
    paper = "Laskin et al. 2020, Reinforcement learning with augmented data"
    summary = "no representation loss: the policy's gradient trains ψ(s), on randomly shifted images"
    # The one baseline that is augmented in the paper as well.
    presets: ClassVar = {
        "paper": {**StateMethod.presets["paper"], "random_shift": 4},
        "smoke": StateMethod.presets["smoke"],
    }
