"""Settings of the built-in methods: the type of their configuration, and what they change in a preset."""

from collections.abc import Mapping
from dataclasses import fields
from math import inf
from typing import Any, NamedTuple

from gcb.methods import configs

Presets = Mapping[str, Mapping[str, Any]]


class MethodSettings(NamedTuple):
    """The type of a method's configuration, and what the method changes in presets."""

    config_type: type[Any]
    presets: Presets
    """Changes of `TrainConfig` in a preset; the method's own settings are under "method_config"."""


# The text of the GCB paper.
GCB_PAPER = {
    "encoder": "paper",
    "output_norm": True,
    "left_norm": "l1",
    "right_norm": "l2",
    "metric_discount": 0.99,
    "scale_reward": False,
    "policy_distance_weight": 0.0,
    "action_decoder": False,
    "phi_weight": 1.0,
    "shared_trunk": False,
    "linear_psi": False,
    "relative_psi_loss": False,
    "policies": "goal",
    "partners": {"source": "none"},
    "rl_gradient": "none",
    "phi_learning_rate": 1e-4,
    "phi_weight_decay": 1e-3,
    "psi_learning_rate": 5e-4,
}
# In the paper all baselines take the critic's gradient (appendix, "Backpropagating RL Objectives").
BASELINE_PAPER = {"encoder": "paper", "learning_rate": 5e-4, "rl_gradient": "critic", "policies": "goal"}
GC_DBC_PAPER = {
    **{field.name: GCB_PAPER[field.name] for field in fields(configs.GCDBCConfig) if field.name in GCB_PAPER},
    "learning_rate": GCB_PAPER["phi_learning_rate"],
    "weight_decay": GCB_PAPER["phi_weight_decay"],
    "rl_gradient": "critic",
}
SMOKE = {"size": 32}
UNWEIGHTED = {"iql": {"temperature": inf}}
"""An infinite temperature gives every action the same weight: IQL's actor loss is then the log likelihood."""


def _presets(paper: Mapping[str, Any]) -> Presets:
    return {"paper": {"method_config": paper}, "smoke": {"method_config": SMOKE}}


BASELINE = _presets(BASELINE_PAPER)
STATE = _presets({**BASELINE_PAPER, "goal_condition": "pair"})
CLONING: Presets = {
    "paper": {**UNWEIGHTED, "method_config": {"encoder": "paper", "learning_rate": 5e-4}},
    "laptop": UNWEIGHTED,
    "smoke": {**UNWEIGHTED, "method_config": SMOKE},
}
# Without augmentation by definition: with it, it would be RAD.
PIXEL: Presets = {
    "paper": STATE["paper"],
    "laptop": {"random_shift": 0, "horizontal_flip": False},
    "laptop_video": {"random_overlay": 0.0},
    "smoke": {**STATE["smoke"], "random_shift": 0},
}
# The one baseline that is augmented in the paper as well.
RAD: Presets = {"paper": {**STATE["paper"], "random_shift": 4}, "smoke": STATE["smoke"]}

# Measured with video distractors at this weight only (docs/results.md).
GCB: Presets = {**_presets(GCB_PAPER), "laptop_video": {"method_config": {"phi_weight": 10.0}}}

SETTINGS = {
    "gcb": MethodSettings(configs.GCBConfig, GCB),
    "cpv": MethodSettings(configs.CPVConfig, _presets({**BASELINE_PAPER, "composition_weight": 0.0})),
    "gc_dbc": MethodSettings(configs.GCDBCConfig, _presets(GC_DBC_PAPER)),
    "cc_vae": MethodSettings(configs.CCVAEConfig, BASELINE),
    "vae": MethodSettings(configs.VAEConfig, STATE),
    "cpc": MethodSettings(configs.ContrastiveConfig, STATE),
    "curl": MethodSettings(configs.CURLConfig, STATE),
    "rad": MethodSettings(configs.PixelConfig, RAD),
    "pixel": MethodSettings(configs.PixelConfig, PIXEL),
    "cta": MethodSettings(configs.CTAConfig, BASELINE),
    "gcbc": MethodSettings(configs.BCConfig, CLONING),
    "goal_agnostic_bc": MethodSettings(configs.BCConfig, CLONING),
}
"""By method, in the order of the paper's table, then the methods that are not in it."""
