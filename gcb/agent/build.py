"""The networks that a configuration describes, and the device they run on."""

from typing import Any

import torch

from gcb.errors import GCBError
from gcb.methods import Method, Shapes, method_named
from gcb.models.iql import IQL
from gcb.runs.config import TrainConfig


def build(config: TrainConfig[Any], shapes: Shapes) -> tuple[Method, IQL]:
    """The networks that a configuration describes, for data of these shapes."""
    method = method_named(config.method)(config.method_config, shapes)
    return method, IQL(config.iql, method.state_size + method.task_size, shapes.action)


def pick_device(name: str) -> torch.device:
    """The device of this name, or for "auto" a CUDA GPU if there is one, else the CPU."""
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = "cuda" if available["cuda"] else "cpu"
    if not available.get(name):
        there = ", ".join(known for known, is_there in available.items() if is_there)
        raise GCBError(f"device is {name!r}; on this machine there is {there}.")
    return torch.device(name)
