"""RAD: reinforcement learning with augmented data, and nothing else."""

from typing import ClassVar

from gcb.methods.baseline import StateMethod
from gcb.methods.pixel import Pixel


class RAD(Pixel):
    """Pixel on randomly shifted pictures; `shift` of the training's settings says by how much."""

    name = "rad"
    paper = "Laskin et al. 2020, Reinforcement learning with augmented data"
    summary = "no representation loss: ψ(s) is what the policy's gradient makes of it, on shifted pictures"
    # The one baseline that is augmented in the paper as well.
    presets: ClassVar = {
        "paper": {**StateMethod.presets["paper"], "random_shift": 4},
        "smoke": StateMethod.presets["smoke"],
    }
