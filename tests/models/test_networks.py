"""Encoders: shapes from the observation, and the same result as the plain way of computing it."""

import pytest
import torch
from torch import nn

from gcb.errors import GCBError
from gcb.models.networks import ENCODERS, ImageEncoder, encoder, mlp, parameters_size


def plain_forward(network: ImageEncoder, *images: torch.Tensor) -> torch.Tensor:
    """What the encoder means, as one would first write it: scaled pixels side by side, channels first."""
    hidden = (torch.cat(images, -1).float() / 255 - 0.5).permute(0, 3, 1, 2).contiguous()
    for layer in network.convolutions:
        assert isinstance(layer, nn.Conv2d)
        weight = layer.weight.contiguous()
        hidden = torch.relu(nn.functional.conv2d(hidden, weight, layer.bias, layer.stride))
    return network.norm(network.linear(hidden.flatten(1)))


@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize("stacked", [1, 2])
def test_the_fast_way_is_the_plain_way(kind: str, stacked: int) -> None:
    torch.manual_seed(0)
    network = encoder(kind, (48, 64, 3), 10, stacked=stacked)
    assert isinstance(network, ImageEncoder)
    images = [torch.randint(256, (5, 48, 64, 3), dtype=torch.uint8) for _ in range(stacked)]
    fast, plain = network(*images), plain_forward(network, *images)
    assert fast.shape == (5, 10)
    torch.testing.assert_close(fast, plain, atol=1e-4, rtol=1e-4)

    weights = list(network.parameters())
    direction = torch.randn_like(fast)
    for one, other in zip(
        torch.autograd.grad((fast * direction).sum(), weights),
        torch.autograd.grad((plain * direction).sum(), weights),
        strict=True,
    ):
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-3)


def test_the_papers_encoder_has_the_papers_size() -> None:
    """facts.md §2: 21 × 21 × 32 = 14,112 numbers before the linear layer, 34 M multiply-adds."""
    network = encoder("paper", (64, 64, 3), 256)
    assert isinstance(network, ImageEncoder)
    assert network.linear.in_features == 14_112
    sides = [31, 29, 27, 25, 23, 21]
    multiply_adds = sum(side**2 * 9 * inputs * 32 for side, inputs in zip(sides, [3] + [32] * 5, strict=True))
    assert multiply_adds + 14_112 * 256 == pytest.approx(34e6, rel=0.05)


def test_the_input_is_not_changed() -> None:
    image = torch.randint(256, (2, 64, 64, 3), dtype=torch.uint8)
    before = image.clone()
    encoder("small", (64, 64, 3), 8)(image)
    assert torch.equal(image, before)


def test_a_layer_norm_only_by_choice() -> None:
    image = torch.randint(256, (4, 64, 64, 3), dtype=torch.uint8)
    features = encoder("small", (64, 64, 3), 32)(image)
    torch.testing.assert_close(features.mean(1), torch.zeros(4), atol=1e-5, rtol=0)
    torch.testing.assert_close(features.std(1, correction=0), torch.ones(4), atol=0.05, rtol=0)
    without = encoder("small", (64, 64, 3), 32, norm=False)(image)
    assert without.std(1).mean() < 0.5


def test_vectors_go_through_a_perceptron() -> None:
    network = encoder("small", (7,), 12, stacked=2)
    assert network(torch.randn(3, 7, dtype=torch.float64), torch.randn(3, 7)).shape == (3, 12)
    assert network(torch.randn(3, 7), torch.randn(3, 7)).dtype == torch.float32


def test_a_perceptrons_layers() -> None:
    layers = mlp([4, 8, 2], final_norm=True)
    assert [type(layer).__name__ for layer in layers] == ["Linear", "ReLU", "Linear", "LayerNorm"]
    assert parameters_size(mlp([4, 8, 2])) == 4 * 8 + 8 + 8 * 2 + 2


def test_impossible_observations_are_named() -> None:
    with pytest.raises(GCBError, match="8×8 pixels are too small"):
        encoder("paper", (8, 8, 3), 16)
    with pytest.raises(GCBError, match=r"shape \(4, 4\)"):
        encoder("small", (4, 4), 16)
    with pytest.raises(GCBError, match=r"'huge'; choose one of paper, small"):
        encoder("huge", (64, 64, 3), 16)
