"""Goal-conditioned bisimulation (GCB): the task embedding φ(s, g), the state embedding ψ(s), and policies on both.

The equations are in `gcb.models.losses`; docs/method.md explains what the defaults add to the paper's text.
"""

from typing import Any

import torch
from torch import Tensor, nn

from gcb.data import Batch
from gcb.methods.base import MethodOutput, Prepared, Shapes
from gcb.methods.components import Bottleneck, PolicyMethod
from gcb.methods.configs import GCBConfig
from gcb.methods.dynamics import make_dynamics
from gcb.methods.metric import RewardDecoder, metric_losses
from gcb.methods.presets import SETTINGS
from gcb.models.losses import psi_loss
from gcb.models.networks import PairHead, StateHead, encoder, layer_normed, make_target, make_trunk, mlp, soft_update

LINEAR_PSI_EVERY = 4
"""The linear map of `linear_psi` has few parameters and is trained on every fourth group of a batch."""


class GCB(PolicyMethod):
    """Algorithm 1: φ is trained by L_φ, ψ by L_ψ, and the policies on both, concurrently."""

    name = "gcb"
    paper = "Hansen-Estruch et al. 2022, Bisimulation makes analogies in goal-conditioned RL"
    summary = "φ(s, g) embeds tasks by a bisimulation metric, and ψ(g) - ψ(s) approximates it"
    config_type, presets = SETTINGS["gcb"]

    def __init__(self, config: GCBConfig, shapes: Shapes):
        super().__init__()
        self.config, size = config, config.size
        self._build_encoders(shapes.observation)
        # The map is linear, so that differences of embeddings remain differences: ψ(g) - ψ(s).
        self._arithmetic = nn.Linear(size, size, bias=False) if config.linear_psi else nn.Identity()
        self.reward_decoder = RewardDecoder(size) if config.reward_decoder else None
        self.action_decoder = mlp([size, 256, shapes.action]) if config.action_decoder else None
        self.dynamics = make_dynamics(config.dynamics, size, shapes.action)
        self._acts_on_goals, self._acts_on_examples = config.policies != "analogy", config.policies != "goal"
        self.bottleneck = None
        self.input_sizes = {}
        if self._acts_on_goals:
            self.input_sizes["goal"] = 2 * size
        if self._acts_on_examples:
            self.bottleneck = Bottleneck(size, config.bottleneck_dim, config.bottleneck_noise)
            self.input_sizes["analogy"], self.history_sizes = 2 * size + self.bottleneck.size, {"analogy": size}
            self.extra_frames = frozenset({"initial_state"})
            self.partners = config.partners if config.partners.source != "none" else None

    def _build_encoders(self, observation: tuple[int, ...]) -> None:
        """Build ψ and φ as functions of `_trunk`'s features of single observations.

        Without a shared trunk, the features are the observations themselves.
        """
        config, size, norm = self.config, self.config.size, self.config.output_norm
        if config.shared_trunk:
            self._trunk: nn.Module = (trunk := make_trunk(config.encoder, observation))
            self._psi: nn.Module = StateHead(trunk.shape, size, norm)
            self._phi: nn.Module = PairHead(trunk.shape, size, norm)
        else:
            self._trunk = nn.Identity()
            self._psi = encoder(config.encoder, observation, size, norm=norm)
            self._phi = encoder(config.encoder, observation, size, stacked=2, norm=norm)
        targets = {"trunk": self._trunk, "phi": self._phi}
        self._target = None if config.tau is None else make_target(nn.ModuleDict(targets))

    # ---- training --------------------------------------------------------------------------------------------------

    def compute_loss(self, batch: Batch[Tensor]) -> MethodOutput:
        """Return the losses of φ and ψ on the first transition of each group, and the inputs of both policies."""
        states, goal = self._encode(batch)
        with torch.no_grad():
            next_state = self._trunk(batch.next_state)
        by_pair = self._acts_on_goals and self.config.goal_condition == "pair"
        psi, psi_start = self._psi(states).tensor_split([len(batch.state)])
        psi_next = self._no_grad_psi(next_state)
        phi_rows, phi_start = self._phi_of_batch(batch, states, goal, by_pair)
        phi = batch.first(phi_rows) if by_pair else phi_rows
        phi_next = self._no_grad_phi(next_state, goal)
        phi_target = phi_next if self._target is None else self._target_phi(batch)

        losses, logs = self._representation_losses(batch, goal, phi, phi_target, batch.first(psi))
        logs = {**{name: loss.detach() for name, loss in losses.items()}, **logs}
        features, next_features = {}, {}
        psi, psi_next, psi_start = self._scaled(psi, psi_next, psi_start)
        if self._acts_on_goals:
            task, next_task = self._scaled(*((phi_rows, phi_next) if by_pair else (self._psi(goal),) * 2))
            features["goal"], next_features["goal"] = (psi, task), (psi_next, next_task)
        if self._acts_on_examples:
            (example,) = self._scaled(self._examples(batch, phi_start))
            features["analogy"], next_features["analogy"] = (psi, example, psi_start), (psi_next, example, psi_start)
        total = torch.stack(list(losses.values())).sum()
        return self.policy_output(batch, total, logs, features, next_features)

    def _encode(self, batch: Batch[Tensor]) -> tuple[Tensor, Tensor]:
        """Return the trunk's features of the states s, followed by those of s_0 if examples need them, and of g."""
        frames = [batch.state]
        if self._acts_on_examples:
            assert batch.initial_state is not None, "`extra_frames` requests it"
            frames.append(batch.initial_state)
        # split, not slices, whose gradients would lose the memory order of feature maps: slow to convolve.
        states, goal = self._trunk(torch.cat([*frames, batch.goal])).split([sum(map(len, frames)), len(batch.goal)])
        return states, goal

    def _phi_of_batch(
        self, batch: Batch[Tensor], states: Tensor, goal: Tensor, every_row: bool
    ) -> tuple[Tensor, Tensor]:
        """Return φ(s, g) of every row or of the groups' first ones, and φ(s_0, g), from one pass."""
        count = len(batch.state)
        goals = batch.expand(goal) if every_row else goal
        if not every_row:
            states = torch.cat([batch.first(states[:count]), states[count:]])
        pairs = len(goals)
        if self._acts_on_examples:
            goals = torch.cat([goals, goal])
        phi, phi_start = self._phi(states, goals).tensor_split([pairs])
        return phi, phi_start

    def _examples(self, batch: Batch[Tensor], phi: Tensor) -> Tensor:
        """Return φ of each group's example: its own pair (s_0, g), or that of its partner, the group beside it."""
        if batch.has_partner is None:
            return phi
        chosen = torch.rand(len(phi), device=phi.device) < self.config.partners.probability
        partner = phi.view(-1, 2, phi.shape[1]).flip(1).view(phi.shape)
        return torch.where((chosen & batch.has_partner)[:, None], partner, phi)

    def inputs(self, policy: str, *features: Tensor, noisy: bool = False) -> Tensor:
        """Return ψ(s) and φ(s, g) or ψ(g); for an analogy ψ(s), the bottleneck's code of φ(s_a, g_a), and ψ(s_0)."""
        state, task, *start = features
        return torch.cat([state, self.encode_task(policy, task, noisy), *start], -1)

    @torch.no_grad()
    def _no_grad_psi(self, features: Tensor) -> Tensor:
        return self._psi(features)

    @torch.no_grad()
    def _no_grad_phi(self, state: Tensor, goal: Tensor) -> Tensor:
        return self._phi(state, goal)

    @torch.no_grad()
    def _target_phi(self, batch: Batch[Tensor]) -> Tensor:
        """Return φ̄(s', g) of the target networks."""
        assert self._target is not None
        trunk, phi = self._target["trunk"], self._target["phi"]
        return phi(trunk(batch.next_state), trunk(batch.goal))

    def _representation_losses(
        self, batch: Batch[Tensor], goal: Tensor, phi: Tensor, phi_next: Tensor, psi: Tensor
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return L_φ, L_ψ and the decoders' losses on the first transitions of the groups, and metrics to log."""
        config, action = self.config, batch.first(batch.action)
        losses: dict[str, Tensor] = {}
        if self.reward_decoder is not None:
            losses["reward_decoder_loss"] = self.reward_decoder.loss(phi, phi_next, batch.reward)
        if self.dynamics is not None:
            losses["dynamics_loss"] = self.dynamics.loss(phi.detach(), phi_next, action)
            phi_next = self.dynamics.next(phi.detach(), action)
        phi_losses, logs = metric_losses(config, phi, phi_next, action, batch.reward, self.action_decoder)
        losses |= phi_losses
        losses["psi_loss"], psi_logs = self._psi_loss(phi, psi, goal)
        return losses, {**logs, **psi_logs}

    def _psi_loss(self, phi: Tensor, psi: Tensor, goal: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Return L_ψ. With `linear_psi` it trains only the linear map, on a part of the groups."""
        config = self.config
        if config.linear_psi:
            phi, psi, goal = (rows[::LINEAR_PSI_EVERY] for rows in (phi, psi.detach(), goal))
        with torch.no_grad():
            phi_goal = self._phi(goal, goal) if config.grounded else None
        psi_goal = self._no_grad_psi(goal) if config.linear_psi else self._psi(goal)
        loss, logs = psi_loss(phi, phi_goal, self._arithmetic(psi), self._arithmetic(psi_goal))
        if config.relative_psi_loss:
            # The unexplained fraction, at most 1: at first φ is much smaller than ψ.
            loss = loss * (logs["psi_unexplained"].clamp(max=1.0) / loss.detach().clamp_min(1e-12))
        return config.psi_weight * loss, logs

    def after_step(self) -> None:
        """Update the target φ̄."""
        if self._target is not None:
            soft_update(self._target["trunk"], self._trunk, self.config.tau)
            soft_update(self._target["phi"], self._phi, self.config.tau)

    def optimizer_groups(self) -> list[dict[str, Any]]:
        """Return two groups: φ with its decoders, the bottleneck and the shared trunk, and ψ."""
        config = self.config
        of_psi = [*self._psi.parameters(), *self._arithmetic.parameters()]
        excluded = {id(parameter) for parameter in of_psi}
        of_phi = [value for value in self.parameters() if value.requires_grad and id(value) not in excluded]
        return [
            {"params": of_phi, "lr": config.phi_learning_rate, "weight_decay": config.phi_weight_decay},
            {"params": of_psi, "lr": config.psi_learning_rate, "weight_decay": config.psi_weight_decay},
        ]

    # ---- acting ----------------------------------------------------------------------------------------------------

    def _prepare_goal(self, initial_state: Tensor, goal: Tensor) -> Prepared:
        """Return the trunk's features of g, or ψ(g)."""
        features = self._trunk(goal)
        return (features if self.config.goal_condition == "pair" else self._psi(features),)

    def _goal_inputs(self, state: Tensor, *prepared: Tensor) -> Tensor:
        features, (task,) = self._trunk(state), prepared
        if self.config.goal_condition == "pair":
            task = self._phi(features, task)
        return self.inputs("goal", *self._scaled(self._psi(features), task))

    def prepare_example(self, initial_state: Tensor, before: Tensor, after: Tensor) -> Prepared:
        """Return φ(s_a, g_a) and ψ(s_0).

        Without a policy for analogies, return what the policy for goals takes: φ(s_a, g_a), or for π(ψ(s), ψ(g)) the
        goal ψ(s_0) + φ(s_a, g_a) - φ(g_a, g_a).
        """
        before, after = self._trunk(before), self._trunk(after)
        phi = self._phi(before, after)
        if self.config.goal_condition == "pair" and not self._acts_on_examples:
            return (phi,)
        start = self._psi(self._trunk(initial_state))
        if self._acts_on_examples:
            return phi, start
        return (start + phi - (self._phi(after, after) if self.config.grounded else 0.0),)

    def analogy_inputs(self, state: Tensor, *prepared: Tensor) -> Tensor:
        return self.inputs("analogy", *self._scaled(self._psi(self._trunk(state)), *prepared))

    @torch.no_grad()
    def phi(self, state: Tensor, goal: Tensor) -> Tensor:
        return self._phi(self._trunk(state), self._trunk(goal))

    @torch.no_grad()
    def psi(self, state: Tensor) -> Tensor:
        """Return ψ(s) of L_ψ, in which ψ(g) - ψ(s) approximates φ(s, g) - φ(g, g)."""
        return self._arithmetic(self._psi(self._trunk(state)))

    def _scaled(self, *embeddings: Tensor) -> tuple[Tensor, ...]:
        """Return embeddings on the policies' scale, which does not depend on the metric's."""
        return embeddings if self.config.output_norm else tuple(map(layer_normed, embeddings))
