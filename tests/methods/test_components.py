"""InfoNCE, the bottleneck and the encoder's settings, against values worked out by hand."""

import math

import pytest
import torch
from helpers.batches import image_batch, make_method

from gcb.errors import GCBError
from gcb.methods.bc import BCConfig
from gcb.methods.components import Bottleneck, InfoNCE


def test_infonce_by_hand() -> None:
    infonce = InfoNCE(2)
    infonce.bilinear.data = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    query, key = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[1.0, 1.0], [0.0, 0.5]])
    # Similarities: 1·1 and 1·0; 2·1 and 2·.5. The second query is nearer to the first key than to its own.
    loss, accuracy = infonce(query, key)
    first, second = math.log(math.e + 1) - 1, math.log(math.e**2 + math.e) - 1
    assert loss.item() == pytest.approx((first + second) / 2)
    assert accuracy.item() == 0.5


def test_infonce_at_chance_is_the_log_of_the_batch_size() -> None:
    loss, _ = InfoNCE(4)(torch.zeros(8, 4), torch.randn(8, 4))
    assert loss.item() == pytest.approx(math.log(8))


def test_infonce_trains_its_bilinear_matrix() -> None:
    infonce = InfoNCE(3)
    infonce(torch.randn(5, 3), torch.randn(5, 3))[0].backward()
    assert infonce.bilinear.grad is not None
    assert infonce.bilinear.grad.abs().sum() > 0


@pytest.mark.parametrize("hidden", [(), (8,)])
def test_bottleneck_is_narrow_bounded_and_noisy_on_request(hidden: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    bottleneck, task = Bottleneck(6, 2, 0.5, hidden), 100 * torch.randn(4000, 6)
    code = bottleneck(task)
    assert bottleneck.size == 2
    assert code.shape == (4000, 2)
    assert code.abs().max() <= 1
    assert torch.equal(code, bottleneck(task))
    assert (bottleneck(task, noisy=True) - code).std().item() == pytest.approx(0.5, rel=0.05)


def test_bottleneck_without_width_and_noise_is_the_identity() -> None:
    bottleneck, task = Bottleneck(6, None, None), torch.randn(3, 6)
    assert bottleneck(task, noisy=True) is task
    assert bottleneck.size == 6
    assert not list(bottleneck.parameters())


def test_without_bottleneck_only_gcb_has_noise() -> None:
    for name, noisy in (("gcb", True), ("pixel", False), ("cta", False)):
        output = make_method(name, bottleneck_dim=None, bottleneck_noise=0.3).compute_loss(image_batch())
        assert torch.equal(output.actor_task, output.critic_task) == (not noisy)


@pytest.mark.parametrize("settings", [{"size": 0}, {"learning_rate": -1.0}, {"weight_decay": -0.1}])
def test_settings_are_checked(settings: dict) -> None:
    ((name, value),) = settings.items()
    with pytest.raises(GCBError, match=rf"method_config\.{name} is {value}"):
        BCConfig(**settings)
