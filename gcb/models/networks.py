"""Encoders, decoders, multilayer perceptrons and target networks. Layer sizes follow from the observation's shape."""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from gcb.errors import GCBError

Network = TypeVar("Network", bound=nn.Module)


@dataclass(frozen=True)
class Convolution:
    """One layer of a convolutional encoder."""

    channels: int
    kernel: int
    stride: int = 1


ENCODERS: dict[str, tuple[Convolution, ...]] = {
    # The paper's (appendix "Implementation Details"): six 3×3 layers of 32 filters, stride 2 in the first.
    "paper": (Convolution(32, 3, 2), *[Convolution(32, 3)] * 5),
    # A thirteenth of its multiply-adds: stride 4 in the first layer. It learns as much per step.
    "small": (Convolution(32, 4, 4), Convolution(64, 3, 2), Convolution(64, 3)),
}


def mlp(sizes: Sequence[int], *, final_norm: bool = False) -> nn.Sequential:
    """Return linear layers of these sizes with ReLU between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.ReLU(), nn.Linear(inputs, outputs)] if layers else [nn.Linear(inputs, outputs)]
    if final_norm:
        layers.append(nn.LayerNorm(sizes[-1]))
    return nn.Sequential(*layers)


def parameter_count(module: nn.Module) -> int:
    """Return the number of trained parameters."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)


def layer_normed(embedding: Tensor) -> Tensor:
    """Scale embeddings to mean 0 and variance 1 over their dimensions, without learned parameters."""
    return functional.layer_norm(embedding, embedding.shape[-1:])


# ---- target networks -----------------------------------------------------------------------------------------------


def make_target(network: Network) -> Network:
    """Return a copy that no optimizer trains; `soft_update` moves it."""
    return copy.deepcopy(network).requires_grad_(False)


@torch.no_grad()
def soft_update(target: nn.Module, source: nn.Module, tau: float) -> None:
    """Move a target network towards its source: target ← (1 - tau) target + tau source."""
    for target_parameter, source_parameter in zip(target.parameters(), source.parameters(), strict=True):
        target_parameter.lerp_(source_parameter, tau)


# ---- encoders ------------------------------------------------------------------------------------------------------


def encoder(name: str, observation: tuple[int, ...], size: int, *, stacked: int = 1, norm: bool = True) -> nn.Module:
    """Return a network from observations, of which it takes `stacked`, to vectors of `size`.

    uint8 images (height, width, channels) go through convolutions, vectors (size,) through a perceptron.
    """
    trunk = make_trunk(name, observation, stacked)
    return Encoder(trunk, StateHead(trunk.shape, size, norm))


def make_trunk(name: str, observation: tuple[int, ...], stacked: int = 1) -> "ImageTrunk | VectorTrunk":
    """Return the first layers of an encoder, whose features several heads can share."""
    if len(observation) == 1:
        return VectorTrunk(observation[0] * stacked)
    if len(observation) != 3:
        raise GCBError(f"Observations have shape {observation}; accepted: (height, width, channels) or (size,).")
    if name not in ENCODERS:
        raise GCBError(f"Unknown encoder {name!r}; choose one of {', '.join(ENCODERS)}.")
    height, width, channels = observation
    return ImageTrunk(ENCODERS[name], (height, width, channels * stacked))


class Encoder(nn.Module):
    """A trunk and a head. Observations to be stacked are separate arguments."""

    def __init__(self, trunk: nn.Module, head: nn.Module):
        super().__init__()
        self.trunk, self.head = trunk, head

    def forward(self, *observations: Tensor) -> Tensor:
        return self.head(self.trunk(*observations))


class ImageTrunk(nn.Module):
    """Convolutions of uint8 images (batch, height, width, channels). Returns feature maps of `shape`.

    A batch of height × width × channels bytes *is* a channels-last batch of channels × height × width: the only copy is
    the conversion to floating point. Pixels are scaled to [-.5, .5] through the first layer's weights, not one by one.
    """

    def __init__(self, layers: Sequence[Convolution], shape: tuple[int, int, int]):
        super().__init__()
        height, width, channels = shape
        convolutions: list[nn.Conv2d] = []
        for layer in layers:
            convolutions.append(nn.Conv2d(channels, layer.channels, layer.kernel, layer.stride))
            height, width = ((side - layer.kernel) // layer.stride + 1 for side in (height, width))
            channels = layer.channels
            if min(height, width) < 1:
                raise GCBError(f"Images of {shape[0]}×{shape[1]} pixels are too small for this encoder.")
        self.convolutions = nn.ModuleList(convolutions)
        _store_channels_last(self.convolutions)
        self.shape: tuple[int, ...] = (channels, height, width)

    def forward(self, *images: Tensor) -> Tensor:
        # In place: a copy of the largest activations would cost a quarter of the forward pass.
        hidden = self._first_layer(images).relu_()
        for layer in self.convolutions[1:]:
            hidden = layer(hidden).relu_()
        return hidden

    def _first_layer(self, images: Sequence[Tensor]) -> Tensor:
        """Return the first convolution of the stacked images as a sum over them: half the cost of stacking a copy.

        Its weights do to x in 0 … 255 what the layer does to x / 255 - .5; this is exact, for there is no padding.
        """
        layer = self.convolutions[0]
        assert isinstance(layer, nn.Conv2d)
        assert layer.bias is not None
        weight, bias = layer.weight / 255.0, layer.bias - 0.5 * layer.weight.sum((1, 2, 3))
        slices = weight.split([image.shape[-1] for image in images], dim=1)
        sums = [
            functional.conv2d(image.permute(0, 3, 1, 2).to(weight.dtype), part, None if index else bias, layer.stride)
            for index, (image, part) in enumerate(zip(images, slices, strict=True))
        ]
        for other in sums[1:]:
            sums[0].add_(other)
        return sums[0]


class VectorTrunk(nn.Module):
    """A perceptron for vector observations."""

    def __init__(self, inputs: int):
        super().__init__()
        self.layers = nn.Sequential(mlp([inputs, 256, 256]), nn.ReLU())
        self.shape: tuple[int, ...] = (256,)

    def forward(self, *vectors: Tensor) -> Tensor:
        return self.layers(torch.cat(vectors, dim=-1).float())


class StateHead(nn.Module):
    """A linear layer over a trunk's features, and an optional layer norm."""

    def __init__(self, shape: tuple[int, ...], size: int, norm: bool):
        super().__init__()
        self.linear = nn.Linear(prod(shape), size)
        self.norm = nn.LayerNorm(size) if norm else nn.Identity()

    def forward(self, features: Tensor) -> Tensor:
        if features.ndim == 4:
            features = features.permute(0, 2, 3, 1)  # the order in memory: flattening copies nothing
        return self.norm(self.linear(features.flatten(1))).float()


class PairHead(nn.Module):
    """Fuses a trunk's features of two observations into one vector.

    Feature maps preserve positions: a 1×1 and a 3×3 convolution over both maps compare the same place in the two
    observations before a linear layer combines all places. Vectors go through a hidden layer instead.
    """

    def __init__(self, shape: tuple[int, ...], size: int, norm: bool):
        super().__init__()
        channels, *sides = shape
        if not sides:
            self.fuse: nn.Module = nn.Sequential(nn.Linear(2 * channels, channels), nn.ReLU())
        else:
            padding = 0 if min(sides) >= 3 else 1
            first, second = nn.Conv2d(2 * channels, channels, 1), nn.Conv2d(channels, channels, 3, padding=padding)
            self.fuse = nn.Sequential(first, nn.ReLU(inplace=True), second, nn.ReLU(inplace=True))
            _store_channels_last(self.fuse)
            sides = [side - 2 + 2 * padding for side in sides]
        self.head = StateHead((channels, *sides), size, norm)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        return self.head(self.fuse(torch.cat([first, second], dim=1)))


def _store_channels_last(module: nn.Module) -> None:
    """Store convolution weights in the memory layout of the images."""
    for parameter in module.parameters():
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)


# ---- decoders ------------------------------------------------------------------------------------------------------


def decoder(name: str, observation: tuple[int, ...], inputs: int) -> nn.Module:
    """Return a network from vectors to observations as `as_target` scales them: the mirror image of `encoder`."""
    if len(observation) == 1:
        return mlp([inputs, 256, 256, observation[0]])
    height, width, channels = observation
    return ImageDecoder(ENCODERS[name], (height, width, channels), inputs)


class ImageDecoder(nn.Module):
    """A linear layer, then an encoder's convolutions transposed. Returns (batch, channels, height, width).

    Some strides leave pixels at an image's edge out of every window, and an exact mirror would never write them. So
    each layer's input is large enough for its output to cover the image, and the excess is cut off.
    """

    def __init__(self, layers: Iterable[Convolution], shape: tuple[int, int, int], inputs: int):
        super().__init__()
        height, width, channels = shape
        transposed: list[nn.Module] = []
        self._sides: list[tuple[int, int]] = []
        for layer in layers:
            transposed.insert(0, nn.ConvTranspose2d(layer.channels, channels, layer.kernel, layer.stride))
            self._sides.insert(0, (height, width))
            height, width = (max(1, -(-(side - layer.kernel) // layer.stride) + 1) for side in (height, width))
            channels = layer.channels
        self._smallest = (channels, height, width)
        self.linear = nn.Linear(inputs, channels * height * width)
        self.layers = nn.ModuleList(transposed)

    def forward(self, code: Tensor) -> Tensor:
        hidden = self.linear(code).view(-1, *self._smallest)
        for layer, (height, width) in zip(self.layers, self._sides, strict=True):
            hidden = layer(hidden.relu())[:, :, :height, :width]
        return hidden


def as_target(observation: Tensor) -> Tensor:
    """Return observations as a decoder's target: images channels first in [-.5, .5], vectors unchanged."""
    if observation.ndim == 2:
        return observation.float()
    return observation.permute(0, 3, 1, 2).float() / 255 - 0.5


def as_images(decoded: Tensor) -> Tensor:
    """Return an image decoder's output as uint8 images, channels last."""
    return ((decoded + 0.5) * 255).round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1)
