"""Goal-conditioned bisimulation (GCB): the task embedding φ(s, g), the state embedding ψ(s), and policies on both.

The equations are in `gcb.models.losses`; docs/method.md explains what the defaults add to the paper's text.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from gcb.data import Batch
from gcb.data.partners import PartnerConfig
from gcb.errors import GCBError
from gcb.methods.base import MethodOutput, Prepared, Shapes
from gcb.methods.components import Bottleneck, PolicyConfig, PolicyMethod
from gcb.methods.dynamics import DynamicsName, make_dynamics
from gcb.methods.metric import MetricConfig, RewardDecoder, metric_losses
from gcb.models.losses import psi_loss
from gcb.models.networks import PairHead, StateHead, encoder, layer_normed, make_target, make_trunk, mlp, soft_update


@dataclass(frozen=True)
class GCBConfig(MetricConfig, PolicyConfig):
    """Every choice that the paper makes or ablates. The defaults are ours; the preset `paper` is its text."""

    shared_trunk: bool = True
    """φ and ψ share their convolutions, and φ fuses the feature maps of s and g; otherwise φ has an encoder of its own
    for the two images stacked, as in the paper."""
    goal_condition: Literal["pair", "goal"] = "pair"
    """Given a goal, the policy is π(ψ(s), φ(s, g)) or π(ψ(s), ψ(g))."""
    partners: PartnerConfig = field(default_factory=PartnerConfig)
    """Partner episodes, whose pairs serve as examples in training."""
    grounded: bool = True
    """Subtract φ(g, g) in L_ψ (Eq. psi_obj) or not (Eq. analogy)."""
    psi_weight: float = 1.0
    """Weight of L_ψ."""
    linear_psi: bool = True
    """L_ψ trains a linear map on top of the policies' state embedding; otherwise, as in the paper, the embedding
    itself, which makes it less precise. Without an RL gradient nothing else trains the embedding: then use False."""
    relative_psi_loss: bool = True
    """Divide L_ψ by the squared length of its target; otherwise it vanishes where distances are small."""
    reward_decoder: bool = True
    """Predict r from φ(s, g) and φ(s', g) (Eq. r_loss)."""
    action_decoder: bool = True
    """Predict a from φ(s, g): the π of policy_distance_weight, and a signal for φ about what to do."""
    dynamics: DynamicsName = "next_observation"
    """φ̄(s', g) in L_φ: of the next observation, or predicted by a learned model (Eq. phi_f_loss)."""
    phi_learning_rate: float = 1e-3
    """Learning rate of φ, its decoders and the shared trunk; 1e-4 in the paper."""
    phi_weight_decay: float = 1e-4
    """Weight decay of φ."""
    psi_learning_rate: float = 1e-3
    """Learning rate of ψ, 5e-4 in the paper."""
    psi_weight_decay: float = 1e-4
    """Weight decay of ψ."""

    intervals: ClassVar = {
        "psi_weight": "[0, inf)",
        "phi_learning_rate": "(0, inf)",
        "phi_weight_decay": "[0, inf)",
        "psi_learning_rate": "(0, inf)",
        "psi_weight_decay": "[0, inf)",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.policy_distance_weight and not self.action_decoder:
            raise GCBError(
                f"method_config.policy_distance_weight is {self.policy_distance_weight}; it needs action_decoder."
            )
        if self.policies == "goal" and self.goal_condition == "goal" and self.linear_psi:
            raise GCBError("method_config.linear_psi is True; arithmetic on the policy's ψ(g) needs it to be False.")
        if self.policies == "goal" and self.partners.source != "none":
            raise GCBError(
                f"method_config.partners.source is {self.partners.source!r}; partners need the policy for analogies: "
                "set policies to both or analogy, or the source to none."
            )


PAPER = {
    "encoder": "paper",
    "output_norm": True,
    "left_norm": "l1",
    "right_norm": "l2",
    "metric_discount": 0.99,
    "scale_reward": False,
    "policy_distance_weight": 0.0,
    "action_decoder": False,
    "phi_weight": 1.0,
    "shared_trunk": False,
    "linear_psi": False,
    "relative_psi_loss": False,
    "policies": "goal",
    "partners": {"source": "none"},
    "rl_gradient": "none",
    "phi_learning_rate": 1e-4,
    "phi_weight_decay": 1e-3,
    "psi_learning_rate": 5e-4,
}
LINEAR_PSI_EVERY = 4
"""The linear map of `linear_psi` is trained on one in so many groups of a batch: it has few parameters."""


class GCB(PolicyMethod):
    """Algorithm 1: φ is trained by L_φ, ψ by L_ψ, and the policies on both, concurrently."""

    name = "gcb"
    paper = "Hansen-Estruch et al. 2022, Bisimulation makes analogies in goal-conditioned RL"
    summary = "φ(s, g) embeds tasks by a bisimulation metric, and ψ(g) - ψ(s) approximates it"
    config_type = GCBConfig
    presets: ClassVar = {"paper": {"method_config": PAPER}, "smoke": {"method_config": {"size": 32}}}

    def __init__(self, config: GCBConfig, shapes: Shapes):
        super().__init__()
        self.config, size = config, config.size
        self._build_encoders(shapes.observation)
        # A linear map keeps differences: ψ(g) - ψ(s) can be read off the policy's embedding or it cannot.
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
        """Build ψ and φ as functions of the features that `_trunk` makes of single observations.

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
        state, goal, initial_state = self._encode(batch)
        with torch.no_grad():
            next_state = self._trunk(batch.next_state)
        psi, psi_next = self._psi(state), self._no_grad_psi(next_state)
        if self._acts_on_goals and self.config.goal_condition == "pair":
            phi_rows = self._phi(state, batch.expand(goal))
            phi = batch.first(phi_rows)
        else:
            phi_rows = phi = self._phi(batch.first(state), goal)
        phi_next = self._no_grad_phi(next_state, goal)
        phi_target = phi_next if self._target is None else self._target_phi(batch)

        losses, logs = self._representation_losses(batch, goal, phi, phi_target, batch.first(psi))
        logs = {**{name: loss.detach() for name, loss in losses.items()}, **logs}
        features, next_features = {}, {}
        if self._acts_on_goals:
            by_pair = self.config.goal_condition == "pair"
            task, next_task = (phi_rows, phi_next) if by_pair else (self._psi(goal),) * 2
            features["goal"], next_features["goal"] = (psi, task), (psi_next, next_task)
        if self._acts_on_examples:
            assert initial_state is not None, "`extra_frames` asks for it"
            start, example = self._psi(initial_state), self._examples(batch, self._phi(initial_state, goal))
            features["analogy"], next_features["analogy"] = (psi, example, start), (psi_next, example, start)
        total = torch.stack(list(losses.values())).sum()
        return self.policy_output(batch, total, logs, features, next_features)

    def _encode(self, batch: Batch[Tensor]) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return the trunk's features of s, g and s_0, from one pass over all."""
        frames = [batch.state, batch.goal]
        if self._acts_on_examples and batch.initial_state is not None:
            frames.append(batch.initial_state)
        if self.config.shared_trunk:
            frames = self._trunk(torch.cat(frames)).split([len(frame) for frame in frames])
        return frames[0], frames[1], frames[2] if len(frames) > 2 else None

    def _examples(self, batch: Batch[Tensor], phi: Tensor) -> Tensor:
        """Return φ of each group's example: its own pair (s_0, g), or that of its partner, the group beside it."""
        if batch.has_partner is None:
            return phi
        chosen = torch.rand(len(phi), device=phi.device) < self.config.partners.probability
        partner = phi.view(-1, 2, phi.shape[1]).flip(1).view(phi.shape)
        return torch.where((chosen & batch.has_partner)[:, None], partner, phi)

    def inputs(self, policy: str, *features: Tensor, noisy: bool = False) -> Tensor:
        """Return ψ(s) beside φ(s, g) or ψ(g); for an analogy ψ(s), the bottleneck's code of φ(s_a, g_a), and ψ(s_0)."""
        state, task, *start = (self._scaled(feature) for feature in features)
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
        """Return L_ψ. The linear map of `linear_psi` is trained on a part of the groups, and nothing else is."""
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
        return self.inputs("goal", self._psi(features), task)

    def prepare_example(self, initial_state: Tensor, before: Tensor, after: Tensor) -> Prepared:
        """Return φ(s_a, g_a) and ψ(s_0).

        For a policy for goals, return φ(s_a, g_a), or the goal ψ(s_0) + φ(s_a, g_a) - φ(g_a, g_a) for π(ψ(s), ψ(g)).
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
        return self.inputs("analogy", self._psi(self._trunk(state)), *prepared)

    @torch.no_grad()
    def phi(self, state: Tensor, goal: Tensor) -> Tensor:
        return self._phi(self._trunk(state), self._trunk(goal))

    @torch.no_grad()
    def psi(self, state: Tensor) -> Tensor:
        """Return ψ(s) of L_ψ, in which ψ(g) - ψ(s) approximates φ(s, g) - φ(g, g)."""
        return self._arithmetic(self._psi(self._trunk(state)))

    def _scaled(self, embedding: Tensor) -> Tensor:
        """Return an embedding on the policy's scale, which does not depend on the metric's."""
        return embedding if self.config.output_norm else layer_normed(embedding)
