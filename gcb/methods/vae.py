"""VAE: an embedding from which the picture can be drawn again."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from gcb.methods.base import Batch, Shapes
from gcb.methods.baseline import BaselineConfig, StateConfig, StateMethod
from gcb.methods.components import as_images, as_target, check_not_negative, check_positive, decoder, normalised
from gcb.models.networks import encoder

LOG_VARIANCE = (-10.0, 4.0)
"""Bounds of the posterior's log variance, so that no early step runs away."""


@dataclass(frozen=True)
class ReconstructionConfig(BaselineConfig):
    """The loss of a variational autoencoder."""

    reconstruction_weight: float = 1.0
    """Weight of the whole loss, which is the negative evidence bound in nats per number of an observation."""
    kl_weight: float = 1.0
    """Weight of the divergence from the prior; 1 is the evidence bound, more is a β-VAE."""
    observation_std: float = 0.1
    """Standard deviation of the Gaussian around what is drawn; pictures range from -.5 to .5."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative(self, "reconstruction_weight", "kl_weight")
        check_positive(self, "observation_std")


@dataclass(frozen=True)
class VAEConfig(ReconstructionConfig, StateConfig):
    """A variational autoencoder of single states."""


def elbo_loss(
    drawn: Tensor, target: Tensor, mean: Tensor, log_variance: Tensor, config: ReconstructionConfig
) -> tuple[Tensor, dict[str, Any]]:
    """The negative evidence bound per number of an observation, without its constant.

    ½ ‖x - x̂‖² / σ² + β KL(N(μ, s²) ‖ N(0, 1)), KL = ½ Σ (μ² + s² - 1 - log s²) (Kingma & Welling 2014, App. B).
    """
    numbers = target[0].numel()
    error = (drawn - target).square().flatten(1).sum(1)
    divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1)
    loss = (0.5 * error / config.observation_std**2 + config.kl_weight * divergence).mean() / numbers
    logs = {"pixel_error": error.detach().mean() / numbers, "divergence": divergence.detach().mean()}
    return config.reconstruction_weight * loss, logs


def reparameterize(mean: Tensor, log_variance: Tensor) -> Tensor:
    """A draw from the posterior that lets the gradient through."""
    return mean + (0.5 * log_variance).exp() * torch.randn_like(mean)


def mean_and_log_variance(output: Tensor) -> tuple[Tensor, Tensor]:
    """The posterior that a network's output stands for."""
    mean, log_variance = output.chunk(2, -1)
    return mean, log_variance.clamp(*LOG_VARIANCE)


class VAE(StateMethod):
    """ψ(s) is the posterior's mean, trained by the evidence bound."""

    name = "vae"
    paper = "Kingma & Welling 2014, Auto-encoding variational Bayes"
    summary = "reconstruction: ψ(s) is the code from which a variational autoencoder draws s again"
    config_type = VAEConfig

    def __init__(self, config: VAEConfig, shapes: Shapes):
        super().__init__(config, shapes)
        self.decoder = decoder(config.encoder, shapes.observation, config.size)

    def objective(self, batch: Batch, state: Tensor, next_state: Tensor) -> tuple[Tensor, dict[str, Any]]:
        mean, log_variance = mean_and_log_variance(state)
        drawn = self.decoder(reparameterize(mean, log_variance))
        return elbo_loss(drawn, as_target(batch.state), mean, log_variance, self.config)

    @torch.no_grad()
    def reconstruct(self, images: Tensor, context: Tensor | None = None) -> Tensor:
        """Images (uint8, channels last) through the code and back; it needs no context."""
        return as_images(self.decoder(mean_and_log_variance(self._psi(images))[0]))

    @torch.no_grad()
    def sample(self, context: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """As many pictures as there are in `context`, which this model does not look at, from codes of the prior."""
        code = torch.randn(len(context), self.config.size, generator=generator, device=context.device)
        return as_images(self.decoder(code))

    def _encoder(self, shapes: Shapes) -> nn.Module:
        return encoder(self.config.encoder, shapes.observation, 2 * self.config.size, norm=False)

    def _embedding(self, output: Tensor) -> Tensor:
        return normalised(mean_and_log_variance(output)[0])
