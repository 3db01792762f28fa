"""An agent with known embeddings: images hold numbers, and ψ reads them."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcb.agent.agent import Agent
from gcb.analysis.scenes import Scenes
from gcb.methods import Shapes
from gcb.methods.bc import BCConfig, GoalAgnosticBC

SIDE = 32
CONSTANT = torch.tensor([7.0, -3.0, 1.0])


class Reader(GoalAgnosticBC):
    """ψ is the image's first pixel; φ(s, g) = ψ(g) - ψ(s) + a constant, so that φ(g, g) is not 0."""

    name = "reader"

    def psi(self, state: Tensor) -> Tensor:
        return state[:, 0, 0].float()

    def phi(self, state: Tensor, goal: Tensor) -> Tensor:
        return self.psi(goal) - self.psi(state) + CONSTANT


class WithoutPhi(Reader):
    """Has no φ."""

    name = "without_phi"

    def phi(self, state: Tensor, goal: Tensor) -> Tensor:
        raise NotImplementedError("without_phi has no task embedding φ")


class MeanValue(torch.nn.Module):
    """Stands in for IQL and its policies: the value is the mean of the inputs."""

    def policy(self, name: str) -> "MeanValue":
        return self

    def value(self, inputs: Tensor) -> Tensor:
        return inputs.mean(1, keepdim=True)


def toy_agent(method: type[GoalAgnosticBC] = Reader) -> Agent:
    shapes = Shapes((SIDE, SIDE, 3), 2)
    torch.manual_seed(0)
    built = method(BCConfig(size=4), shapes).eval().requires_grad_(False)
    return Agent(built, MeanValue(), shapes, torch.device("cpu"))  # pyright: ignore[reportArgumentType]


def image(*numbers: int) -> np.ndarray:
    """Return an image that holds three numbers."""
    return np.broadcast_to(np.array(numbers, np.uint8), (SIDE, SIDE, 3)).copy()


def hidden(pose: tuple[float, float, float], top: float, bottom: float = 0.0, button: float = -0.14) -> np.ndarray:
    """Return the hidden state of a cabinet at `pose` with these drawer openings; the gripper is above its centre."""
    x, y, yaw = pose
    axis = np.array([np.sin(yaw), -np.cos(yaw)])
    handle, front = (
        np.array([x, y]) + (closed + opening) * axis for closed, opening in ((0.1375, top), (0.08125, bottom))
    )
    state = [x, y, -0.1, 0, 0, 0, 1, 0, *handle, -0.22, *front, -0.34, button]
    return np.array(state, np.float32)


def scenes_of(rows: list[dict[str, Any]]) -> Scenes:
    """Build scenes from rows of their fields."""
    return Scenes(**{name: np.stack([np.asarray(row[name]) for row in rows]) for name in rows[0]})
