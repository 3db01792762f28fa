"""The two autoencoders: the evidence bound by hand, and pictures that come back."""

import math
from dataclasses import replace

import pytest
import torch
from helpers.batches import VECTORS, fit, image_batch, make_method, vector_batch

from gcb.errors import GCBError
from gcb.methods.vae import VAEConfig, elbo_loss, mean_and_log_variance, reparameterize
from gcb.models.networks import layer_normed

BOTH = pytest.mark.parametrize("name", ["vae", "cc_vae"])


def test_the_evidence_bound_by_hand() -> None:
    config = VAEConfig(observation_std=0.5, kl_weight=2.0, reconstruction_weight=3.0)
    drawn, target = torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 1.5]])
    mean, log_variance = torch.tensor([[2.0]]), torch.tensor([[math.log(4.0)]])
    loss, logs = elbo_loss(drawn, target, mean, log_variance, config)
    error = 1**2 + 0.5**2
    divergence = 0.5 * (2**2 + 4 - 1 - math.log(4))
    assert loss.item() == pytest.approx(3 * (0.5 * error / 0.25 + 2 * divergence) / 2)
    assert logs["reconstruction_error"].item() == pytest.approx(error / 2)
    assert logs["kl_divergence"].item() == pytest.approx(divergence)


def test_a_posterior_that_is_the_prior_costs_nothing() -> None:
    nothing = torch.zeros(3, 4)
    assert elbo_loss(nothing, nothing, nothing, nothing, VAEConfig())[0].item() == 0.0


def test_draws_have_the_posteriors_mean_and_spread() -> None:
    torch.manual_seed(0)
    draws = reparameterize(torch.full((20_000, 1), 3.0), torch.full((20_000, 1), 2 * math.log(0.5)))
    assert draws.mean().item() == pytest.approx(3.0, abs=0.02)
    assert draws.std().item() == pytest.approx(0.5, abs=0.02)


def test_the_policy_sees_the_mean_not_a_draw() -> None:
    method, batch = make_method("vae"), image_batch()
    mean, _ = mean_and_log_variance(method._psi(batch.state))
    torch.testing.assert_close(method.compute_loss(batch).critic_state, layer_normed(mean))
    assert not torch.equal(method.compute_loss(batch).loss, method.compute_loss(batch).loss)


@BOTH
def test_one_batch_comes_back(name: str) -> None:
    """Without the prior's price the optimum of the picture's error is 0; before, it is about the variance, .05."""
    state = torch.full((4, 32, 32, 3), 40, dtype=torch.uint8)
    for row, image in enumerate(state):
        image[:, 8 * row : 8 * row + 8] = 190
    method, batch = make_method(name, kl_weight=0.0), replace(image_batch(4), state=state)
    fit(method, batch, 160, rate=5e-3)
    assert method.compute_loss(batch).logs["reconstruction_error"].item() < 0.008
    again = method.reconstruct(batch.state, batch.initial_state)
    assert (again.shape, again.dtype) == (state.shape, torch.uint8)
    assert ((again.float() - state.float()).square().mean() / 255**2).item() < 0.008


@BOTH
def test_one_batch_of_vectors_comes_back(name: str) -> None:
    method, batch = make_method(name, VECTORS, kl_weight=0.0), vector_batch()
    fit(method, batch, 150)
    assert method.compute_loss(batch).logs["reconstruction_error"].item() < 0.05


@BOTH
def test_samples_are_pictures_drawn_by_seed(name: str) -> None:
    method, batch = make_method(name), image_batch()
    one, same, other = (method.sample(batch.initial_state, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1))
    assert one.shape == batch.initial_state.shape
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_only_cc_vae_looks_at_the_context() -> None:
    batch = image_batch()
    for name, looks in (("vae", False), ("cc_vae", True)):
        method = make_method(name)
        for draw in (
            lambda context, method=method: method.sample(context, torch.Generator().manual_seed(0)),
            lambda context, method=method: method.reconstruct(batch.state, context),
        ):
            assert torch.equal(draw(batch.initial_state), draw(batch.initial_state.roll(1, 0))) == (not looks)


def test_of_an_example_cc_vae_sees_what_changed_there() -> None:
    """The state's code and the context stay those of the own episode."""
    method, batch = make_method("cc_vae", bottleneck_dim=None), image_batch()
    by_goal = method.goal_features(batch.initial_state, batch.state, batch.goal)
    example = (batch.state.roll(1, 0), batch.goal.roll(1, 0))
    seen = method.analogy_features(batch.initial_state, batch.state, example)
    assert torch.equal(seen[:, :64], by_goal[:, :64])
    torch.testing.assert_close(seen[:, 64:], method.phi(*example))
    torch.testing.assert_close(seen[:, 32:64], method.psi(batch.initial_state))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kl_weight": -1.0}, "kl_weight is -1.0"),
        ({"observation_std": 0.0}, "observation_std is 0.0"),
        ({"condition": "goal"}, "bottleneck_dim"),
    ],
)
def test_settings_are_checked(settings: dict, message: str) -> None:
    with pytest.raises(GCBError, match=message):
        VAEConfig(**settings)
