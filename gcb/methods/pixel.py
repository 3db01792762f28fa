"""Pixel: no representation learning; the policy's gradient alone trains the encoder."""

from gcb.methods.baseline import StateMethod
from gcb.methods.presets import SETTINGS


class Pixel(StateMethod):
    """ψ trained by the RL losses alone, without augmentation."""

    name = "pixel"
    paper = "Kostrikov et al. 2021, Offline reinforcement learning with implicit Q-learning, on pixels"
    summary = "no representation loss: the policy's gradient trains ψ(s), without augmentation"
    config_type, presets = SETTINGS["pixel"]
