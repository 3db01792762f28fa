"""Encoders, decoders and target networks: shapes, and the same results as straightforward code."""

import pytest
import torch
from torch import nn

from gcb.errors import GCBError
from gcb.models.networks import (
    ENCODERS,
    Encoder,
    ImageTrunk,
    PairHead,
    StateHead,
    VectorTrunk,
    as_images,
    as_target,
    decoder,
    encoder,
    make_target,
    make_trunk,
    mlp,
    parameter_count,
    soft_update,
)


def reference_features(trunk: nn.Module, *images: torch.Tensor) -> torch.Tensor:
    """A trunk written straightforwardly: scaled pixels side by side, channels first."""
    assert isinstance(trunk, ImageTrunk)
    hidden = (torch.cat(images, -1).float() / 255 - 0.5).permute(0, 3, 1, 2).contiguous()
    for layer in trunk.convolutions:
        assert isinstance(layer, nn.Conv2d)
        weight = layer.weight.contiguous()
        hidden = torch.relu(nn.functional.conv2d(hidden, weight, layer.bias, layer.stride))
    return hidden


def in_memory_order(maps: torch.Tensor) -> torch.Tensor:
    """Flatten feature maps channels last, as they are in memory."""
    return maps.permute(0, 2, 3, 1).reshape(len(maps), -1)


def assert_equal_gradients(network: nn.Module, output: torch.Tensor, reference: torch.Tensor) -> None:
    """Compare the gradients that two results send into all weights."""
    weights, direction = list(network.parameters()), torch.randn_like(output)
    gradients = [torch.autograd.grad((result * direction).sum(), weights) for result in (output, reference)]
    torch.testing.assert_close(*gradients, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("stacked", [1, 2])
def test_encoder_equals_the_reference_forward_and_backward(name: str, stacked: int) -> None:
    torch.manual_seed(0)
    network = encoder(name, (48, 64, 3), 10, stacked=stacked)
    assert isinstance(network, Encoder)
    assert isinstance(network.head, StateHead)
    images = [torch.randint(256, (5, 48, 64, 3), dtype=torch.uint8) for _ in range(stacked)]
    output, features = network(*images), reference_features(network.trunk, *images)
    reference = network.head.norm(network.head.linear(in_memory_order(features)))
    assert output.shape == (5, 10)
    torch.testing.assert_close(output, reference, atol=1e-4, rtol=1e-4)
    assert_equal_gradients(network, output, reference)


@pytest.mark.parametrize(("name", "height", "padding"), [("paper", 48, 0), ("small", 48, 0), ("small", 32, 1)])
def test_heads_share_a_trunks_features(name: str, height: int, padding: int) -> None:
    """φ on the maps of two images equals the straightforward computation, and both heads train the trunk."""
    torch.manual_seed(0)
    trunk = make_trunk(name, (height, 64, 3))
    first, second = (torch.randint(256, (4, height, 64, 3), dtype=torch.uint8) for _ in range(2))
    features = trunk(first)
    assert features.shape == (4, *trunk.shape)
    head = PairHead(trunk.shape, 10, norm=True)
    assert isinstance(head.fuse, nn.Sequential)
    mix, compare = head.fuse[0], head.fuse[2]
    assert isinstance(mix, nn.Conv2d)
    assert isinstance(compare, nn.Conv2d)
    maps = torch.cat([reference_features(trunk, image) for image in (first, second)], 1)
    hidden = torch.relu(nn.functional.conv2d(maps, mix.weight.contiguous(), mix.bias))
    hidden = torch.relu(nn.functional.conv2d(hidden, compare.weight.contiguous(), compare.bias, padding=padding))
    reference = head.head.norm(head.head.linear(in_memory_order(hidden)))
    output = head(features, trunk(second))
    torch.testing.assert_close(output, reference, atol=1e-4, rtol=1e-4)
    assert_equal_gradients(nn.ModuleList([trunk, head]), output, reference)
    assert not torch.allclose(head(trunk(second), features), output)  # before and after are not the same
    torch.testing.assert_close(trunk(first), features)  # the heads change nothing in place


def test_one_pass_over_several_frames_equals_a_pass_over_each() -> None:
    trunk = make_trunk("small", (32, 32, 3))
    images = torch.randint(256, (6, 32, 32, 3), dtype=torch.uint8)
    torch.testing.assert_close(torch.cat([trunk(images[:2]), trunk(images[2:])]), trunk(images))


def test_paper_encoder_has_the_papers_size() -> None:
    """21 × 21 × 32 = 14,112 features before the linear layer, 34 M multiply-adds."""
    network = encoder("paper", (64, 64, 3), 256)
    assert isinstance(network, Encoder)
    assert isinstance(network.head, StateHead)
    assert network.trunk.shape == (32, 21, 21)
    assert network.head.linear.in_features == 14_112
    sides = [31, 29, 27, 25, 23, 21]
    multiply_adds = sum(side**2 * 9 * inputs * 32 for side, inputs in zip(sides, [3] + [32] * 5, strict=True))
    assert multiply_adds + 14_112 * 256 == pytest.approx(34e6, rel=0.05)


def test_encoder_does_not_change_its_input() -> None:
    image = torch.randint(256, (2, 64, 64, 3), dtype=torch.uint8)
    before = image.clone()
    encoder("small", (64, 64, 3), 8)(image)
    assert torch.equal(image, before)


def test_layer_norm_is_optional() -> None:
    image = torch.randint(256, (4, 64, 64, 3), dtype=torch.uint8)
    features = encoder("small", (64, 64, 3), 32)(image)
    torch.testing.assert_close(features.mean(1), torch.zeros(4), atol=1e-5, rtol=0)
    torch.testing.assert_close(features.std(1, correction=0), torch.ones(4), atol=0.05, rtol=0)
    without = encoder("small", (64, 64, 3), 32, norm=False)(image)
    assert without.std(1).mean() < 0.5
    for norm in (True, False):
        assert isinstance(PairHead((3, 4, 4), 8, norm).head.norm, nn.LayerNorm) == norm


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("shape", [(64, 64, 3), (48, 65, 1), (32, 32, 3)])
def test_decoded_images_have_the_observations_shape(name: str, shape: tuple[int, int, int]) -> None:
    network = decoder(name, shape, 10)
    image = torch.randint(256, (2, *shape), dtype=torch.uint8)
    assert network(torch.randn(2, 10)).shape == as_target(image).shape


def test_decoder_is_about_as_large_as_its_encoder() -> None:
    sizes = (parameter_count(network("small", (64, 64, 3), 256)) for network in (encoder, decoder))
    assert next(sizes) == pytest.approx(next(sizes), rel=0.4)


@pytest.mark.parametrize("name", ENCODERS)
def test_every_decoded_pixel_depends_on_the_code(name: str) -> None:
    torch.manual_seed(0)
    image, other = decoder(name, (64, 64, 3), 16)(torch.randn(2, 16))
    assert ((image - other).abs().sum(0) > 0).all()


def test_vectors_are_decoded_without_scaling() -> None:
    assert decoder("small", (7,), 5)(torch.randn(3, 5)).shape == (3, 7)
    vectors = torch.randn(3, 7, dtype=torch.float64)
    torch.testing.assert_close(as_target(vectors), vectors.float())


def test_as_images_inverts_as_target() -> None:
    image = torch.arange(2 * 3 * 4 * 3, dtype=torch.uint8).view(2, 3, 4, 3)
    target = as_target(image)
    assert target.shape == (2, 3, 3, 4)
    assert target[0, 1, 0, 0].item() == pytest.approx(1 / 255 - 0.5)
    assert torch.equal(as_images(target), image)
    assert as_images(torch.full((1, 3, 1, 1), 7.0)).tolist() == [[[[255, 255, 255]]]]


def test_target_follows_at_rate_tau_and_is_not_trained() -> None:
    source = nn.Linear(1, 1, bias=False)
    source.weight.data.fill_(1.0)
    target = make_target(source)
    source.weight.data.fill_(5.0)
    soft_update(target, source, 0.25)
    assert target.weight.item() == pytest.approx(0.75 * 1 + 0.25 * 5)
    assert not target.weight.requires_grad


def test_vectors_go_through_a_perceptron() -> None:
    network = encoder("small", (7,), 12, stacked=2)
    assert network(torch.randn(3, 7, dtype=torch.float64), torch.randn(3, 7)).shape == (3, 12)
    assert network(torch.randn(3, 7), torch.randn(3, 7)).dtype == torch.float32
    trunk = make_trunk("small", (7,))
    assert isinstance(trunk, VectorTrunk)
    features = trunk(torch.randn(3, 7))
    assert features.shape == (3, *trunk.shape)
    assert PairHead(trunk.shape, 12, norm=True)(features, features).shape == (3, 12)


def test_layers_of_a_perceptron() -> None:
    layers = mlp([4, 8, 2], final_norm=True)
    assert [type(layer).__name__ for layer in layers] == ["Linear", "ReLU", "Linear", "LayerNorm"]
    assert parameter_count(mlp([4, 8, 2])) == 4 * 8 + 8 + 8 * 2 + 2


def test_unusable_observations_are_refused() -> None:
    with pytest.raises(GCBError, match="8×8 pixels"):
        encoder("paper", (8, 8, 3), 16)
    with pytest.raises(GCBError, match=r"shape \(4, 4\)"):
        encoder("small", (4, 4), 16)
    with pytest.raises(GCBError, match=r"'huge'.*paper, small"):
        encoder("huge", (64, 64, 3), 16)
