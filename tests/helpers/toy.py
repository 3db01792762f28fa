"""An agent whose embeddings are known: its pictures carry numbers, and ψ reads them."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcb.agent.agent import Agent
from gcb.analysis.scenes import Scenes
from gcb.methods import Shapes
from gcb.methods.bc import CloningConfig, GoalAgnosticBC

SIDE = 32
CONSTANT = torch.tensor([7.0, -3.0, 1.0])


class Reader(GoalAgnosticBC):
    """ψ is the picture's first pixel; φ(s, g) = ψ(g) - ψ(s) + a constant, so that φ(g, g) is not 0."""

    name = "reader"

    def psi(self, state: Tensor) -> Tensor:
        return state[:, 0, 0].float()

    def phi(self, state: Tensor, goal: Tensor) -> Tensor:
        return self.psi(goal) - self.psi(state) + CONSTANT


class Half(Reader):
    """Has no φ."""

    name = "half"

    def phi(self, state: Tensor, goal: Tensor) -> Tensor:
        raise NotImplementedError("half has no task embedding φ")


class NoValue(torch.nn.Module):
    """In the place of IQL: the value is the mean of the features."""

    def value(self, inputs: Tensor) -> Tensor:
        return inputs.mean(1, keepdim=True)


def toy_agent(method: type[GoalAgnosticBC] = Reader) -> Agent:
    shapes = Shapes((SIDE, SIDE, 3), 2)
    torch.manual_seed(0)
    built = method(CloningConfig(size=4), shapes).eval().requires_grad_(False)
    return Agent(built, NoValue(), shapes, torch.device("cpu"))  # pyright: ignore[reportArgumentType]


def picture(*numbers: int) -> np.ndarray:
    """A picture that carries three numbers."""
    return np.broadcast_to(np.array(numbers, np.uint8), (SIDE, SIDE, 3)).copy()


def hidden(pose: tuple[float, float, float], top: float, bottom: float = 0.0, button: float = -0.14) -> np.ndarray:
    """The hidden state of a cabinet at `pose` whose drawers are so far open; the gripper is above its middle."""
    x, y, yaw = pose
    axis = np.array([np.sin(yaw), -np.cos(yaw)])
    handle, front = (np.array([x, y]) + (closed + by) * axis for closed, by in ((0.1375, top), (0.08125, bottom)))
    state = [x, y, -0.1, 0, 0, 0, 1, 0, *handle, -0.22, *front, -0.34, button]
    return np.array(state, np.float32)


def scenes_of(rows: list[dict[str, Any]]) -> Scenes:
    """Scenes from rows of their fields."""
    return Scenes(**{name: np.stack([np.asarray(row[name]) for row in rows]) for name in rows[0]})
