"""Small methods and batches for the tests of methods."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gcb.data import Batch, GoalSampling, Sampler
from gcb.methods import Method, Shapes, method_named
from gcb.models.networks import ImageEncoder
from helpers.tiny import SIZE, tiny_config, tiny_dataset

ROWS = 8
IMAGES = Shapes((SIZE, SIZE, 3), 2)
VECTORS = Shapes((7,), 2)


def make_method(name: str, shapes: Shapes = IMAGES, seed: int = 0, **settings: Any) -> Any:
    """Build a method with the settings of the preset smoke and these changes, and weights from a seed."""
    torch.manual_seed(seed)
    return method_named(name)(tiny_config(name, method_config=settings).method_config, shapes)


def image_batch(rows: int = ROWS, seed: int = 0) -> Any:
    """Return transitions of the tiny dataset with all optional frames."""
    sampler = Sampler(tiny_dataset(), GoalSampling(), np.random.default_rng(seed))
    return sampler.sample(rows, extra_frames=["initial_state"]).to("cpu")


def vector_batch(rows: int = ROWS, seed: int = 0) -> Any:
    """Return transitions between random vectors."""
    generator = torch.Generator().manual_seed(seed)
    frames = [torch.randn(rows, 7, generator=generator) for _ in range(4)]
    action, reward = torch.rand(rows, 2, generator=generator) * 2 - 1, (torch.arange(rows) % 2).float()
    state, next_state, goal, initial_state = frames
    return Batch(state, next_state, goal, action, reward, reward.bool(), initial_state)


def fit(method: Method, batch: Batch, steps: int, rate: float = 3e-3) -> list[float]:
    """Minimise a method's own loss on one batch and return the loss at every step."""
    optimizer = torch.optim.Adam([weight for weight in method.parameters() if weight.requires_grad], rate)
    losses = []
    for _ in range(steps):
        loss = method.compute_loss(batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        method.after_step()
        losses.append(loss.item())
    return losses


def encoder_gradient(method: nn.Module, output: Tensor) -> float:
    """Return the sum of absolute gradients that an output sends into the trained encoders."""
    parameters = [
        parameter
        for encoder in method.modules()
        if isinstance(encoder, ImageEncoder)
        for parameter in encoder.parameters()
        if parameter.requires_grad
    ]
    if not output.requires_grad:
        return 0.0
    # Not the sum: after a layer norm that is constant.
    probe = output.square().sum() + output[:, :3].sum()
    gradients = torch.autograd.grad(probe, parameters, allow_unused=True, retain_graph=True)
    return sum(float(gradient.abs().sum()) for gradient in gradients if gradient is not None)
