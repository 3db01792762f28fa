"""VAE and CC-VAE: the ELBO by hand, reconstruction and sampling."""

import math
from dataclasses import replace

import pytest
import torch
from helpers.batches import VECTORS, fit, image_batch, make_method, vector_batch

from gcb.errors import GCBError
from gcb.methods.vae import VAEConfig, elbo_loss, mean_and_log_variance, reparameterize
from gcb.models.networks import layer_normed

BOTH = pytest.mark.parametrize("name", ["vae", "cc_vae"])


def test_elbo_by_hand() -> None:
    config = VAEConfig(observation_std=0.5, kl_weight=2.0, reconstruction_weight=3.0)
    decoded, target = torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 1.5]])
    mean, log_variance = torch.tensor([[2.0]]), torch.tensor([[math.log(4.0)]])
    loss, logs = elbo_loss(decoded, target, mean, log_variance, config)
    error = 1**2 + 0.5**2
    divergence = 0.5 * (2**2 + 4 - 1 - math.log(4))
    assert loss.item() == pytest.approx(3 * (0.5 * error / 0.25 + 2 * divergence) / 2)
    assert logs["reconstruction_error"].item() == pytest.approx(error / 2)
    assert logs["kl_divergence"].item() == pytest.approx(divergence)


def test_elbo_loss_of_the_prior_is_zero() -> None:
    zeros = torch.zeros(3, 4)
    assert elbo_loss(zeros, zeros, zeros, zeros, VAEConfig())[0].item() == 0.0


def test_samples_have_the_posteriors_mean_and_std() -> None:
    torch.manual_seed(0)
    samples = reparameterize(torch.full((20_000, 1), 3.0), torch.full((20_000, 1), 2 * math.log(0.5)))
    assert samples.mean().item() == pytest.approx(3.0, abs=0.02)
    assert samples.std().item() == pytest.approx(0.5, abs=0.02)


def test_policy_sees_the_mean_not_a_sample() -> None:
    method, batch = make_method("vae"), image_batch()
    mean, _ = mean_and_log_variance(method._psi(batch.state))
    seen = method.compute_loss(batch).critic_inputs
    for policy in ("goal", "analogy"):
        torch.testing.assert_close(seen[policy][:, :32], layer_normed(mean))
    assert not torch.equal(method.compute_loss(batch).loss, method.compute_loss(batch).loss)


@BOTH
def test_one_batch_of_images_can_be_reconstructed(name: str) -> None:
    """Without the KL term the optimal error is 0; before training it is about the variance, .05."""
    state = torch.full((4, 32, 32, 3), 40, dtype=torch.uint8)
    for row, image in enumerate(state):
        image[:, 8 * row : 8 * row + 8] = 190
    method, batch = make_method(name, kl_weight=0.0), replace(image_batch(4), state=state)
    fit(method, batch, 160, rate=5e-3)
    assert method.compute_loss(batch).logs["reconstruction_error"].item() < 0.008
    reconstruction = method.reconstruct(batch.state, batch.initial_state)
    assert (reconstruction.shape, reconstruction.dtype) == (state.shape, torch.uint8)
    assert ((reconstruction.float() - state.float()).square().mean() / 255**2).item() < 0.008


@BOTH
def test_one_batch_of_vectors_can_be_reconstructed(name: str) -> None:
    method, batch = make_method(name, VECTORS, kl_weight=0.0), vector_batch()
    fit(method, batch, 150)
    assert method.compute_loss(batch).logs["reconstruction_error"].item() < 0.05


@BOTH
def test_samples_are_images_determined_by_the_seed(name: str) -> None:
    method, batch = make_method(name), image_batch()
    image, same, other = (method.sample(batch.initial_state, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1))
    assert image.shape == batch.initial_state.shape
    assert torch.equal(image, same)
    assert not torch.equal(image, other)


def test_only_cc_vae_uses_the_context() -> None:
    batch = image_batch()
    for name, uses_context in (("vae", False), ("cc_vae", True)):
        method = make_method(name)
        for decode in (
            lambda context, method=method: method.sample(context, torch.Generator().manual_seed(0)),
            lambda context, method=method: method.reconstruct(batch.state, context),
        ):
            assert torch.equal(decode(batch.initial_state), decode(batch.initial_state.roll(1, 0))) == (
                not uses_context
            )


def test_cc_vae_analogy_replaces_the_goals_code() -> None:
    """The state's code and the context remain those of the current episode."""
    method, batch = make_method("cc_vae", bottleneck_dim=None), image_batch()
    by_goal = method.goal_inputs(batch.state, *method.prepare_goal(batch.initial_state, batch.goal))
    example = (batch.state.roll(1, 0), batch.goal.roll(1, 0))
    seen = method.analogy_inputs(batch.state, *method.prepare_example(batch.initial_state, *example))
    assert torch.equal(seen[:, :64], by_goal[:, :64])
    torch.testing.assert_close(seen[:, 64:], method.phi(*example))
    torch.testing.assert_close(seen[:, 32:64], method.psi(batch.initial_state))
    torch.testing.assert_close(by_goal[:, 64:], method.phi(batch.initial_state, batch.goal))


def test_cc_vae_reconstructs_all_states_of_a_group_in_its_context() -> None:
    batch = image_batch(group_size=2)
    rows = replace(batch, **{name: batch.expand(getattr(batch, name)) for name in ("next_state", "goal", "reward")})
    rows = replace(rows, initial_state=batch.expand(batch.initial_state))
    method, losses = make_method("cc_vae"), []
    for same in (batch, rows):
        torch.manual_seed(0)
        losses.append(method.compute_loss(same).loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kl_weight": -1.0}, "kl_weight is -1.0"),
        ({"observation_std": 0.0}, "observation_std is 0.0"),
        ({"reconstruction_weight": -1.0}, "reconstruction_weight is -1.0"),
    ],
)
def test_settings_are_checked(settings: dict, message: str) -> None:
    with pytest.raises(GCBError, match=message):
        VAEConfig(**settings)
