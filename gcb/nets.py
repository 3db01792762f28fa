"""Encoders and multilayer perceptrons. Shapes are computed from the observation, never looked up."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from gcb.errors import GCBError


@dataclass(frozen=True)
class Convolution:
    """One layer of a convolutional encoder."""

    channels: int
    kernel: int
    stride: int = 1


EncoderKind = Literal["paper", "small"]

ENCODERS: dict[str, tuple[Convolution, ...]] = {
    # The paper's (appendix "Implementation Details"): six 3×3 layers of 32 filters, stride 2 in the first.
    "paper": (Convolution(32, 3, 2), *[Convolution(32, 3)] * 5),
    # About a sixth of its multiply-adds: halves the picture three times before it looks closely.
    "small": (Convolution(32, 4, 2), Convolution(32, 3, 2), Convolution(64, 3, 2), Convolution(64, 3)),
}


def mlp(sizes: Sequence[int], *, final_norm: bool = False) -> nn.Sequential:
    """Linear layers of these sizes with ReLU between them."""
    layers: list[nn.Module] = []
    for index, (inputs, outputs) in enumerate(zip(sizes[:-1], sizes[1:], strict=True)):
        layers.append(nn.Linear(inputs, outputs))
        if index < len(sizes) - 2:
            layers.append(nn.ReLU())
    if final_norm:
        layers.append(nn.LayerNorm(sizes[-1]))
    return nn.Sequential(*layers)


def encoder(kind: str, observation: tuple[int, ...], size: int, *, stacked: int = 1, norm: bool = True) -> nn.Module:
    """A network from observations (`stacked` of them side by side) to vectors of `size`.

    Images (height, width, channels) as uint8 go through convolutions, vectors through a perceptron.
    """
    if len(observation) == 1:
        return VectorEncoder(observation[0] * stacked, size, norm)
    if len(observation) != 3:
        raise GCBError(f"Observations have shape {observation}; accepted: (height, width, channels) or (size,).")
    if kind not in ENCODERS:
        raise GCBError(f"Unknown encoder {kind!r}; choose one of {', '.join(ENCODERS)}.")
    height, width, channels = observation
    return ImageEncoder(ENCODERS[kind], (height, width, channels * stacked), size, norm)


class ImageEncoder(nn.Module):
    """Convolutions, then one linear layer and (by choice) a layer norm. Takes uint8 (batch, height, width, channels).

    A batch of height × width × channels bytes *is* a channels-last batch of channels × height × width: no copy is made
    but the one to floating point.
    """

    def __init__(self, layers: Sequence[Convolution], shape: tuple[int, int, int], size: int, norm: bool):
        super().__init__()
        height, width, channels = shape
        convolutions: list[nn.Module] = []
        for layer in layers:
            convolutions += [nn.Conv2d(channels, layer.channels, layer.kernel, layer.stride), nn.ReLU()]
            height, width = ((side - layer.kernel) // layer.stride + 1 for side in (height, width))
            channels = layer.channels
            if min(height, width) < 1:
                raise GCBError(f"Images of {shape[0]}×{shape[1]} pixels are too small for this encoder.")
        self.convolutions = nn.Sequential(*convolutions).to(memory_format=torch.channels_last)
        self.head = nn.Sequential(nn.Linear(channels * height * width, size), nn.LayerNorm(size) if norm else nn.Identity())

    def forward(self, image: Tensor) -> Tensor:
        pixels = image.permute(0, 3, 1, 2).to(self.head[0].weight.dtype).div_(255.0).sub_(0.5)
        return self.head(self.convolutions(pixels).flatten(1))


class VectorEncoder(nn.Module):
    """The same for vector observations: a perceptron."""

    def __init__(self, inputs: int, size: int, norm: bool):
        super().__init__()
        self.layers = mlp([inputs, 256, 256, size], final_norm=norm)

    def forward(self, vector: Tensor) -> Tensor:
        return self.layers(vector.to(self.layers[0].weight.dtype))


def parameters_size(module: nn.Module) -> int:
    """How many numbers are learned."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)
