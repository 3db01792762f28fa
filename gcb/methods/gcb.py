"""Goal-conditioned bisimulation (GCB): the task embedding φ(s, g), the state embedding ψ(s), and a policy on both.

The equations are in `gcb.models.losses`; docs/method.md explains what the defaults add to the paper's text.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from gcb.data import Batch
from gcb.errors import GCBError
from gcb.methods.base import MethodOutput, Shapes
from gcb.methods.components import Bottleneck, BottleneckConfig, BottleneckMethod
from gcb.methods.dynamics import DynamicsName, make_dynamics
from gcb.methods.metric import MetricConfig, RewardDecoder, metric_losses
from gcb.models.losses import psi_loss
from gcb.models.networks import encoder, layer_normed, make_target, mlp, soft_update


@dataclass(frozen=True)
class GCBConfig(MetricConfig, BottleneckConfig):
    """Every choice that the paper makes or ablates. The defaults are ours; the preset `paper` is its text."""

    grounded: bool = True
    """Subtract φ(g, g) in L_ψ (Eq. psi_obj) or not (Eq. analogy)."""
    psi_weight: float = 0.3
    """Weight of L_ψ, 1 in the paper; a larger one makes ψ less precise, a smaller one its arithmetic less accurate."""
    relative_psi_loss: bool = True
    """Divide L_ψ by the squared length of its target; otherwise it vanishes where distances are small."""
    reward_decoder: bool = True
    """Predict r from φ(s, g) and φ(s', g) (Eq. r_loss)."""
    action_decoder: bool = True
    """Predict a from φ(s, g): the π of policy_distance_weight, and a signal for φ about what to do."""
    dynamics: DynamicsName = "next_observation"
    """φ̄(s', g) in L_φ: of the next observation, or predicted by a learned model (Eq. phi_f_loss)."""
    condition: Literal["pair", "goal"] = "pair"
    """The policy is π(ψ(s), φ(s_k, g)), or π(ψ(s), ψ(g)), where ψ(g) is inferred by arithmetic for an analogy."""
    p_initial_pair: float = 0.7
    """Probability that s_k is the episode's initial state, not the current one: an example pair does not move."""
    phi_learning_rate: float = 1e-3
    """Learning rate of φ and its decoders, 1e-4 in the paper."""
    phi_weight_decay: float = 1e-4
    """Weight decay of φ."""
    psi_learning_rate: float = 1e-3
    """Learning rate of ψ, 5e-4 in the paper."""
    psi_weight_decay: float = 1e-4
    """Weight decay of ψ."""

    intervals: ClassVar = {
        "psi_weight": "[0, inf)",
        "p_initial_pair": "[0, 1)",
        "phi_learning_rate": "(0, inf)",
        "psi_learning_rate": "(0, inf)",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.policy_distance_weight and not self.action_decoder:
            raise GCBError(
                f"method_config.policy_distance_weight is {self.policy_distance_weight}; it needs action_decoder."
            )
        if self.condition == "goal" and (self.p_initial_pair or self.bottleneck_dim):
            accepted = "set p_initial_pair to 0 and bottleneck_dim to None"
            raise GCBError(f"method_config.condition is 'goal'; it uses no pair: {accepted}.")


PAPER = {
    "encoder": "paper",
    "output_norm": True,
    "left_norm": "l1",
    "right_norm": "l2",
    "metric_discount": 0.99,
    "scale_reward": False,
    "policy_distance_weight": 0.0,
    "action_decoder": False,
    "tau": None,
    "phi_weight": 1.0,
    "psi_weight": 1.0,
    "relative_psi_loss": False,
    "rl_gradient": "none",
    "p_initial_pair": 0.0,
    "bottleneck_dim": None,
    "bottleneck_noise": 0.0,
    "phi_learning_rate": 1e-4,
    "phi_weight_decay": 1e-3,
    "psi_learning_rate": 5e-4,
}


class GCB(BottleneckMethod):
    """Algorithm 1: φ is trained by L_φ, ψ by L_ψ, and the policy on both, concurrently."""

    name = "gcb"
    paper = "Hansen-Estruch et al. 2022, Bisimulation makes analogies in goal-conditioned RL"
    summary = "φ(s, g) embeds tasks by a bisimulation metric, and ψ(g) - ψ(s) approximates it"
    config_type = GCBConfig
    presets: ClassVar = {"paper": {"method_config": PAPER}, "smoke": {"method_config": {"size": 32}}}

    def __init__(self, config: GCBConfig, shapes: Shapes):
        super().__init__()
        self.config = config
        observation, size = shapes.observation, config.size
        self._phi = encoder(config.encoder, observation, size, stacked=2, norm=config.output_norm)
        self._psi = encoder(config.encoder, observation, size, norm=config.output_norm)
        self._target = None if config.tau is None else make_target(self._phi)
        self.reward_decoder = RewardDecoder(size) if config.reward_decoder else None
        self.action_decoder = mlp([size, 256, shapes.action]) if config.action_decoder else None
        self.dynamics = make_dynamics(config.dynamics, size, shapes.action)
        self.bottleneck = Bottleneck(size, config.bottleneck_dim, config.bottleneck_noise or None)
        self.extra_frames = frozenset({"initial_state"}) if config.p_initial_pair else frozenset()
        self.state_size, self.task_size = size, self.bottleneck.size

    # ---- training --------------------------------------------------------------------------------------------------

    def compute_loss(self, batch: Batch[Tensor]) -> MethodOutput:
        """Return the losses of φ and ψ, from the first rows of the batch, whose pairs are (s_t, g).

        The pairs of the other rows are (s_0, g), for the policy; they take no part in these losses.
        """
        config, rows = self.config, self._current_pairs(len(batch.state))
        pair_state = batch.state
        if batch.initial_state is not None and rows < len(pair_state):
            pair_state = torch.cat([batch.state[:rows], batch.initial_state[rows:]])
        phi = self._phi(pair_state, batch.goal)
        psi = self._psi(batch.state)
        with torch.no_grad():
            psi_next = self._psi(batch.next_state)
            target = self._phi if self._target is None else self._target
            phi_next = target(batch.next_state[:rows], batch.goal[:rows])
        psi_goal = self._psi(batch.goal[:rows])

        losses, logs = self._representation_losses(batch, phi[:rows], phi_next, psi[:rows], psi_goal)
        task = next_task = psi_goal if config.condition == "goal" else phi
        if self.task_depends_on_state:
            next_task = phi_next
        total = torch.stack(list(losses.values())).sum()
        logs = {**{name: loss.detach() for name, loss in losses.items()}, **logs}
        return self.policy_output(total, logs, self._scaled(psi), task, self._scaled(psi_next), next_task)

    def _current_pairs(self, batch_size: int) -> int:
        """Return how many pairs of a batch are (s_t, g)."""
        return max(2, round(batch_size * (1 - self.config.p_initial_pair)))

    def _representation_losses(
        self, batch: Batch[Tensor], phi: Tensor, phi_next: Tensor, psi: Tensor, psi_goal: Tensor
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return L_φ, L_ψ and the decoders' losses on the rows whose pair is (s_t, g), and metrics to log."""
        config, rows = self.config, len(phi)
        goal, action, reward = batch.goal[:rows], batch.action[:rows], batch.reward[:rows]
        losses: dict[str, Tensor] = {}
        if self.reward_decoder is not None:
            losses["reward_decoder_loss"] = self.reward_decoder.loss(phi, phi_next, reward)
        if self.dynamics is not None:
            losses["dynamics_loss"] = self.dynamics.loss(phi.detach(), phi_next, action)
            phi_next = self.dynamics.next(phi.detach(), action)
        phi_losses, logs = metric_losses(config, phi, phi_next, action, reward, self.action_decoder)
        losses |= phi_losses
        with torch.no_grad():
            phi_goal = self._phi(goal, goal) if config.grounded else None
        loss, psi_logs = psi_loss(phi, phi_goal, psi, psi_goal)
        if config.relative_psi_loss:
            loss = loss * (psi_logs["psi_unexplained"] / loss.detach().clamp_min(1e-12))
        losses["psi_loss"] = config.psi_weight * loss
        return losses, {**logs, **psi_logs}

    def encode_task(self, task: Tensor, *, noisy: bool = False) -> Tensor:
        """Scale φ, or ψ(g) if the policy is conditioned on it, and pass it through the bottleneck."""
        return self.bottleneck(self._scaled(task), noisy=noisy)

    def encode_for_training(self, task: Tensor, actor_gradient: bool) -> tuple[Tensor, Tensor]:
        # The noise comes last, so that actor and critic can share one pass through the bottleneck.
        code = self.encode_task(task)
        return self.bottleneck.add_noise(code if actor_gradient else self.encode_task(task.detach())), code

    def after_step(self) -> None:
        """Update the target φ̄."""
        if self._target is not None:
            soft_update(self._target, self._phi, self.config.tau)

    def optimizer_groups(self) -> list[dict[str, Any]]:
        """Return two groups: φ with its decoders and the bottleneck, and ψ."""
        config = self.config
        heads = [self.reward_decoder, self.action_decoder, self.dynamics, self.bottleneck]
        head_parameters = [parameter for head in heads if head is not None for parameter in head.parameters()]
        phi = {"lr": config.phi_learning_rate, "weight_decay": config.phi_weight_decay}
        psi = {"lr": config.psi_learning_rate, "weight_decay": config.psi_weight_decay}
        return [
            {"params": [*self._phi.parameters(), *head_parameters], **phi},
            {"params": list(self._psi.parameters()), **psi},
        ]

    # ---- acting ----------------------------------------------------------------------------------------------------

    @property
    def task_depends_on_state(self) -> bool:
        """Only a policy trained on φ(s_t, g) alone needs the task's features at every step."""
        return self.config.condition == "pair" and not self.config.p_initial_pair

    def state_features(self, state: Tensor) -> Tensor:
        """Return ψ(s), scaled."""
        return self._scaled(self._psi(state))

    def goal_features(self, initial_state: Tensor, state: Tensor, goal: Tensor) -> Tensor:
        """Return the features of φ(s_0, g), of φ(s, g), or of ψ(g)."""
        if self.config.condition == "goal":
            return self.encode_task(self._psi(goal))
        return self.encode_task(self._phi(state if self.task_depends_on_state else initial_state, goal))

    def analogy_features(self, initial_state: Tensor, state: Tensor, example: tuple[Tensor, Tensor]) -> Tensor:
        """Return the features of φ(s_a, g_a), or of the goal ψ(s_0) + φ(s_a, g_a) - φ(g_a, g_a) for π(ψ(s), ψ(g))."""
        phi = self._phi(*example)
        if self.config.condition == "pair":
            return self.encode_task(phi)
        origin = self._phi(example[1], example[1]) if self.config.grounded else 0.0
        return self.encode_task(self._psi(initial_state) + phi - origin)

    @torch.no_grad()
    def phi(self, state: Tensor, goal: Tensor) -> Tensor:
        return self._phi(state, goal)

    @torch.no_grad()
    def psi(self, state: Tensor) -> Tensor:
        return self._psi(state)

    def _scaled(self, embedding: Tensor) -> Tensor:
        """Return an embedding on the policy's scale, which does not depend on the metric's."""
        return embedding if self.config.output_norm else layer_normed(embedding)
