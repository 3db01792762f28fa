"""Small batches, methods and training for the tests of methods."""

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
    """A method with smoke's settings and these changes, its weights drawn by seed."""
    torch.manual_seed(seed)
    return method_named(name)(tiny_config(name, method_config=settings).method_config, shapes)


def image_batch(rows: int = ROWS, seed: int = 0) -> Any:
    """Transitions of the tiny dataset with every frame that a method may ask for."""
    sampler = Sampler(tiny_dataset(), GoalSampling(), np.random.default_rng(seed))
    return sampler.sample(rows, extra_frames=["initial_state"]).to("cpu")


def vector_batch(rows: int = ROWS, seed: int = 0) -> Any:
    """Transitions of random vectors."""
    draws = torch.Generator().manual_seed(seed)
    frames = [torch.randn(rows, 7, generator=draws) for _ in range(4)]
    action, reward = torch.rand(rows, 2, generator=draws) * 2 - 1, (torch.arange(rows) % 2).float()
    state, following, goal, initial_state = frames
    return Batch(state, following, goal, action, reward, reward.bool(), initial_state)


def fit(method: Method, batch: Batch, steps: int, rate: float = 3e-3) -> list[float]:
    """Minimise a method's own loss on one batch; the loss at every step."""
    optimizer = torch.optim.Adam([one for one in method.parameters() if one.requires_grad], rate)
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
    """The size of the gradient that an output sends into the encoders that are trained."""
    parameters = [
        parameter
        for encoder in method.modules()
        if isinstance(encoder, ImageEncoder)
        for parameter in encoder.parameters()
        if parameter.requires_grad
    ]
    if not output.requires_grad:
        return 0.0
    # Not the sum: behind a layer norm that is a constant.
    probe = output.square().sum() + output[:, :3].sum()
    found = torch.autograd.grad(probe, parameters, allow_unused=True, retain_graph=True)
    return sum(float(gradient.abs().sum()) for gradient in found if gradient is not None)
