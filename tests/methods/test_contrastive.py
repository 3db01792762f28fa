"""CPC and CURL: the pairs that they contrast, and that the loss can be minimised."""

import pytest
import torch
from helpers.batches import VECTORS, fit, image_batch, make_method, vector_batch

from gcb.methods import METHODS


def infonce_by_hand(method, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    similarity = torch.stack([torch.stack([q @ method.infonce.bilinear @ k for k in key]) for q in query])
    return torch.stack([row.logsumexp(0) - row[index] for index, row in enumerate(similarity)]).mean()


def test_cpc_contrasts_states_with_next_states() -> None:
    method, batch = make_method("cpc", contrast_weight=0.5), image_batch()
    expected = infonce_by_hand(method, method._psi(batch.state), method._psi(batch.next_state))
    assert method.compute_loss(batch).loss.item() == pytest.approx(0.5 * expected.item(), rel=1e-4)


def test_cpc_contrasts_the_first_state_of_each_group() -> None:
    method, batch = make_method("cpc"), image_batch(group_size=2)
    expected = infonce_by_hand(method, method._psi(batch.state[::2]), method._psi(batch.next_state))
    assert method.compute_loss(batch).loss.item() == pytest.approx(expected.item(), rel=1e-4)


def test_cpc_gradient_enters_state_and_next_state() -> None:
    method, batch = make_method("cpc"), image_batch()
    state = torch.randn(8, 32, requires_grad=True)
    next_state = torch.randn(8, 32, requires_grad=True)
    method.objective(batch, state, next_state)[0].backward()
    assert state.grad is not None
    assert next_state.grad is not None


def test_only_cpc_shifts_the_next_state_alone() -> None:
    assert {
        name: set(method.shifted_independently) for name, method in METHODS.items() if method.shifted_independently
    } == {"cpc": {"next_state"}}


def test_curl_contrasts_states_with_the_momentum_encoders_view() -> None:
    method, batch = make_method("curl", view_shift=0), image_batch(group_size=2)
    for parameter in method._target.parameters():
        parameter.data += 0.01
    expected = infonce_by_hand(method, method._psi(batch.state), method._target(batch.state))
    assert method.compute_loss(batch).loss.item() == pytest.approx(expected.item(), rel=1e-4)


def test_curl_momentum_encoder_follows_without_gradient() -> None:
    method = make_method("curl", tau=0.25)
    name, parameter = next(iter(method._psi.named_parameters()))
    before, target = parameter.detach().clone(), method._target.get_parameter(name)
    assert torch.equal(before, target)
    parameter.data += 1
    method.after_step()
    torch.testing.assert_close(target, before + 0.25)
    method.compute_loss(image_batch()).loss.backward()
    assert all(parameter.grad is None for parameter in method._target.parameters())


def test_curl_view_is_the_shifted_image() -> None:
    method, image = make_method("curl", view_shift=3), torch.zeros(50, 32, 32, 3, dtype=torch.uint8)
    image[:, 16, 16] = 200
    torch.manual_seed(0)
    views = method.other_view(image)
    places = [tuple(view[..., 0].nonzero()[0].tolist()) for view in views]
    assert all(abs(row - 16) <= 3 and abs(column - 16) <= 3 for row, column in places)
    assert len(set(places)) > 10
    torch.manual_seed(0)
    assert torch.equal(method.other_view(image), views)


def test_curl_scales_vectors() -> None:
    method, batch = make_method("curl", view_scale=0.2), vector_batch()
    scale = method.other_view(batch.state) / batch.state
    assert scale.std(1).max() < 1e-4
    assert scale.min() >= 0.8 - 1e-4
    assert scale.max() <= 1.2 + 1e-4
    assert scale[:, 0].std() > 0.01


@pytest.mark.parametrize("name", ["cpc", "curl"])
def test_loss_of_one_batch_can_be_minimised(name: str) -> None:
    """The optimum is 0; chance is log 8 = 2.08."""
    method, batch = make_method(name, VECTORS), vector_batch()
    losses = fit(method, batch, 60)
    assert losses[0] > 0.5
    assert max(losses[-5:]) < 0.02
    assert method.compute_loss(batch).logs["infonce_accuracy"] == 1.0
