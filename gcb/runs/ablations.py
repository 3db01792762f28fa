"""Ablations of GCB, each of which differs from its reference in one setting.

Most are those of the paper's appendix: `figure` is the label in the paper's source.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from gcb.errors import GCBError, lookup
from gcb.runs.config import TrainConfig, make_config
from gcb.utils.dataclass_io import Difference, differences, to_dict


@dataclass(frozen=True)
class Ablation:
    """GCB with one setting changed."""

    name: str
    figure: str
    """Label of the paper's figure, or "components" and "partners" for ablations that are not in the paper."""
    description: str
    env: str
    """Environment of the experiment: "drawer" or "button_drawer"."""
    changes: Mapping[str, Any]
    """Changes of the preset's `TrainConfig`."""
    reference: str | None = None
    """The ablation to compare with; None for the unchanged preset."""


def _ablation(name: str, figure: str, description: str, reference: str | None = None, **settings: Any) -> Ablation:
    """Return an ablation of the settings of the method."""
    env = "drawer" if figure == "ablatedim" else "button_drawer"
    return Ablation(name, figure, description, env, {"method_config": settings}, reference)


_MODEL = "learned model of the next observation"

_ALL = (
    *(
        _ablation(f"dimension_{size}", "ablatedim", f"φ and ψ of dimension {size}", size=size)
        for size in (32, 64, 128, 512)
    ),
    _ablation("ungrounded", "ablateground", "L_ψ without φ(g, g)", grounded=False),
    _ablation("left_l2", "ablatemetric", "ℓ2 norm on the left of L_φ, as in the paper", left_norm="l2"),
    _ablation("both_l2", "ablatemetric", "ℓ2 norm on both sides of L_φ", "left_l2", left_norm="l2", right_norm="l2"),
    _ablation("critic_gradient", "ablateCG", "encoders trained by the critic's gradient", rl_gradient="critic"),
    _ablation("both_gradients", "ablateCG", "encoders trained by the actor's and critic's", rl_gradient="both"),
    _ablation(
        *("no_gradient", "ablateCG", "no RL gradient into the encoders", "psi_gradient"),
        rl_gradient="none",
        linear_psi=False,
    ),
    _ablation("no_reward_decoder", "ablatedecoder", "no reward decoder", reward_decoder=False),
    _ablation("deterministic_dynamics", "ablatedynamics", f"{_MODEL}: deterministic", dynamics="deterministic"),
    _ablation("probabilistic_dynamics", "ablatedynamics", f"{_MODEL}: Gaussian", dynamics="probabilistic"),
    _ablation("ensemble_dynamics", "ablatedynamics", f"{_MODEL}: ensemble of five", dynamics="ensemble"),
    _ablation("separate_encoders", "components", "φ with an encoder of its own for stacked images", shared_trunk=False),
    _ablation("only_analogy_policy", "components", "one policy, on the bottleneck's code", policies="analogy"),
    _ablation("goal_embedding", "components", "by goal π(ψ(s), ψ(g)), as in the paper", goal_condition="goal"),
    _ablation(
        "no_partners", "partners", "no partners: every example is the episode's own", partners={"source": "none"}
    ),
    _ablation("pixel_partners", "partners", "partners by pixels instead of the metric", partners={"source": "pixels"}),
    _ablation("random_partners", "partners", "partners by chance", partners={"source": "random"}),
    _ablation("no_phi_loss", "components", "no L_φ", phi_weight=0.0),
    _ablation("no_psi_loss", "components", "no L_ψ", psi_weight=0.0),
    _ablation("psi_gradient", "components", "L_ψ trains ψ itself, as in the paper", linear_psi=False),
    _ablation("no_policy_distance", "components", "metric of rewards only", policy_distance_weight=0.0),
    _ablation("no_bottleneck", "components", "analogy policy on φ without a bottleneck", bottleneck_dim=None),
    _ablation("target_network", "components", "target network φ̄ instead of a stop-gradient", tau=0.01),
    *(
        Ablation(name, "components", description, "button_drawer", changes)
        for name, description, changes in (
            ("unweighted", "actions without advantage weights", {"iql": {"temperature": inf}}),
            ("no_distillation", "analogy policy learns from the data alone", {"iql": {"distillation": 0.0}}),
            ("no_flips", "no horizontal flips", {"horizontal_flip": False}),
        )
    ),
)

ABLATIONS: dict[str, Ablation] = {ablation.name: ablation for ablation in _ALL}


def get_ablation(name: str) -> Ablation:
    """Return the ablation of this name."""
    return lookup(ABLATIONS, name, "ablation")


def ablated_config(name: str, preset: str = "laptop", changes: Mapping[str, Any] | None = None) -> TrainConfig[Any]:
    """Return the configuration of an ablation in a preset, with further `changes` such as {"seed": 1}."""
    config, found = _config(get_ablation(name), preset, changes), ablation_changes(name, preset)
    if len(found) != 1:
        what = "; ".join(map(str, found)) or "nothing"
        raise GCBError(f"In the preset {preset} the ablation {name} changes {what}; one field was expected.")
    return config


def ablation_changes(name: str, preset: str = "laptop") -> list[Difference]:
    """Return where an ablation differs from its reference."""
    ablation = get_ablation(name)
    changes = {} if ablation.reference is None else get_ablation(ablation.reference).changes
    reference = make_config("gcb", preset, changes)
    return differences(to_dict(reference), to_dict(_config(ablation, preset, None)))


def _config(ablation: Ablation, preset: str, changes: Mapping[str, Any] | None) -> TrainConfig[Any]:
    return make_config("gcb", preset, {**(changes or {}), **ablation.changes})
