"""What several methods are built from: settings of an encoder, contrast, decoders, slow copies, the narrow passage."""

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from gcb.errors import GCBError
from gcb.models.networks import ENCODERS, Convolution, EncoderKind, mlp

Network = TypeVar("Network", bound=nn.Module)


@dataclass(frozen=True)
class EncoderConfig:
    """One encoder and its optimiser; the defaults are those of GCB's ψ."""

    encoder: EncoderKind = "small"
    """Which convolutions; see gcb.models.networks.ENCODERS."""
    size: int = 256
    """Dimension of the encoder's output."""
    learning_rate: float = 1e-3
    """Learning rate of the encoder, 5e-4 in the paper."""
    weight_decay: float = 1e-4
    """Weight decay of the encoder."""

    def __post_init__(self) -> None:
        check_positive(self, "size", "learning_rate")
        check_not_negative(self, "weight_decay")


def check_positive(config: Any, *names: str) -> None:
    """Say which of these settings is not above 0; none is accepted for those that may be left out."""
    for name in names:
        value = getattr(config, name)
        if value is not None and not value > 0:
            raise GCBError(f"method_config.{name} is {value}; it must be above 0.")


def check_not_negative(config: Any, *names: str) -> None:
    """Say which of these settings is below 0."""
    for name in names:
        if not getattr(config, name) >= 0:
            raise GCBError(f"method_config.{name} is {getattr(config, name)}; it must not be negative.")


def check_share(config: Any, *names: str) -> None:
    """Say which of these settings does not lie above 0 and at most at 1."""
    for name in names:
        if not 0 < getattr(config, name) <= 1:
            raise GCBError(f"method_config.{name} is {getattr(config, name)}; it must lie above 0 and not beyond 1.")


def normalised(embedding: Tensor) -> Tensor:
    """Of mean 0 and variance 1 over its dimensions: what the policy sees has one scale."""
    return functional.layer_norm(embedding, embedding.shape[-1:])


# ---- slow copies ---------------------------------------------------------------------------------------------------


def make_target(network: Network) -> Network:
    """A copy that no optimiser trains; `soft_update` moves it."""
    return copy.deepcopy(network).requires_grad_(False)


@torch.no_grad()
def soft_update(slow: nn.Module, fast: nn.Module, rate: float) -> None:
    """Move a slow copy towards its original: slow ← (1 - rate) slow + rate fast."""
    for behind, ahead in zip(slow.parameters(), fast.parameters(), strict=True):
        behind.lerp_(ahead, rate)


# ---- contrast ------------------------------------------------------------------------------------------------------


class InfoNCE(nn.Module):
    """Which of a batch's keys belongs to which query, judged by the learned similarity qᵀ W k."""

    def __init__(self, size: int):
        super().__init__()
        self.bilinear = nn.Parameter(torch.eye(size) / size**0.5)

    def forward(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy of finding each query's own key (van den Oord et al. 2018, Eq. 4), and how often it is found.

        At chance the loss is the logarithm of the batch size; its optimum is 0.
        """
        similarity = query @ self.bilinear @ key.T
        own = torch.arange(len(query), device=query.device)
        return functional.cross_entropy(similarity, own), (similarity.argmax(1) == own).float().mean()


# ---- reconstruction ------------------------------------------------------------------------------------------------


def decoder(kind: str, observation: tuple[int, ...], inputs: int) -> nn.Module:
    """A network from vectors back to observations: the mirror of `gcb.models.networks.encoder`, at its cost.

    Pictures come out as `as_target` gives them.
    """
    if len(observation) == 1:
        return mlp([inputs, 256, 256, observation[0]])
    height, width, channels = observation
    return ImageDecoder(ENCODERS[kind], (height, width, channels), inputs)


class ImageDecoder(nn.Module):
    """One linear layer, then the encoder's convolutions backwards. Gives (batch, channels, height, width).

    Where an encoder leaves pixels at the edge unread, a mirror would leave them undrawn: each layer draws enough to
    cover its picture, and what stands over is cut off.
    """

    def __init__(self, layers: Iterable[Convolution], shape: tuple[int, int, int], inputs: int):
        super().__init__()
        height, width, channels = shape
        backwards: list[nn.Module] = []
        self._sides: list[tuple[int, int]] = []
        for layer in layers:
            backwards.insert(0, nn.ConvTranspose2d(layer.channels, channels, layer.kernel, layer.stride))
            self._sides.insert(0, (height, width))
            height, width = (max(1, -(-(side - layer.kernel) // layer.stride) + 1) for side in (height, width))
            channels = layer.channels
        self._smallest = (channels, height, width)
        self.linear = nn.Linear(inputs, channels * height * width)
        self.layers = nn.ModuleList(backwards)

    def forward(self, code: Tensor) -> Tensor:
        drawn = self.linear(code).view(-1, *self._smallest)
        for layer, (height, width) in zip(self.layers, self._sides, strict=True):
            drawn = layer(drawn.relu())[:, :, :height, :width]
        return drawn


def as_target(observation: Tensor) -> Tensor:
    """An observation as a decoder should give it back: pictures channels first in [-.5, .5], vectors as they are."""
    if observation.ndim == 2:
        return observation.float()
    return observation.permute(0, 3, 1, 2).float() / 255 - 0.5


def as_images(decoded: Tensor) -> Tensor:
    """What an image decoder gives as uint8, channels last."""
    return ((decoded + 0.5) * 255).round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1)


# ---- from the representation to the policy -------------------------------------------------------------------------


class Bottleneck(nn.Module):
    """A narrow way from what is known of a task to the policy; without a width everything passes as it is.

    It is GCB's: a code in [-1, 1], with noise in training. It has a hidden layer, because what comes in is two
    embeddings side by side that no network has compared yet, whereas φ(s, g) has seen both pictures.
    """

    def __init__(self, inputs: int, width: int | None, noise: float):
        super().__init__()
        self.layers = None if width is None else mlp([inputs, 256, width])
        self.size, self._noise = width or inputs, noise

    def forward(self, task: Tensor, *, noisy: bool = False) -> Tensor:
        if self.layers is None:
            return task
        code = torch.tanh(self.layers(task))
        return code + self._noise * torch.randn_like(code) if noisy else code
