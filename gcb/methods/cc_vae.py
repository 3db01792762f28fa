"""CC-VAE: a variational autoencoder conditioned on an episode's initial state, so that its code holds what changed."""

from dataclasses import dataclass

import torch
from torch import Tensor

from gcb.data import Batch
from gcb.methods.base import MethodOutput, Shapes, no_features
from gcb.methods.baseline import Baseline
from gcb.methods.vae import ReconstructionConfig, elbo_loss, mean_and_log_variance, reparameterize
from gcb.models.networks import as_images, as_target, decoder, encoder, layer_normed, mlp


@dataclass(frozen=True)
class CCVAEConfig(ReconstructionConfig):
    """A context-conditioned variational autoencoder."""


class CCVAE(Baseline):
    """q(z | s, s_0) and p(s | z, s_0); the policy sees the state's code, the context and the goal's code.

    All three depend on the episode's initial state, so all are features of the task. For an analogy the goal's code is
    that of g_a in the context of s_a.
    """

    name = "cc_vae"
    paper = "Nair et al. 2019, Contextual imagined goals for self-supervised robotic learning"
    summary = "VAE conditioned on the initial state: the code holds what has changed since"
    config_type = CCVAEConfig
    extra_frames = frozenset({"initial_state"})

    def __init__(self, config: CCVAEConfig, shapes: Shapes):
        super().__init__()
        self.config, size = config, config.size
        self._state_encoder = encoder(config.encoder, shapes.observation, size)
        self._context = encoder(config.encoder, shapes.observation, size)
        self.posterior = mlp([2 * size, size, 2 * size])
        self.decoder = decoder(config.encoder, shapes.observation, 2 * size)
        self.bottleneck = self.make_bottleneck(size)
        self.state_size, self.task_size = 0, 2 * size + self.bottleneck.size

    def compute_loss(self, batch: Batch[Tensor]) -> MethodOutput:
        assert batch.initial_state is not None, "`extra_frames` asks for it"
        context = self._context(batch.initial_state)
        mean, log_variance = self._posterior(batch.state, context)
        decoded = self.decoder(torch.cat([reparameterize(mean, log_variance), context], -1))
        loss, logs = elbo_loss(decoded, as_target(batch.state), mean, log_variance, self.config)
        goal = self._code(batch.goal, context)
        with torch.no_grad():
            next_code = self._code(batch.next_state, context)
        task = torch.cat([layer_normed(mean), context, goal], -1)
        next_task = torch.cat([next_code, context, goal], -1)
        state = self.state_features(batch.state)
        return self.policy_output(loss, logs, state, task, state, next_task)

    def encode_task(self, task: Tensor, *, noisy: bool = False) -> Tensor:
        """Pass the goal's code through the bottleneck, but not the state's code and the context."""
        state, goal = task.split([2 * self.config.size, self.config.size], -1)
        return torch.cat([state, self.bottleneck(goal, noisy=noisy)], -1)

    def state_features(self, state: Tensor) -> Tensor:
        """Return features of size 0: a state has no code without its context."""
        return no_features(state)

    def analogy_features(self, initial_state: Tensor, state: Tensor, example: tuple[Tensor, Tensor]) -> Tensor:
        """Return the features of s's code given s_0, the context s_0, and g_a's code given s_a."""
        context = self._context(initial_state)
        goal = self.phi(*example)
        return self.encode_task(torch.cat([self._code(state, context), context, goal], -1))

    @torch.no_grad()
    def phi(self, state: Tensor, goal: Tensor) -> Tensor:
        """Return the code of g in the context of s."""
        return self._code(goal, self._context(state))

    @torch.no_grad()
    def psi(self, state: Tensor) -> Tensor:
        """Return the embedding of the state as a context."""
        return self._context(state)

    @torch.no_grad()
    def reconstruct(self, images: Tensor, context: Tensor) -> Tensor:
        """Encode and decode uint8 images, channels last, given the initial states of their episodes."""
        known = self._context(context)
        return as_images(self.decoder(torch.cat([self._posterior(images, known)[0], known], -1)))

    @torch.no_grad()
    def sample(self, context: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Decode one image for each initial state, from codes sampled from the prior."""
        code = torch.randn(len(context), self.config.size, generator=generator, device=context.device)
        return as_images(self.decoder(torch.cat([code, self._context(context)], -1)))

    def _posterior(self, state: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        return mean_and_log_variance(self.posterior(torch.cat([self._state_encoder(state), context], -1)))

    def _code(self, state: Tensor, context: Tensor) -> Tensor:
        return layer_normed(self._posterior(state, context)[0])
