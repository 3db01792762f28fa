"""VAE: the state embedding is the code of a variational autoencoder."""

from typing import Any

import torch
from torch import Tensor, nn

from gcb.data import Batch
from gcb.methods.base import Shapes
from gcb.methods.baseline import StateMethod
from gcb.methods.configs import ReconstructionConfig, VAEConfig
from gcb.methods.presets import SETTINGS
from gcb.models.networks import as_images, as_target, decoder, encoder, layer_normed

LOG_VARIANCE = (-10.0, 4.0)
"""Bounds of the posterior's log variance, which prevent divergence in early steps."""


def elbo_loss(
    decoded: Tensor, target: Tensor, mean: Tensor, log_variance: Tensor, config: ReconstructionConfig
) -> tuple[Tensor, dict[str, Any]]:
    """The negative ELBO per dimension of an observation, without its constant (Kingma & Welling 2014, App. B).

    ½ ‖x - x̂‖² / σ² + β KL(N(μ, s²) ‖ N(0, 1)) with KL = ½ Σ (μ² + s² - 1 - log s²).
    """
    dimensions = target[0].numel()
    error = (decoded - target).square().flatten(1).sum(1)
    divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1)
    loss = (0.5 * error / config.observation_std**2 + config.kl_weight * divergence).mean() / dimensions
    logs = {"reconstruction_error": error.detach().mean() / dimensions, "kl_divergence": divergence.detach().mean()}
    return config.reconstruction_weight * loss, logs


def reparameterize(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Return a sample of the posterior that is differentiable in its parameters."""
    return mean + (0.5 * log_variance).exp() * torch.randn_like(mean)


def mean_and_log_variance(output: Tensor) -> tuple[Tensor, Tensor]:
    """Return the posterior's parameters from a network's output."""
    mean, log_variance = output.chunk(2, -1)
    return mean, log_variance.clamp(*LOG_VARIANCE)


class VAE(StateMethod):
    """ψ(s) is the posterior's mean, trained by the ELBO."""

    name = "vae"
    paper = "Kingma & Welling 2014, Auto-encoding variational Bayes"
    summary = "reconstruction: ψ(s) is the code of a variational autoencoder"
    config_type, presets = SETTINGS["vae"]

    def __init__(self, config: VAEConfig, shapes: Shapes):
        super().__init__(config, shapes)
        self.decoder = decoder(config.encoder, shapes.observation, config.size)

    def objective(self, batch: Batch[Tensor], state: Tensor, next_state: Tensor) -> tuple[Tensor, dict[str, Any]]:
        mean, log_variance = mean_and_log_variance(state)
        decoded = self.decoder(reparameterize(mean, log_variance))
        return elbo_loss(decoded, as_target(batch.state), mean, log_variance, self.config)

    @torch.no_grad()
    def reconstruct(self, images: Tensor, context: Tensor | None = None) -> Tensor:
        """Encode and decode uint8 images, channels last; the context is ignored."""
        return as_images(self.decoder(mean_and_log_variance(self._psi(images))[0]))

    @torch.no_grad()
    def sample(self, context: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Decode `len(context)` images from codes sampled from the prior; the context is ignored otherwise."""
        code = torch.randn(len(context), self.config.size, generator=generator, device=context.device)
        return as_images(self.decoder(code))

    def _make_encoder(self, shapes: Shapes) -> nn.Module:
        return encoder(self.config.encoder, shapes.observation, 2 * self.config.size, norm=False)

    def _embedding(self, output: Tensor) -> Tensor:
        return layer_normed(mean_and_log_variance(output)[0])
