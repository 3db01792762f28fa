"""Goal-conditioned bisimulation: the task embedding φ(s, g), the state embedding ψ(s), and what a policy sees of them.

The equations stand in `gcb.models.losses`; the reasons for what the default adds to the paper's text in docs/method.md.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from gcb.errors import GCBError
from gcb.methods.base import Batch, Method, MethodOutput, Shapes
from gcb.methods.components import make_target, normalised, soft_update
from gcb.methods.dynamics import Dynamics, DynamicsKind, make_dynamics
from gcb.models.losses import Norm, phi_loss, psi_loss
from gcb.models.networks import EncoderKind, encoder, mlp


@dataclass(frozen=True)
class GCBConfig:
    """Every choice that the paper makes or ablates. The defaults are ours; the preset `paper` is its text."""

    encoder: EncoderKind = "small"
    """Convolutions of φ and ψ; see gcb.models.networks.ENCODERS."""
    size: int = 256
    """Dimension of φ and ψ, 32 to 512 in the paper's ablation."""
    output_norm: bool = False
    """End φ and ψ with a layer norm, as the paper does. It fixes a scale that the metric should be free to choose."""
    left_norm: Norm = "mean_l1"
    """Norm of φ_i - φ_j in L_φ; the paper's is l1, its ablation l2."""
    right_norm: Norm = "mean_l1"
    """Norm of φ̄'_i - φ̄'_j in L_φ; the paper's is l2. Unequal norms shrink the discount, and the space with it."""
    metric_discount: float = 0.9
    """γ of L_φ; the paper's is .99."""
    scale_reward: bool = True
    """Weigh immediate differences in L_φ by 1 - γ, as in Proposition 1, so that distances stay below 1."""
    policy_distance_weight: float = 1.0
    """Weight of |π_i - π_j| beside |r_i - r_j| in L_φ, 0 in the paper. Without it equally long tasks are one."""
    tau: float | None = 0.01
    """φ̄ follows φ as a moving average at this rate; none for the paper's stop-gradient of φ itself."""
    grounded: bool = True
    """Subtract φ(g, g) in L_ψ (Eq. psi_obj) or not (Eq. analogy)."""
    phi_weight: float = 10.0
    """Weight of L_φ, 1 in the paper; scaled by 1 - γ, its distances and their errors are small."""
    psi_weight: float = 0.3
    """Weight of L_ψ, 1 in the paper; a larger one costs ψ its precision, a smaller one its arithmetic."""
    relative_psi_loss: bool = True
    """Measure L_ψ by the squared length of what it explains: else a metric of small distances would silence it."""
    reward_decoder: bool = True
    """Predict r from φ(s, g) and φ(s', g) (Eq. r_loss)."""
    action_decoder: bool = True
    """Predict a from φ(s, g): the π of the action gap, and a reason for φ to know what is to be done."""
    dynamics: DynamicsKind = "next_observation"
    """What follows in L_φ: the next observation, or a learned model (Eq. phi_f_loss)."""
    rl_gradient: Literal["none", "actor", "critic", "both"] = "actor"
    """Whose gradient enters φ and ψ; the paper's choice is none, its ablation critic."""
    condition: Literal["pair", "goal"] = "pair"
    """The policy is π(ψ(s), φ(s_k, g)), or π(ψ(s), ψ(g)), which infers ψ(g) by arithmetic when told by example."""
    p_initial_pair: float = 0.7
    """How often s_k is the episode's first frame instead of the current one: at an analogy the pair never moves."""
    bottleneck_dim: int | None = 16
    """Width of the passage from φ to the policy; none for φ itself. What is narrow carries only what is to be done."""
    bottleneck_noise: float = 0.3
    """Noise on the passage in training, in units of its range of [-1, 1]."""
    phi_learning_rate: float = 1e-3
    """Learning rate of φ and what decodes it, 1e-4 in the paper."""
    phi_weight_decay: float = 1e-4
    """Weight decay of φ."""
    psi_learning_rate: float = 1e-3
    """Learning rate of ψ, 5e-4 in the paper."""
    psi_weight_decay: float = 1e-4
    """Weight decay of ψ."""

    def __post_init__(self) -> None:
        for name in ("size", "bottleneck_dim", "phi_learning_rate", "psi_learning_rate"):
            value = getattr(self, name)
            _check(name, value, value is None or value > 0, "it must be above 0")
        for name in ("policy_distance_weight", "phi_weight", "psi_weight", "bottleneck_noise"):
            _check(name, getattr(self, name), getattr(self, name) >= 0, "it must not be negative")
        _check("metric_discount", self.metric_discount, 0 < self.metric_discount < 1, "it must lie between 0 and 1")
        _check("p_initial_pair", self.p_initial_pair, 0 <= self.p_initial_pair < 1, "it must be at least 0 and below 1")
        _check("tau", self.tau, self.tau is None or 0 < self.tau <= 1, "0 to 1, or none")
        if self.policy_distance_weight and not self.action_decoder:
            raise GCBError(
                "method_config.policy_distance_weight needs method_config.action_decoder, which gives it its policy."
            )
        if self.condition == "goal" and (self.p_initial_pair or self.bottleneck_dim):
            raise GCBError("method_config.condition 'goal' uses no pair: set p_initial_pair to 0 and passage to none.")


def _check(name: str, value: Any, accepted: bool, what: str) -> None:
    if not accepted:
        raise GCBError(f"method_config.{name} is {value!r}; {what}.")


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


class GCB(Method):
    """Algorithm 1: φ by L_φ, ψ by L_ψ, and the policy, concurrently."""

    name = "gcb"
    paper = "Hansen-Estruch et al. 2022, Bisimulation makes analogies in goal-conditioned RL"
    summary = "φ(s, g) is a bisimulation metric over tasks, ψ(g) - ψ(s) its arithmetic; acts by goal or by example"
    config_type = GCBConfig
    presets: ClassVar = {"paper": {"method_config": PAPER}, "smoke": {"method_config": {"size": 32}}}
    shifted_together = (frozenset({"state", "next_state", "goal", "initial_state"}),)

    def __init__(self, config: GCBConfig, shapes: Shapes):
        super().__init__()
        self.config = config
        observation, size = shapes.observation, config.size
        self._phi = encoder(config.encoder, observation, size, stacked=2, norm=config.output_norm)
        self._psi = encoder(config.encoder, observation, size, norm=config.output_norm)
        self._target = None
        if config.tau is not None:
            self._target = make_target(self._phi)
        self.reward_decoder = RewardDecoder(size) if config.reward_decoder else None
        self.action_decoder = mlp([size, 256, shapes.action]) if config.action_decoder else None
        self.dynamics: Dynamics | None = make_dynamics(config.dynamics, size, shapes.action)
        self.bottleneck = nn.Linear(size, config.bottleneck_dim) if config.bottleneck_dim else None
        self.extra_frames = frozenset({"initial_state"}) if config.p_initial_pair else frozenset()
        self.state_size, self.task_size = size, config.bottleneck_dim or size

    # ---- learning --------------------------------------------------------------------------------------------

    def compute_loss(self, batch: Batch) -> MethodOutput:
        """The first rows of the batch are tasks as they stand (s_t, g) and train φ and ψ; the others (s_0, g)."""
        config, current = self.config, self._current_rows(len(batch.state))
        pair_state = batch.state
        if batch.initial_state is not None and current < len(pair_state):
            pair_state = torch.cat([batch.state[:current], batch.initial_state[current:]])
        phi = self._phi_of(self._phi, pair_state, batch.goal)
        psi = self._psi(batch.state)
        with torch.no_grad():
            psi_next = self._psi(batch.next_state)
            target = self._phi if self._target is None else self._target
            phi_next = self._phi_of(target, batch.next_state[:current], batch.goal[:current])
        psi_goal = self._psi(batch.goal[:current])

        losses, logs = self._representation(batch, phi[:current], phi_next, psi[:current], psi_goal)
        state = self._normalised(psi)
        actor = config.rl_gradient in ("actor", "both")
        critic = config.rl_gradient in ("critic", "both")
        if config.condition == "goal":
            task = next_task = self._normalised(psi_goal)
            told = task if actor else task.detach()
        else:
            task = self._bottleneck(phi)
            next_task = self._bottleneck(phi_next) if self.task_depends_on_state else task
            # The passage belongs to the policy: the actor trains it even where its gradient ends before φ.
            told = task if actor else self._bottleneck(phi.detach())
        if config.bottleneck_noise:
            told = told + config.bottleneck_noise * torch.randn_like(told)
        return MethodOutput(
            loss=torch.stack(list(losses.values())).sum(),
            actor_state=state if actor else state.detach(),
            actor_task=told,
            critic_state=state if critic else state.detach(),
            critic_task=task if critic else task.detach(),
            next_state=self._normalised(psi_next),
            next_task=next_task.detach(),
            logs={**{name: loss.detach() for name, loss in losses.items()}, **logs},
        )

    def _representation(
        self, batch: Batch, phi: Tensor, phi_next: Tensor, psi: Tensor, psi_goal: Tensor
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """L_φ, L_ψ and the decoders' losses on the rows whose pair is (s_t, g)."""
        config, rows = self.config, len(phi)
        goal, action, reward = batch.goal[:rows], batch.action[:rows], batch.reward[:rows]
        losses: dict[str, Tensor] = {}
        if self.reward_decoder is not None:
            losses["reward_decoder_loss"] = self.reward_decoder.loss(phi, phi_next, reward)
        following = phi_next
        if self.dynamics is not None:
            losses["dynamics_loss"] = self.dynamics.loss(phi.detach(), phi_next, action)
            following = self.dynamics.next(phi.detach(), action)
        metric, logs = metric_losses(config, phi, following, action, reward, self.action_decoder)
        losses |= metric
        with torch.no_grad():
            phi_goal = self._phi_of(self._phi, goal, goal) if config.grounded else None
        loss, psi_logs = psi_loss(phi, phi_goal, psi, psi_goal)
        if config.relative_psi_loss:
            loss = loss * (psi_logs["psi_unexplained"] / loss.detach().clamp_min(1e-12))
        losses["psi_loss"] = config.psi_weight * loss
        return losses, {**logs, **psi_logs}

    def after_step(self) -> None:
        """φ̄ follows φ."""
        if self._target is not None and self.config.tau is not None:
            soft_update(self._target, self._phi, self.config.tau)

    def optimizer_groups(self) -> list[dict[str, Any]]:
        config = self.config
        decoders = [self.reward_decoder, self.action_decoder, self.dynamics, self.bottleneck]
        heads = [parameter for part in decoders if part is not None for parameter in part.parameters()]
        phi = {"lr": config.phi_learning_rate, "weight_decay": config.phi_weight_decay}
        psi = {"lr": config.psi_learning_rate, "weight_decay": config.psi_weight_decay}
        return [{"params": [*self._phi.parameters(), *heads], **phi}, {"params": list(self._psi.parameters()), **psi}]

    # ---- acting ----------------------------------------------------------------------------------------------

    @property
    def task_depends_on_state(self) -> bool:
        """Only a policy trained on φ(s_t, g) must be told anew at every step."""
        return self.config.condition == "pair" and not self.config.p_initial_pair

    def state_features(self, state: Tensor) -> Tensor:
        return self._normalised(self._psi(state))

    def goal_features(self, initial_state: Tensor, state: Tensor, goal: Tensor) -> Tensor:
        if self.config.condition == "goal":
            return self._normalised(self._psi(goal))
        return self._bottleneck(self._phi_of(self._phi, state if self.task_depends_on_state else initial_state, goal))

    def analogy_features(self, initial_state: Tensor, state: Tensor, example: tuple[Tensor, Tensor]) -> Tensor:
        """φ(s_a, g_a); or for π(ψ(s), ψ(g)) the goal that arithmetic infers: ψ(s_0) + φ(s_a, g_a) - φ(g_a, g_a)."""
        phi = self._phi_of(self._phi, *example)
        if self.config.condition == "pair":
            return self._bottleneck(phi)
        origin = self._phi_of(self._phi, example[1], example[1]) if self.config.grounded else 0.0
        return self._normalised(self._psi(initial_state) + phi - origin)

    @torch.no_grad()
    def phi(self, state: Tensor, goal: Tensor) -> Tensor:
        return self._phi_of(self._phi, state, goal)

    @torch.no_grad()
    def psi(self, state: Tensor) -> Tensor:
        return self._psi(state)

    # ---- inside ----------------------------------------------------------------------------------------------

    def _current_rows(self, batch: int) -> int:
        return max(2, round(batch * (1 - self.config.p_initial_pair)))

    def _phi_of(self, network: nn.Module, state: Tensor, goal: Tensor) -> Tensor:
        return network(state, goal)

    def _normalised(self, embedding: Tensor) -> Tensor:
        """What the policy sees has one scale, whatever the metric's scale is."""
        return embedding if self.config.output_norm else normalised(embedding)

    def _bottleneck(self, phi: Tensor) -> Tensor:
        """The passage from φ to the policy."""
        return self._normalised(phi) if self.bottleneck is None else torch.tanh(self.bottleneck(self._normalised(phi)))


def metric_losses(
    config: Any, phi: Tensor, following: Tensor, action: Tensor, reward: Tensor, action_decoder: nn.Module | None
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """L_φ on randomly permuted pairs, with the gap between decoded actions and the decoder's loss if there is one.

    `config` has the metric's settings by GCBConfig's names; `following` is φ̄(s', g).
    """
    losses: dict[str, Tensor] = {}
    permutation, gap = torch.randperm(len(phi), device=phi.device), None
    if action_decoder is not None:
        predicted = action_decoder(phi)
        losses["action_decoder_loss"] = (predicted - action).square().mean()
        mean = predicted.detach()
        gap = config.policy_distance_weight * (mean - mean[permutation]).abs().mean(1)
    loss, logs = phi_loss(
        *(phi, following, reward, permutation),
        discount=config.metric_discount,
        left_norm=config.left_norm,
        right_norm=config.right_norm,
        reward_weight=1 - config.metric_discount if config.scale_reward else 1.0,
        policy_gap=gap,
    )
    losses["phi_loss"] = config.phi_weight * loss
    return losses, logs


class RewardDecoder(nn.Module):
    """R(φ(s, g), φ(s', g)) of Eq. (r_loss)."""

    def __init__(self, size: int):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2 * size, 512), nn.LayerNorm(512), nn.ReLU(), nn.Linear(512, 1))

    def loss(self, phi: Tensor, phi_next: Tensor, reward: Tensor) -> Tensor:
        """Eq. (r_loss); the gradient enters φ(s, g)."""
        return (self.layers(torch.cat([phi, phi_next], -1)).squeeze(-1) - reward).square().mean()
