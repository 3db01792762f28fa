"""The shared pieces against values worked out by hand."""

import math

import pytest
import torch
from torch import nn

from gcb.errors import GCBError
from gcb.methods.components import (
    Bottleneck,
    EncoderConfig,
    InfoNCE,
    as_images,
    as_target,
    decoder,
    make_target,
    soft_update,
)
from gcb.models.networks import ENCODERS, encoder, parameters_size


def test_contrast_by_hand() -> None:
    contrast = InfoNCE(2)
    contrast.bilinear.data = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    query, key = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[1.0, 1.0], [0.0, 0.5]])
    # similarities: 1·1 and 1·0; 2·1 and 2·.5. The second query is nearer to the first key than to its own.
    loss, found = contrast(query, key)
    first, second = math.log(math.e + 1) - 1, math.log(math.e**2 + math.e) - 1
    assert loss.item() == pytest.approx((first + second) / 2)
    assert found.item() == 0.5


def test_at_chance_the_contrast_is_the_logarithm_of_the_batch() -> None:
    loss, _ = InfoNCE(4)(torch.zeros(8, 4), torch.randn(8, 4))
    assert loss.item() == pytest.approx(math.log(8))


def test_the_bilinear_matrix_is_trained() -> None:
    contrast = InfoNCE(3)
    contrast(torch.randn(5, 3), torch.randn(5, 3))[0].backward()
    assert contrast.bilinear.grad is not None
    assert contrast.bilinear.grad.abs().sum() > 0


@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize("shape", [(64, 64, 3), (48, 65, 1), (32, 32, 3)])
def test_a_decoder_gives_pictures_of_the_encoders_size(kind: str, shape: tuple[int, int, int]) -> None:
    network = decoder(kind, shape, 10)
    image = torch.randint(256, (2, *shape), dtype=torch.uint8)
    assert network(torch.randn(2, 10)).shape == as_target(image).shape


def test_a_decoder_is_about_as_large_as_its_encoder() -> None:
    there, back = encoder("small", (64, 64, 3), 256, norm=False), decoder("small", (64, 64, 3), 256)
    assert parameters_size(back) == pytest.approx(parameters_size(there), rel=0.4)


@pytest.mark.parametrize("kind", ENCODERS)
def test_every_pixel_is_drawn_from_the_code(kind: str) -> None:
    torch.manual_seed(0)
    network = decoder(kind, (64, 64, 3), 16)
    one, other = network(torch.randn(2, 16))
    assert ((one - other).abs().sum(0) > 0).all()


def test_vectors_are_decoded_as_they_are() -> None:
    assert decoder("small", (7,), 5)(torch.randn(3, 5)).shape == (3, 7)
    vectors = torch.randn(3, 7, dtype=torch.float64)
    torch.testing.assert_close(as_target(vectors), vectors.float())


def test_pictures_there_and_back() -> None:
    image = torch.arange(2 * 3 * 4 * 3, dtype=torch.uint8).view(2, 3, 4, 3)
    target = as_target(image)
    assert target.shape == (2, 3, 3, 4)
    assert target[0, 1, 0, 0].item() == pytest.approx(1 / 255 - 0.5)
    assert torch.equal(as_images(target), image)
    assert as_images(torch.full((1, 3, 1, 1), 7.0)).tolist() == [[[[255, 255, 255]]]]


def test_a_slow_copy_follows_by_its_rate_and_is_not_trained() -> None:
    fast = nn.Linear(1, 1, bias=False)
    fast.weight.data.fill_(1.0)
    slow = make_target(fast)
    fast.weight.data.fill_(5.0)
    soft_update(slow, fast, 0.25)
    assert slow.weight.item() == pytest.approx(0.75 * 1 + 0.25 * 5)
    assert not slow.weight.requires_grad


def test_a_passage_is_narrow_bounded_and_noisy_only_when_told() -> None:
    torch.manual_seed(0)
    passage, task = Bottleneck(6, 2, 0.5), 100 * torch.randn(4000, 6)
    code = passage(task)
    assert passage.size == 2
    assert code.shape == (4000, 2)
    assert code.abs().max() <= 1
    assert torch.equal(code, passage(task))
    assert (passage(task, noisy=True) - code).std().item() == pytest.approx(0.5, rel=0.05)


def test_without_a_width_everything_passes() -> None:
    passage, task = Bottleneck(6, None, 0.5), torch.randn(3, 6)
    assert passage(task, noisy=True) is task
    assert passage.size == 6
    assert not list(passage.parameters())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 0}, "method_config.size is 0; it must be above 0"),
        ({"learning_rate": -1.0}, "method_config.learning_rate is -1.0; it must be above 0"),
        ({"weight_decay": -0.1}, "method_config.weight_decay is -0.1; it must not be negative"),
    ],
)
def test_settings_are_checked(settings: dict, message: str) -> None:
    with pytest.raises(GCBError, match=message):
        EncoderConfig(**settings)
