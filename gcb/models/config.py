"""Settings of IQL, and the names of encoders and norms; importing them does not import PyTorch."""

from dataclasses import dataclass
from typing import Literal

from gcb.errors import GCBError
from gcb.utils.dataclass_io import check_fields

EncoderName = Literal["paper", "small"]
Norm = Literal["l1", "l2", "mean_l1"]


@dataclass(frozen=True)
class IQLConfig:
    """Hyperparameters of IQL; the defaults are those of the GCB paper's table and its release."""

    discount: float = 0.99
    """Discount factor γ."""
    expectile: float = 0.7
    """τ of the value loss: .5 is the mean; towards 1 it is the value of the best action in the data."""
    temperature: float = 1.0
    """β in exp(A / β): the smaller, the greedier; inf gives all actions the same weight (behaviour cloning)."""
    max_weight: float = 100.0
    """Upper bound of the weight exp(A / β)."""
    distillation: float = 0.5
    """Weight with which the policy for analogies imitates the policy for goals, both its mean action and its estimate
    of whether the task is done, instead of the noisy actions and the labels of the data; 0 for not at all."""
    tau: float = 0.005
    """Rate at which the target critics follow the critics, per step."""
    hidden: int = 256
    """Width of the two hidden layers of actor, critics and value."""
    log_std_min: float = -10.0
    """Lower bound of the policy's log standard deviation."""
    log_std_max: float = 2.0
    """Upper bound of the policy's log standard deviation."""
    fixed_std: float | None = None
    """A constant standard deviation instead of a learned one; 1 makes the actor's loss a weighted squared error."""

    def __post_init__(self) -> None:
        check_fields(self, "iql.", discount="(0, 1)", expectile="(0, 1)", tau="(0, 1]", temperature="(0, inf]")
        check_fields(
            self, "iql.", max_weight="(0, inf]", hidden="[1, 8192]", fixed_std="(0, inf)", distillation="[0, 1)"
        )
        if not self.log_std_min < self.log_std_max:
            raise GCBError(f"iql.log_std_min is {self.log_std_min}; it must be below log_std_max, {self.log_std_max}.")
