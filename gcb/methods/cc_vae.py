"""CC-VAE: a variational autoencoder that is shown an episode's first frame, so that its code says only what changed."""

from dataclasses import dataclass

import torch
from torch import Tensor

from gcb.methods.base import Batch, MethodOutput, Shapes
from gcb.methods.baseline import Baseline
from gcb.methods.components import Bottleneck, as_images, as_target, decoder, normalised
from gcb.methods.vae import ReconstructionConfig, elbo_loss, mean_and_log_variance, reparameterize
from gcb.models.networks import encoder, mlp


@dataclass(frozen=True)
class CCVAEConfig(ReconstructionConfig):
    """A context-conditioned variational autoencoder."""


class CCVAE(Baseline):
    """q(z | s, s_0) and p(s | z, s_0); the policy sees the state's code, the context, and the goal's code.

    All three depend on the episode's first frame, so all of it is told as features of the task. Of an example it sees
    the code of g_a in the context of s_a: what changed there.
    """

    name = "cc_vae"
    paper = "Nair et al. 2019, Contextual imagined goals for self-supervised robotic learning"
    summary = "reconstruction given the first frame: the code says what changed since then"
    config_type = CCVAEConfig
    extra_frames = frozenset({"initial_state"})

    def __init__(self, config: CCVAEConfig, shapes: Shapes):
        super().__init__()
        self.config, size = config, config.size
        self._seen = encoder(config.encoder, shapes.observation, size)
        self._context = encoder(config.encoder, shapes.observation, size)
        self.posterior = mlp([2 * size, size, 2 * size])
        self.decoder = decoder(config.encoder, shapes.observation, 2 * size)
        self.bottleneck = Bottleneck(size, config.bottleneck_dim, config.bottleneck_noise)
        self.state_size, self.task_size = 0, 2 * size + self.bottleneck.size

    def compute_loss(self, batch: Batch) -> MethodOutput:
        assert batch.initial_state is not None, "`extra_frames` asks for it"
        context = self._context(batch.initial_state)
        mean, log_variance = self._posterior(batch.state, context)
        drawn = self.decoder(torch.cat([reparameterize(mean, log_variance), context], -1))
        loss, logs = elbo_loss(drawn, as_target(batch.state), mean, log_variance, self.config)
        goal = self._code(batch.goal, context)
        with torch.no_grad():
            following = self._code(batch.next_state, context)
        task = torch.cat([normalised(mean), context, goal], -1)
        next_task = torch.cat([following, context, goal], -1)
        nothing = self.state_features(batch.state)
        return self._features(loss, logs, nothing, task, nothing, next_task)

    def encode_task(self, task: Tensor, *, noisy: bool = False) -> Tensor:
        """Only what is to be done goes through the passage, not where the state stands."""
        here, goal = task.split([2 * self.config.size, self.config.size], -1)
        return torch.cat([here, self.bottleneck(goal, noisy=noisy)], -1)

    def state_features(self, state: Tensor) -> Tensor:
        """Nothing: a state has no code without its context."""
        return torch.empty(len(state), 0, device=state.device)

    def goal_features(self, initial_state: Tensor, state: Tensor, goal: Tensor) -> Tensor:
        return self.analogy_features(initial_state, state, (initial_state, goal))

    def analogy_features(self, initial_state: Tensor, state: Tensor, example: tuple[Tensor, Tensor]) -> Tensor:
        """The code of s given s_0, the context of s_0, and the code of g_a given s_a."""
        context = self._context(initial_state)
        changed = self.phi(*example)
        return self.encode_task(torch.cat([self._code(state, context), context, changed], -1))

    @torch.no_grad()
    def phi(self, state: Tensor, goal: Tensor) -> Tensor:
        """The code of g in the context of s."""
        return self._code(goal, self._context(state))

    @torch.no_grad()
    def psi(self, state: Tensor) -> Tensor:
        """The state as a context."""
        return self._context(state)

    @torch.no_grad()
    def reconstruct(self, images: Tensor, context: Tensor) -> Tensor:
        """Images (uint8, channels last) through the code and back, given first frames of their episodes."""
        known = self._context(context)
        return as_images(self.decoder(torch.cat([self._posterior(images, known)[0], known], -1)))

    @torch.no_grad()
    def sample(self, context: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """One picture for each first frame, from codes of the prior: what else might be seen there."""
        code = torch.randn(len(context), self.config.size, generator=generator, device=context.device)
        return as_images(self.decoder(torch.cat([code, self._context(context)], -1)))

    def _posterior(self, state: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        return mean_and_log_variance(self.posterior(torch.cat([self._seen(state), context], -1)))

    def _code(self, state: Tensor, context: Tensor) -> Tensor:
        return normalised(self._posterior(state, context)[0])
