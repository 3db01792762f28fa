"""Encoders and multilayer perceptrons. Shapes are computed from the observation, never looked up."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

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
    # A thirteenth of its multiply-adds: quarters the picture at once, and learned as much per step in our trials.
    "small": (Convolution(32, 4, 4), Convolution(64, 3, 2), Convolution(64, 3)),
}


def mlp(sizes: Sequence[int], *, final_norm: bool = False) -> nn.Sequential:
    """Linear layers of these sizes with ReLU between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.ReLU(), nn.Linear(inputs, outputs)] if layers else [nn.Linear(inputs, outputs)]
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
    but the one to floating point. Pixels are scaled to [-.5, .5] by the first layer's weights, not one by one.
    """

    def __init__(self, layers: Sequence[Convolution], shape: tuple[int, int, int], size: int, norm: bool):
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
        for parameter in self.convolutions.parameters():
            if parameter.ndim == 4:
                parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
        self.linear = nn.Linear(channels * height * width, size)
        self.norm = nn.LayerNorm(size) if norm else nn.Identity()

    def forward(self, *images: Tensor) -> Tensor:
        """Images that stand side by side are given one by one."""
        # In place: a copy of the largest activations would cost a quarter of the forward pass.
        hidden = self._first_layer(images).relu_()
        for layer in self.convolutions[1:]:
            hidden = layer(hidden).relu_()
        return self.norm(self.linear(hidden.flatten(1))).float()

    def _first_layer(self, images: Sequence[Tensor]) -> Tensor:
        """The first convolution of the images side by side, as a sum over them: half the cost of a copy side by side.

        Its weights do to x in 0 … 255 what the layer does to x / 255 - .5; exact, for there is no padding.
        """
        layer = self.convolutions[0]
        assert isinstance(layer, nn.Conv2d)
        assert layer.bias is not None
        weight, bias = layer.weight / 255.0, layer.bias - 0.5 * layer.weight.sum((1, 2, 3))
        parts = weight.split([image.shape[-1] for image in images], dim=1)
        sums = [
            functional.conv2d(image.permute(0, 3, 1, 2).to(weight.dtype), part, None if index else bias, layer.stride)
            for index, (image, part) in enumerate(zip(images, parts, strict=True))
        ]
        for other in sums[1:]:
            sums[0].add_(other)
        return sums[0]


class VectorEncoder(nn.Module):
    """The same for vector observations: a perceptron."""

    def __init__(self, inputs: int, size: int, norm: bool):
        super().__init__()
        self.layers = mlp([inputs, 256, 256, size], final_norm=norm)

    def forward(self, *vectors: Tensor) -> Tensor:
        return self.layers(torch.cat(vectors, dim=-1).float()).float()


def parameters_size(module: nn.Module) -> int:
    """How many numbers are learned."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)
