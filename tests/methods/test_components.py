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
def test_bottleneck_is_narrow_of_fixed_length_and_noisy_on_request(hidden: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    bottleneck, task = Bottleneck(6, 2, 0.5, hidden), 100 * torch.randn(4000, 6)
    code = bottleneck(task)
    assert bottleneck.size == 2
    assert code.shape == (4000, 2)
    torch.testing.assert_close(code.square().mean(1), torch.ones(4000))
    assert torch.equal(code, bottleneck(task))
    assert (bottleneck.add_noise(code) - code).std().item() == pytest.approx(0.5, rel=0.05)
    assert Bottleneck(6, 2, 0.0, hidden).add_noise(code) is code


def test_bottleneck_learns_from_large_inputs() -> None:
    """A tanh would be saturated and get no gradient."""
    torch.manual_seed(0)
    bottleneck = Bottleneck(8, 4, 0.0)
    bottleneck(1e3 * torch.randn(5, 8))[:, 0].sum().backward()
    weight = next(bottleneck.parameters())
    assert weight.grad is not None
    assert weight.grad.abs().max() > 0.01


def test_bottleneck_without_width_is_the_identity() -> None:
    bottleneck, task = Bottleneck(6, None, 0.5), torch.randn(3, 6)
    assert bottleneck(task) is task
    assert bottleneck.add_noise(task) is task
    assert bottleneck.size == 6
    assert not list(bottleneck.parameters())


@pytest.mark.parametrize("name", ["gcb", "pixel", "cpv", "cc_vae", "cta"])
def test_only_a_bottleneck_is_noisy_and_only_for_analogies(name: str) -> None:
    for width in (16, None):
        output = make_method(name, bottleneck_dim=width, bottleneck_noise=0.3).compute_loss(image_batch())
        for policy, inputs in output.actor_inputs.items():
            noisy = policy == "analogy" and width is not None
            assert torch.equal(inputs, output.critic_inputs[policy]) == (not noisy)


def test_policy_inputs_repeat_each_groups_task_for_its_rows() -> None:
    """A task's features are one per group or, if they depend on the state, one per row."""
    method, batch = make_method("pixel", policies="goal"), image_batch(6, group_size=3)
    state, next_state = torch.arange(6.0)[:, None], torch.tensor([[10.0], [11.0]])
    zero = torch.zeros(())
    for task, expected in ((torch.tensor([[7.0], [8.0]]), [7, 7, 7, 8, 8, 8]), (-state, [0, -1, -2, -3, -4, -5])):
        features, next_features = {"goal": (state, task)}, {"goal": (next_state, task[:2])}
        output = method.policy_output(batch, zero, {}, features, next_features)
        assert output.critic_inputs["goal"].tolist() == [[float(row), task] for row, task in enumerate(expected)]
        assert output.next_inputs["goal"].tolist() == [[10, task[0].item()], [11, task[1].item()]]


@pytest.mark.parametrize("settings", [{"size": 0}, {"learning_rate": -1.0}, {"weight_decay": -0.1}])
def test_settings_are_checked(settings: dict) -> None:
    ((name, value),) = settings.items()
    with pytest.raises(GCBError, match=rf"method_config\.{name} is {value}"):
        BCConfig(**settings)
