"""Build the networks of a configuration, and pick the device they run on."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from gcb.errors import GCBError
from gcb.methods import Method, Shapes, method_named
from gcb.models.iql import IQL
from gcb.runs.config import TrainConfig

TRAINING_ONLY = (
    *("iql.critics", "iql.targets", "iql.policies.goal.value", "iql.policies.analogy.value"),
    *("method.reward_decoder", "method.action_decoder", "method.dynamics", "method._target"),
)
"""Networks that neither acting nor φ and ψ need; the weights of bundled agents come without them."""


def build(config: TrainConfig[Any], shapes: Shapes) -> tuple[Method, IQL]:
    """Build the method and IQL of a configuration, for data of these shapes."""
    method = method_named(config.method)(config.method_config, shapes)
    return method, IQL(config.iql, method.input_sizes, shapes.action, method.history_sizes)


def load_weights(modules: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Load weights of any precision into `modules`; networks of `TRAINING_ONLY` that they lack become None."""
    owners = dict(modules.named_modules())
    for name in TRAINING_ONLY:
        parent, _, attribute = name.rpartition(".")
        absent = not any(key.startswith(f"{name}.") for key in weights)
        if absent and hasattr(owners.get(parent), attribute):
            setattr(owners[parent], attribute, None)
    modules.load_state_dict(weights)


def pick_device(name: str) -> torch.device:
    """Return the device of this name; "auto" is CUDA if available, else the CPU."""
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = "cuda" if available["cuda"] else "cpu"
    if not available.get(name):
        accepted = ", ".join(device for device, is_available in available.items() if is_available)
        raise GCBError(f"device is {name!r}; available on this machine: {accepted}.")
    return torch.device(name)
