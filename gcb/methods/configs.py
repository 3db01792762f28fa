"""The settings of every method, without their networks, so that reading and printing them does not import PyTorch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from gcb.data.partners import PartnerConfig
from gcb.errors import GCBError
from gcb.models.config import EncoderName, Norm
from gcb.utils.dataclass_io import check_fields

DynamicsName = Literal["next_observation", "deterministic", "probabilistic", "ensemble"]


@dataclass(frozen=True)
class MethodConfig:
    """Settings of a method; every class that adds fields also adds their `intervals`."""

    intervals: ClassVar[Mapping[str, str]] = {}
    """Accepted values of numeric fields, such as {"size": "[1, inf)"}."""

    def __post_init__(self) -> None:
        for config_type in type(self).__mro__:
            check_fields(self, "method_config.", **vars(config_type).get("intervals", {}))


@dataclass(frozen=True)
class OptimizerConfig(MethodConfig):
    """One learning rate and weight decay for all of a method; the defaults are those of GCB's ψ."""

    learning_rate: float = 1e-3
    """Learning rate of the encoder, 5e-4 in the paper."""
    weight_decay: float = 1e-4
    """Weight decay of the encoder."""

    intervals: ClassVar = {"learning_rate": "(0, inf)", "weight_decay": "[0, inf)"}


@dataclass(frozen=True)
class EncoderConfig(MethodConfig):
    """The architecture of the encoders."""

    encoder: EncoderName = "small"
    """Convolutional layers; see gcb.models.networks.ENCODERS."""
    size: int = 256
    """Dimension of the embeddings, 256 in the paper, 32 to 512 in its ablation."""

    intervals: ClassVar = {"size": "[1, 8192]"}


@dataclass(frozen=True)
class GradientConfig(EncoderConfig):
    """Encoders that the policy's learner may train too."""

    rl_gradient: Literal["none", "actor", "critic", "both"] = "actor"
    """Whose gradient enters the encoders. In the paper: none for GCB, critic in its ablation and for the baselines."""

    def require_gradient(self) -> None:
        """Raise an error if no gradient of the policy's learner enters an encoder that has no loss of its own."""
        if self.rl_gradient == "none":
            raise GCBError(
                "method_config.rl_gradient is 'none'; nothing else trains the state encoder: use actor, critic or both."
            )


@dataclass(frozen=True)
class PolicyConfig(GradientConfig):
    """The policies, and the bottleneck between an example and its policy."""

    policies: Literal["both", "goal", "analogy"] = "both"
    """Policies to train: one for goals and one for analogies; only the former, which is then given an example's task
    embedding in the goal's place, as in the paper; or only the latter, which is then given (s₀, g) as its example."""
    bottleneck_dim: int | None = 16
    """Width of the bottleneck between an example and its policy, which passes the task but not the place; or none."""
    bottleneck_noise: float = 0.3
    """Standard deviation of the noise on the bottleneck in training; its code has a root mean square of 1."""

    intervals: ClassVar = {"bottleneck_dim": "[2, 8192]", "bottleneck_noise": "[0, inf)"}


@dataclass(frozen=True)
class MetricConfig(MethodConfig):
    """The metric φ; GCB's preset `paper` has the values of its text."""

    output_norm: bool = False
    """End φ and ψ with a layer norm, as the paper does. It fixes a scale that the metric should be free to choose."""
    left_norm: Norm = "mean_l1"
    """Norm of φ_i - φ_j in L_φ; the paper's is l1, its ablation l2."""
    right_norm: Norm = "mean_l1"
    """Norm of φ̄'_i - φ̄'_j in L_φ; the paper's is l2. Unequal norms reduce the effective discount, and all distances."""
    metric_discount: float = 0.9
    """γ of L_φ; the paper's is .99."""
    scale_reward: bool = True
    """Weight immediate differences in L_φ by 1 - γ, as in Proposition 1, so that distances stay below 1."""
    policy_distance_weight: float = 1.0
    """Weight of |π_i - π_j| beside |r_i - r_j| in L_φ, with actions decoded from φ. The paper has no such term. Without
    it, tasks of equal length coincide."""
    phi_weight: float = 1.0
    """Weight of L_φ."""
    tau: float | None = None
    """Rate at which a target φ̄ follows φ, per step; none for a stop-gradient of φ itself, as in the paper."""

    intervals: ClassVar = {
        "metric_discount": "(0, 1)",
        "policy_distance_weight": "[0, inf)",
        "phi_weight": "[0, inf)",
        "tau": "(0, 1]",
    }


@dataclass(frozen=True)
class GCBConfig(MetricConfig, PolicyConfig):
    """Every choice that the paper makes or ablates. The preset `paper` follows its text; the defaults do not."""

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
    """Predict a from φ(s, g): the π of policy_distance_weight, and a training signal for φ."""
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


@dataclass(frozen=True)
class GCDBCConfig(MetricConfig, GradientConfig, OptimizerConfig):
    """The metric's settings, with GCB's values."""


@dataclass(frozen=True)
class BCConfig(EncoderConfig, OptimizerConfig):
    """The encoder of a cloned policy."""


@dataclass(frozen=True)
class BaselineConfig(PolicyConfig, OptimizerConfig):
    """A method with a policy for goals and one for analogies."""


@dataclass(frozen=True)
class CPVConfig(BaselineConfig):
    """The plan vectors and their regulariser."""

    composition_weight: float = 0.1
    """Weight of the composition loss; 0 for the architecture alone, the only part that the GCB paper describes."""
    margin: float = 1.0
    """Margin of the composition loss, in squared distance."""

    intervals: ClassVar = {"composition_weight": "[0, inf)", "margin": "[0, inf)"}

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_gradient()


@dataclass(frozen=True)
class CTAConfig(BaselineConfig):
    """The goal-conditioned value."""

    value_weight: float = 1.0
    """Weight of the loss of V(s, g) = f(s)ᵀ ψ(g)."""
    value_discount: float = 0.99
    """γ of V(s, g), which decreases with the time to the goal."""
    expectile: float = 0.7
    """.5 for the value of the behaviour policy; towards 1 it is the value of the best behaviour in the data."""
    tau: float = 0.01
    """Rate at which the targets of f and ψ follow them, per step."""

    intervals: ClassVar = {
        "value_weight": "[0, inf)",
        "value_discount": "(0, 1]",
        "expectile": "(0, 1]",
        "tau": "(0, 1]",
    }


@dataclass(frozen=True)
class ReconstructionConfig(BaselineConfig):
    """The loss of a variational autoencoder."""

    reconstruction_weight: float = 1.0
    """Weight of the whole loss, the negative ELBO in nats per dimension of an observation."""
    kl_weight: float = 1.0
    """Weight of the KL divergence from the prior; 1 is the ELBO, more is a β-VAE."""
    observation_std: float = 0.1
    """Standard deviation of the decoder's Gaussian; pixels range from -.5 to .5."""

    intervals: ClassVar = {"reconstruction_weight": "[0, inf)", "kl_weight": "[0, inf)", "observation_std": "(0, inf)"}


@dataclass(frozen=True)
class CCVAEConfig(ReconstructionConfig):
    """A context-conditioned variational autoencoder."""


@dataclass(frozen=True)
class StateConfig(BaselineConfig):
    """A method with an embedding ψ of single states."""

    goal_condition: Literal["goal", "pair"] = "goal"
    """Given a goal, the policy is π(ψ(s), ψ(g)) or, as the paper trains GCB, π(ψ(s), ψ(s), ψ(g)). Without a policy for
    analogies, an example is given to the former as ψ(s₀) + ψ(g_a) - ψ(s_a), to the latter as ψ(s_a), ψ(g_a)."""


@dataclass(frozen=True)
class VAEConfig(ReconstructionConfig, StateConfig):
    """A variational autoencoder of single states."""


@dataclass(frozen=True)
class ContrastiveConfig(StateConfig):
    """An encoder that is trained contrastively."""

    contrast_weight: float = 1.0
    """Weight of the contrastive loss."""

    intervals: ClassVar = {"contrast_weight": "[0, inf)"}


@dataclass(frozen=True)
class CURLConfig(ContrastiveConfig):
    """Contrast between two views, the second one through a momentum encoder."""

    view_shift: int = 4
    """Largest random shift of the second view, in pixels."""
    view_scale: float = 0.2
    """Largest relative change of a vector observation's scale in the second view, as RAD augments states."""
    tau: float = 0.05
    """Rate at which the momentum encoder follows ψ, per step."""

    intervals: ClassVar = {"view_shift": "[0, 256]", "view_scale": "[0, inf)", "tau": "(0, 1]"}


@dataclass(frozen=True)
class PixelConfig(StateConfig):
    """The encoder, and whose gradient trains it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_gradient()
