"""GC-DBC: deep bisimulation for control lifted to pairs. It learns φ(s, g) only; without ψ there are no analogies."""

import torch
from torch import Tensor

from gcb.data import Batch
from gcb.methods.base import Method, MethodOutput, Shapes
from gcb.methods.configs import GCDBCConfig
from gcb.methods.metric import RewardDecoder, metric_losses
from gcb.methods.presets import SETTINGS
from gcb.models.networks import encoder, layer_normed, make_target, mlp, soft_update

NETWORKS = ("actor", "critic")


class GCDBC(Method):
    """π(φ(s, g)), with φ trained by L_φ (Eq. phi_loss) and a reward decoder (Eq. r_loss)."""

    name = "gc_dbc"
    paper = "Zhang et al. 2021, Learning invariant representations for RL without reconstruction, lifted to pairs"
    summary = "the bisimulation metric φ(s, g) alone, without ψ"
    config_type, presets = SETTINGS["gc_dbc"]
    supports_analogy = False

    def __init__(self, config: GCDBCConfig, shapes: Shapes):
        super().__init__()
        self.config, size = config, config.size
        self._phi = encoder(config.encoder, shapes.observation, size, stacked=2, norm=config.output_norm)
        self._target = None if config.tau is None else make_target(self._phi)
        self.reward_decoder = RewardDecoder(size)
        self.action_decoder = mlp([size, 256, shapes.action]) if config.policy_distance_weight else None
        self.input_sizes = {"goal": size}

    def compute_loss(self, batch: Batch[Tensor]) -> MethodOutput:
        phi_rows = self._phi(batch.state, batch.expand(batch.goal))
        with torch.no_grad():
            phi_next = self._phi(batch.next_state, batch.goal)
            target = phi_next if self._target is None else self._target(batch.next_state, batch.goal)
        phi, action = batch.first(phi_rows), batch.first(batch.action)
        losses, logs = metric_losses(self.config, phi, target, action, batch.reward, self.action_decoder)
        losses["reward_decoder_loss"] = self.reward_decoder.loss(phi, target, batch.reward)
        logs |= {name: loss.detach() for name, loss in losses.items()}
        inputs = self._scaled(phi_rows)
        actor, critic = (inputs if self.config.rl_gradient in (name, "both") else inputs.detach() for name in NETWORKS)
        return MethodOutput(
            loss=torch.stack(list(losses.values())).sum(),
            actor_inputs={"goal": actor},
            critic_inputs={"goal": critic},
            next_inputs={"goal": self._scaled(phi_next)},
            logs={**logs},
        )

    def after_step(self) -> None:
        """Update the target φ̄."""
        if self._target is not None:
            soft_update(self._target, self._phi, self.config.tau)

    def goal_inputs(self, state: Tensor, *prepared: Tensor) -> Tensor:
        """Return φ(s, g), scaled."""
        return self._scaled(self._phi(state, *prepared))

    @torch.no_grad()
    def phi(self, state: Tensor, goal: Tensor) -> Tensor:
        return self._phi(state, goal)

    def _scaled(self, phi: Tensor) -> Tensor:
        return phi if self.config.output_norm else layer_normed(phi)
