"""CC-VAE: a variational autoencoder conditioned on the initial state, so that its code represents what changed."""

import torch
from torch import Tensor

from gcb.data import Batch
from gcb.methods.base import MethodOutput, Prepared, Shapes
from gcb.methods.baseline import Baseline
from gcb.methods.configs import CCVAEConfig
from gcb.methods.presets import SETTINGS
from gcb.methods.vae import elbo_loss, mean_and_log_variance, reparameterize
from gcb.models.networks import as_images, as_target, decoder, encoder, layer_normed, mlp


class CCVAE(Baseline):
    """q(z | s, s_0) and p(s | z, s_0); the policies see the state's code, the context s_0 and the goal's code.

    For an analogy the goal's code is that of g_a in the context of s_a.
    """

    name = "cc_vae"
    paper = "Nair et al. 2019, Contextual imagined goals for self-supervised robotic learning"
    summary = "VAE conditioned on the initial state: the code holds what has changed since"
    config_type, presets = SETTINGS["cc_vae"]

    def __init__(self, config: CCVAEConfig, shapes: Shapes):
        super().__init__()
        self.config, size = config, config.size
        self._state_encoder = encoder(config.encoder, shapes.observation, size)
        self._context = encoder(config.encoder, shapes.observation, size)
        self.posterior = mlp([2 * size, size, 2 * size])
        self.decoder = decoder(config.encoder, shapes.observation, 2 * size)
        self.bottleneck = self.make_bottleneck(size)
        self.set_input_sizes(2 * size, size)

    def compute_loss(self, batch: Batch[Tensor]) -> MethodOutput:
        assert batch.initial_state is not None, "`extra_frames` requests it"
        contexts = self._context(batch.initial_state)
        context = batch.expand(contexts)
        mean, log_variance = self._posterior(batch.state, context)
        decoded = self.decoder(torch.cat([reparameterize(mean, log_variance), context], -1))
        loss, logs = elbo_loss(decoded, as_target(batch.state), mean, log_variance, self.config)
        goal = self._code(batch.goal, contexts)
        with torch.no_grad():
            next_code = self._code(batch.next_state, contexts)
        features = (layer_normed(mean), context, goal)
        next_features = (next_code, contexts, goal)
        policies = self.trained_policies
        return self.policy_output(
            *(batch, loss, logs), dict.fromkeys(policies, features), dict.fromkeys(policies, next_features)
        )

    def inputs(self, policy: str, *features: Tensor, noisy: bool = False) -> Tensor:
        """Return the state's code, the context and the goal's code, which for an analogy passes the bottleneck."""
        state, context, goal = features
        return torch.cat([state, context, self.encode_task(policy, goal, noisy)], -1)

    def _prepare_goal(self, initial_state: Tensor, goal: Tensor) -> Prepared:
        """Return the context s_0, and g's code in it."""
        return self.prepare_example(initial_state, initial_state, goal)

    def _goal_inputs(self, state: Tensor, *prepared: Tensor) -> Tensor:
        context, goal = prepared
        return self.inputs("goal", self._code(state, context), context, goal)

    def prepare_example(self, initial_state: Tensor, before: Tensor, after: Tensor) -> Prepared:
        """Return the context s_0, and g_a's code in the context of s_a."""
        return self._context(initial_state), self._code(after, self._context(before))

    def analogy_inputs(self, state: Tensor, *prepared: Tensor) -> Tensor:
        context, goal = prepared
        return self.inputs("analogy", self._code(state, context), context, goal)

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
