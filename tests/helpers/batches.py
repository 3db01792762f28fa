"""Small methods and batches for the tests of methods."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gcb.data import Batch, GoalSampling, Sampler
from gcb.methods import Method, Shapes, method_named
from gcb.models.networks import Encoder, ImageTrunk, PairHead, StateHead
from helpers.tiny import SIZE, tiny_config, tiny_dataset

ROWS = 8
IMAGES = Shapes((SIZE, SIZE, 3), 2)
VECTORS = Shapes((7,), 2)
NO_PARTNERS: dict[str, Any] = {"partners": {"source": "none"}}


def make_method(name: str, shapes: Shapes = IMAGES, seed: int = 0, **settings: Any) -> Any:
    """Build a method with the settings of the preset smoke and these changes, and weights from a seed."""
    torch.manual_seed(seed)
    return method_named(name)(tiny_config(name, method_config=settings).method_config, shapes)


def image_batch(rows: int = ROWS, seed: int = 0, group_size: int = 1) -> Any:
    """Return transitions of the tiny dataset with all optional frames; in groups there are final states too."""
    settings = {"group_size": group_size, "p_final_state": 0.5}
    sampler = Sampler(tiny_dataset(), GoalSampling(), np.random.default_rng(seed), **settings)
    return sampler.sample(rows, extra_frames=["initial_state"]).to("cpu")


def vector_batch(rows: int = ROWS, seed: int = 0, group_size: int = 1) -> Any:
    """Return transitions between random vectors."""
    generator, groups = torch.Generator().manual_seed(seed), rows // group_size
    state, next_state, goal, initial_state = (
        torch.randn(count, 7, generator=generator) for count in (rows, groups, groups, groups)
    )
    action, reward = torch.rand(rows, 2, generator=generator) * 2 - 1, (torch.arange(groups) % 2).float()
    final = torch.arange(rows) % (2 * group_size) == 2 * group_size - 1 if group_size > 1 else torch.zeros(rows).bool()
    return Batch(state, next_state, goal, action, final, reward, reward.bool(), initial_state)


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
    encoders = [part for part in method.modules() if isinstance(part, Encoder | ImageTrunk | StateHead | PairHead)]
    parameters = {id(weight): weight for part in encoders for weight in part.parameters() if weight.requires_grad}
    if not output.requires_grad:
        return 0.0
    # Not the sum: after a layer norm that is constant.
    probe = output.square().sum() + output[:, :3].sum()
    gradients = torch.autograd.grad(probe, list(parameters.values()), allow_unused=True, retain_graph=True)
    return sum(float(gradient.abs().sum()) for gradient in gradients if gradient is not None)


def gradient(network: nn.Module) -> float:
    """Return the sum of absolute gradients of a network's weights after a backward pass."""
    return sum(float(weight.grad.abs().sum()) for weight in network.parameters() if weight.grad is not None)
