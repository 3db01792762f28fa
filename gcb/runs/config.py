"""The settings of a training run, their presets, and their file: YAML that holds every one of them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Generic, Literal, TypeVar

import yaml

from gcb.data.sampler import GoalSampling
from gcb.errors import GCBError
from gcb.methods import method_named
from gcb.models.iql import IQLConfig
from gcb.utils.dataclass_io import from_dict, replace_nested, to_dict
from gcb.utils.files import read_yaml, write_atomically

MethodConfig = TypeVar("MethodConfig")


@dataclass(frozen=True)
class TrainConfig(Generic[MethodConfig]):
    """Everything that decides what is learned from a dataset. `make_config` gives one with a preset's values."""

    method: str
    """Name of the method; `gcb methods` lists them."""
    method_config: MethodConfig
    """Settings of the method itself."""
    iql: IQLConfig = field(default_factory=IQLConfig)
    """Settings of the policy's learner."""
    seed: int = 0
    """Seed of the initial weights and of every draw; the same seed gives the same agent."""
    steps: int = 10_000
    """Gradient steps. The learning-rate schedule follows them."""
    minutes: float | None = None
    """Stop at the first checkpoint after so many minutes of training, if the steps are not done by then."""
    batch_size: int = 256
    """Transitions in a batch."""
    microbatches: int = 1
    """Equal parts of a batch, each with pairs and noise of its own, whose gradients are averaged. The processes that
    torchrun starts take one each; a lone process takes them one after the other, which needs less memory."""
    learning_rate: float = 1e-4
    """Learning rate of actor, critics and value; the encoders' rates belong to the method."""
    warmup_steps: int = 0
    """Steps in which all learning rates rise from 0."""
    lr_schedule: Literal["none", "linear", "cosine"] = "none"
    """How all learning rates fall from the end of the warm-up to the last step."""
    min_lr_ratio: float = 0.0
    """Share of the learning rates that is left at the last step, if they fall."""
    max_grad_norm: float | None = None
    """Largest norm of the gradient in each group of parameters; null for no limit."""
    max_loss: float = 1e6
    """A loss beyond it means that the run has exploded, and stops it. Healthy ones here are far below 100."""
    goals: GoalSampling = field(default_factory=GoalSampling)
    """Where the goals of the samples come from."""
    only_successful: bool = False
    """Leave out the episodes that did not reach their goal, by the dataset's own rewards; no effect on data that does
    not say which did."""
    p_absorbing: float = 0.0
    """How often a sample is a successful episode's last frame with no action (zeros): what to do after success, which
    data that ends there does not show. Use 0 where zeros do not mean standing still."""
    future_discount: float | None = None
    """γ of a geometric choice among future goals; null for a uniform one."""
    random_shift: int = 4
    """Random-shift augmentation of images: up to so many pixels in each direction; 0 for none."""
    horizontal_flip: bool = False
    """Exchange left and right in half of the samples, and turn their actions accordingly. No effect on data whose world
    does not say what that means for actions (`gcb.envs.adapters.Adapter.flipped_actions`)."""
    channel_shuffle: bool = False
    """Change the places of the colour channels at random, in all images of a sample alike. Not where colours mean
    something; no effect on images that are not red, green and blue."""
    random_overlay: float = 0.0
    """Share of the samples through whose images another one of the dataset shines: what is behind means nothing."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where to compute; auto takes a CUDA GPU if there is one, else the CPU."""
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Of the forward passes; auto is float32 on CPU (measured faster there) and a half precision on a GPU."""
    threads: int | None = None
    """Cores that torch uses; null for its own choice. Where others are at work too, 1 can be many times faster."""
    compile: bool = False
    """Fuse the losses with torch.compile; without a working compiler the run goes on uncompiled."""
    log_every: int = 100
    """Steps between two rows of metrics."""
    checkpoint_every: int = 500
    """Steps between two checkpoints; a kill loses at most what came after the last one."""
    preload: bool = False
    """Read the whole dataset into memory instead of mapping its files."""
    tensorboard: bool = False
    """Also log to TensorBoard files in the run's folder (extra `tensorboard`)."""
    wandb: bool = False
    """Also log to Weights & Biases (extra `wandb`); offline unless WANDB_MODE says otherwise."""

    def __post_init__(self) -> None:
        wanted = method_named(self.method).config_type
        if not isinstance(self.method_config, wanted):
            raise GCBError(f"method_config is {self.method_config!r}; {self.method} needs a {wanted.__name__}.")
        for name in ("steps", "batch_size", "microbatches", "log_every", "checkpoint_every"):
            _check(name, getattr(self, name), getattr(self, name) >= 1, "it must be at least 1")
        _check("threads", self.threads, self.threads is None or self.threads >= 1, "it must be at least 1")
        for name in ("seed", "warmup_steps", "random_shift"):
            _check(name, getattr(self, name), getattr(self, name) >= 0, "it must not be negative")
        for name in ("minutes", "learning_rate", "max_grad_norm", "max_loss"):
            value = getattr(self, name)
            _check(name, value, value is None or 0 < value < inf, "it must be above 0")
        _check("batch_size", self.batch_size, self.batch_size >= 2, "it must be at least 2: φ compares pairs")
        even = self.batch_size % self.microbatches == 0 and self.batch_size >= 2 * self.microbatches
        _check(
            "batch_size",
            self.batch_size,
            even,
            f"it must be a multiple of {self.microbatches} parts of at least 2 each",
        )
        _check("min_lr_ratio", self.min_lr_ratio, 0 <= self.min_lr_ratio <= 1, "it must lie between 0 and 1")
        _check(
            "warmup_steps", self.warmup_steps, self.warmup_steps < self.steps, f"it must be below {self.steps} steps"
        )
        _check("p_absorbing", self.p_absorbing, 0 <= self.p_absorbing < 1, "it must be at least 0 and below 1")
        _check("random_overlay", self.random_overlay, 0 <= self.random_overlay <= 1, "it must lie between 0 and 1")
        discount = self.future_discount
        _check("future_discount", discount, discount is None or 0 < discount < 1, "it must lie between 0 and 1")


def _check(name: str, value: Any, accepted: bool, what: str) -> None:
    if not accepted:
        raise GCBError(f"{name} is {value!r}; {what}.")


# Each preset is only its differences from the defaults above, which follow the paper's text and table; a method adds
# its own (`Method.presets`).
PRESETS: dict[str, dict[str, Any]] = {
    # "TrainResult to convergence" on a GPU, 50K samples; the text knows no augmentation.
    "paper": {"steps": 100_000, "random_shift": 0, "checkpoint_every": 1000},
    # Two cores, minutes. A noisy expert's failures are few but long: nearly half of the transitions are of no avail.
    # And goals as they will be asked for teach more than those of hindsight (docs/method.md).
    "laptop": {
        "steps": 3000,
        "batch_size": 128,
        "only_successful": True,
        "goals": {"p_original": 0.9, "p_future": 0.1, "p_next_frame": 0.0},
        "learning_rate": 1e-3,
        "warmup_steps": 100,
        "lr_schedule": "cosine",
        "p_absorbing": 0.08,
    },
    # The same where moving pictures stand behind the scenes: to learn that these mean nothing takes longer.
    "laptop_video": {"steps": 10_000, "random_overlay": 0.5, "horizontal_flip": True},
    # Seconds, for tests.
    "smoke": {
        "steps": 20,
        "batch_size": 16,
        "random_shift": 2,
        "log_every": 5,
        "checkpoint_every": 10,
        "iql": {"hidden": 32},
    },
}
BUILDS_ON = {"laptop_video": "laptop"}
"""Presets that begin with the values of another one."""


def make_config(
    method: str = "gcb", preset: str = "laptop", changes: Mapping[str, Any] | None = None
) -> TrainConfig[Any]:
    """The configuration of a method in a preset, with `changes` such as {"seed": 1, "iql": {"discount": 0.95}}."""
    if preset not in PRESETS:
        raise GCBError(f"There is no preset {preset!r}; there are {', '.join(PRESETS)}.")
    kind = method_named(method)
    config: TrainConfig[Any] = TrainConfig(method, kind.config_type())
    below = [BUILDS_ON[preset]] if preset in BUILDS_ON else []
    for name in (*below, preset):
        config = replace_nested(replace_nested(config, PRESETS[name]), kind.presets.get(name, {}))
    return replace_nested(config, changes or {})


def config_from_dict(plain: Any) -> TrainConfig[Any]:
    """The configuration that `to_dict` turned into `plain`, checked name by name and type by type."""
    if not isinstance(plain, Mapping) or not isinstance(plain.get("method"), str):
        raise GCBError("the configuration does not name its method; accepted: a mapping as in a run's config.yaml.")
    kind = method_named(plain["method"])
    return from_dict(TrainConfig, {"method_config": {}, **plain}, types_of={"method_config": kind.config_type})


def write_config(path: str | os.PathLike[str], config: TrainConfig[Any]) -> None:
    """Write every setting as YAML."""
    write_atomically(path, yaml.safe_dump(to_dict(config), sort_keys=False, allow_unicode=True).encode())


def read_config(path: str | os.PathLike[str]) -> TrainConfig[Any]:
    """Read what `write_config` wrote, or a part of it: the rest is as by default. Never executes anything."""
    plain = read_yaml(path)
    try:
        return config_from_dict(plain)
    except GCBError as error:
        raise GCBError(f"{path}: {error}") from error
