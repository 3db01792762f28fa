"""What the methods that GCB is compared with have in common: how the policy's gradient enters, and what it sees.

Whatever GCB has that is no part of its idea, they have too: the encoder, the learning rates, a policy that is told in
training what it will be told at the test, the narrow passage. So what differs is the representation.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from gcb.errors import GCBError
from gcb.methods.base import Batch, Method, MethodOutput, Shapes
from gcb.methods.components import Bottleneck, EncoderConfig, check_not_negative, check_positive, normalised
from gcb.methods.gcb import GCBConfig
from gcb.models.networks import encoder

PAPER = {"encoder": "paper", "learning_rate": 5e-4, "rl_gradient": "critic", "bottleneck_dim": None}
"""In the paper all baselines take the critic's gradient (appendix, "Backpropagating RL Objectives")."""
SMOKE = {"size": 32}


@dataclass(frozen=True)
class GradientConfig(EncoderConfig):
    """An encoder that the policy's learner may train too."""

    rl_gradient: Literal["none", "actor", "critic", "both"] = GCBConfig.rl_gradient
    """Whose gradient enters the encoders: as in GCB's defaults; the paper's baselines had the critic's."""

    def need_gradient(self) -> None:
        """For methods with a part that nothing else trains."""
        if self.rl_gradient == "none":
            raise GCBError("method_config.rl_gradient is 'none'; nothing else would train the encoder of states.")


@dataclass(frozen=True)
class BaselineConfig(GradientConfig):
    """What every baseline can be told whose policy sees the task apart from the state."""

    bottleneck_dim: int | None = GCBConfig.bottleneck_dim
    """Width of the passage from the task to the policy, as GCB has it; none for the embeddings themselves."""
    bottleneck_noise: float = GCBConfig.bottleneck_noise
    """Noise on the passage in training, in units of its range of [-1, 1]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "bottleneck_dim")
        check_not_negative(self, "bottleneck_noise")


class Baseline(Method):
    """A method with one learning rate, whose policy sees a state and, through a passage, a task."""

    presets: ClassVar = {"paper": {"method_config": PAPER}, "smoke": {"method_config": SMOKE}}
    shifted_together = (frozenset({"state", "next_state", "goal", "initial_state"}),)
    config: Any
    bottleneck: Bottleneck

    def encode_task(self, task: Tensor, *, noisy: bool = False) -> Tensor:
        """What the policy sees of all that is known of a task."""
        return self.bottleneck(task, noisy=noisy)

    def optimizer_groups(self) -> list[dict[str, Any]]:
        trained = [parameter for parameter in self.parameters() if parameter.requires_grad]
        return [{"params": trained, "lr": self.config.learning_rate, "weight_decay": self.config.weight_decay}]

    def _features(
        self, loss: Tensor, logs: dict[str, Any], state: Tensor, task: Tensor, next_state: Tensor, next_task: Tensor
    ) -> MethodOutput:
        """MethodOutput for the policy; tasks are given as they are before the passage.

        The passage belongs to the policy: the actor trains it whether or not its gradient goes on into the encoders.
        """
        gradient = self.config.rl_gradient
        actor, critic = gradient in ("actor", "both"), gradient in ("critic", "both")
        with torch.no_grad():
            plain, following = self.encode_task(task.detach()), self.encode_task(next_task.detach())
        return MethodOutput(
            loss=loss,
            actor_state=state if actor else state.detach(),
            actor_task=self.encode_task(task if actor else task.detach(), noisy=True),
            critic_state=state if critic else state.detach(),
            critic_task=self.encode_task(task) if critic else plain,
            next_state=next_state.detach(),
            next_task=following,
            logs=logs,
        )


@dataclass(frozen=True)
class StateConfig(BaselineConfig):
    """What a method with an embedding of single states can be told."""

    condition: Literal["initial_pair", "current_pair", "goal"] = "initial_pair"
    """What the policy sees beside ψ(s): ψ(s_0) and ψ(g), so that an example's ψ(s_a) and ψ(g_a) are the like of what it
    was trained on; ψ(s_t) and ψ(g), as the paper trains GCB; or ψ(g), inferred from an example by arithmetic."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.condition == "goal" and self.bottleneck_dim is not None:
            raise GCBError("method_config.condition 'goal' uses no pair: set passage to none.")


class StateMethod(Baseline):
    """One encoder ψ for single states, trained by `objective` and by the policy's gradient."""

    config_type = StateConfig
    presets: ClassVar = {
        "paper": {"method_config": {**PAPER, "condition": "current_pair"}},
        "smoke": {"method_config": SMOKE},
    }
    learns_from_next: ClassVar[bool] = False
    """Whether the objective's gradient also enters ψ(s')."""

    def __init__(self, config: StateConfig, shapes: Shapes):
        super().__init__()
        self.config = config
        self._psi = self._encoder(shapes)
        together = config.size if config.condition == "goal" else 2 * config.size
        self.bottleneck = Bottleneck(together, config.bottleneck_dim, config.bottleneck_noise)
        self.extra_frames = frozenset({"initial_state"}) if config.condition == "initial_pair" else frozenset()
        self.state_size, self.task_size = config.size, self.bottleneck.size

    def objective(self, batch: Batch, state: Tensor, next_state: Tensor) -> tuple[Tensor, dict[str, Any]]:
        """The representation's own loss, from what the encoder says of s and s'; by default there is none."""
        return batch.reward.new_zeros(()), {}

    def compute_loss(self, batch: Batch) -> MethodOutput:
        output, goal = self._psi(batch.state), self.state_features(batch.goal)
        with torch.set_grad_enabled(self.learns_from_next):
            next_output = self._psi(batch.next_state)
        loss, logs = self.objective(batch, output, next_output)
        state, next_state = self._embedding(output), self._embedding(next_output).detach()
        begin = state
        if self.config.condition == "initial_pair":
            assert batch.initial_state is not None, "`extra_frames` asks for it"
            begin = self.state_features(batch.initial_state)
        return self._features(
            loss, logs, state, self._task(begin, goal), next_state, self._task(self._moved(begin, next_state), goal)
        )

    @property
    def task_depends_on_state(self) -> bool:
        return self.config.condition == "current_pair"

    def state_features(self, state: Tensor) -> Tensor:
        """ψ(s)."""
        return self._embedding(self._psi(state))

    def goal_features(self, initial_state: Tensor, state: Tensor, goal: Tensor) -> Tensor:
        begin = self.state_features(self._moved(initial_state, state))
        return self.encode_task(self._task(begin, self.state_features(goal)))

    def analogy_features(self, initial_state: Tensor, state: Tensor, example: tuple[Tensor, Tensor]) -> Tensor:
        """(ψ(s_a), ψ(g_a)); or for π(ψ(s), ψ(g)) the goal ψ(s_0) + ψ(g_a) - ψ(s_a)."""
        before, after = self.state_features(example[0]), self.state_features(example[1])
        if self.config.condition == "goal":
            return self.encode_task(normalised(self.state_features(initial_state) + after - before))
        return self.encode_task(self._task(before, after))

    def _encoder(self, shapes: Shapes) -> torch.nn.Module:
        return encoder(self.config.encoder, shapes.observation, self.config.size)

    def _embedding(self, output: Tensor) -> Tensor:
        """ψ(s) from what the encoder says."""
        return output

    def _task(self, begin: Tensor, goal: Tensor) -> Tensor:
        return goal if self.config.condition == "goal" else torch.cat([begin, goal], -1)

    def _moved(self, begin: Tensor, now: Tensor) -> Tensor:
        """What the task is told from: where it began, or where it stands."""
        return now if self.task_depends_on_state else begin
