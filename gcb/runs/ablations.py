"""The ablations of the paper's appendix, and of what is added here: each one field away from what it is compared with.

Names of figures are the labels in the paper's source.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gcb.errors import GCBError, lookup
from gcb.runs.config import TrainConfig, make_config
from gcb.utils.dataclass_io import Difference, differences, to_dict


@dataclass(frozen=True)
class Ablation:
    """GCB with something changed."""

    name: str
    figure: str
    """The paper's figure that shows it, or "components" for what the paper does not have."""
    question: str
    """What it asks, in words."""
    env: str
    """Where the paper asks it: "drawer" or "button_drawer"."""
    changes: Mapping[str, Any]
    """What differs from the plain preset, as changes of `TrainConfig`."""
    reference: str | None = None
    """The ablation that it is one field away from; none for the plain preset."""


def _of(name: str, figure: str, question: str, reference: str | None = None, **settings: Any) -> Ablation:
    env = "drawer" if figure == "ablatedim" else "button_drawer"
    return Ablation(name, figure, question, env, {"method_config": settings}, reference)


_LEARNED = "a learned model for the next observation"

_ALL = (
    *(_of(f"dimension_{size}", "ablatedim", f"φ and ψ in {size} dimensions", size=size) for size in (32, 64, 128, 512)),
    _of("ungrounded", "ablateground", "L_ψ without φ(g, g)", grounded=False),
    _of("left_l2", "ablatemetric", "ℓ2 on the left of L_φ, as in the paper", left_norm="l2"),
    _of("both_l2", "ablatemetric", "ℓ2 on both sides of L_φ", "left_l2", left_norm="l2", right_norm="l2"),
    _of("critic_gradient", "ablateCG", "the critic's gradient instead of the preset's", rl_gradient="critic"),
    _of("both_gradients", "ablateCG", "the actor's and the critic's gradient", rl_gradient="both"),
    _of("no_gradient", "ablateCG", "no gradient of the policy's learner", rl_gradient="none"),
    _of("no_reward_decoder", "ablatedecoder", "no reward decoder", reward_decoder=False),
    _of("deterministic_dynamics", "ablatedynamics", f"{_LEARNED}: one network", dynamics="deterministic"),
    _of("probabilistic_dynamics", "ablatedynamics", f"{_LEARNED}: a Gaussian", dynamics="probabilistic"),
    _of("ensemble_dynamics", "ablatedynamics", f"{_LEARNED}: five networks", dynamics="ensemble"),
    _of("no_phi_loss", "components", "what L_φ is worth", phi_weight=0.0),
    _of("no_psi_loss", "components", "what L_ψ is worth", psi_weight=0.0),
    _of("no_policy_distance", "components", "a metric of rewards alone", policy_distance_weight=0.0),
    _of("no_bottleneck", "components", "φ itself instead of the narrow passage", bottleneck_dim=None),
    _of("no_target", "components", "stop-gradient instead of a moving average", tau=None),
    _of("current_pair", "components", "trained on φ(s_t, g) only, as in the paper", p_initial_pair=0.0),
    Ablation(
        "no_absorbing", "components", "no samples of standing still at the goal", "button_drawer", {"p_absorbing": 0.0}
    ),
)

ABLATIONS: dict[str, Ablation] = {one.name: one for one in _ALL}


def ablation_named(name: str) -> Ablation:
    """The ablation of this name."""
    return lookup(ABLATIONS, name, "ablation")


def ablated_config(name: str, preset: str = "laptop", changes: Mapping[str, Any] | None = None) -> TrainConfig[Any]:
    """The configuration of an ablation in a preset; `changes` such as {"seed": 1} apply to it and its reference."""
    one = ablation_named(name)
    config, found = _made(one, preset, changes), difference(name, preset)
    if len(found) != 1:
        what = "; ".join(map(str, found)) or "nothing"
        raise GCBError(f"In the preset {preset} the ablation {name} changes {what}; one field was expected.")
    return config


def difference(name: str, preset: str = "laptop") -> list[Difference]:
    """Where an ablation differs from its reference, one sentence for each field."""
    one = ablation_named(name)
    reference = make_config("gcb", preset) if one.reference is None else _made(ABLATIONS[one.reference], preset, None)
    return differences(to_dict(reference), to_dict(_made(one, preset, None)))


def _made(one: Ablation, preset: str, changes: Mapping[str, Any] | None) -> TrainConfig[Any]:
    return make_config("gcb", preset, {**(changes or {}), **one.changes})
