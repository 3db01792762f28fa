"""RAD: reinforcement learning with augmented data, without a representation loss."""

from gcb.methods.pixel import Pixel
from gcb.methods.presets import SETTINGS


class RAD(Pixel):
    """Pixel on randomly shifted images, by up to `TrainConfig.random_shift` pixels."""

    name = "rad"
    paper = "Laskin et al. 2020, Reinforcement learning with augmented data"
    summary = "no representation loss: the policy's gradient trains ψ(s), on randomly shifted images"
    config_type, presets = SETTINGS["rad"]
