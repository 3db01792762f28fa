"""A grid of runs: methods × environments × video × variants × seeds. Read it from YAML or the command line."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from gcb.data import CollectConfig
from gcb.envs.spec import DEFAULT_MODES, ENV_IDS, MODES, Mode
from gcb.errors import GCBError, short
from gcb.evaluation.evaluate import Validation
from gcb.methods import method_named
from gcb.runs.config import make_config
from gcb.sweep.jobs import DataJob, RunJob, dataset_name
from gcb.utils.dataclass_io import EPISODES, SEED, check_fields, check_interval, from_dict
from gcb.utils.text_files import parse_yaml, read_yaml

MAX_SEEDS = "[1, 10000]"
ENV_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._]*(?<!_video)")
VARIANT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=+-]*")
"""Names that can be part of a run's name, <env>[_video]-<method>[-<variant>]-s<seed>."""


@dataclass(frozen=True)
class Variant:
    """Configuration overrides with a name; the default is the method unchanged."""

    name: str = ""
    """Part of the run's name."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Fields of the configuration, such as {"iql.discount": 0.95}."""
    methods: tuple[str, ...] | None = None
    """Methods it applies to; none for all of the grid."""
    envs: tuple[str, ...] | None = None
    """Environments it applies to; none for all of the grid."""


@dataclass(frozen=True)
class Grid:
    """What to train and how to evaluate it."""

    methods: tuple[str, ...]
    """Methods by name; `gcb methods` lists them."""
    envs: tuple[str, ...] = ("button_drawer",)
    """drawer, button_drawer, or the name of another dataset in the same directory."""
    video: tuple[bool, ...] = (False,)
    """Without video distractors, with them, or both."""
    seeds: int | tuple[int, ...] = 1
    """Number of seeds from 0 on, or a list of seeds."""
    preset: str = "laptop"
    """Preset of the configurations: paper, laptop or smoke. With video, laptop means laptop_video."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Configuration overrides of every run."""
    variants: tuple[Variant, ...] = (Variant(),)
    """Further overrides; every variant is a run of its own."""
    transitions: int = 50_000
    """Size of collected datasets."""
    image_size: int = 64
    """Width and height of their images in pixels."""
    episodes: int = 200
    """Evaluation episodes in each mode."""
    modes: tuple[Mode, ...] = DEFAULT_MODES
    """Evaluation modes; those that a method does not support are NA."""
    eval_seed: int = 0
    """Seed of the evaluation episodes."""
    eval_every: int = 0
    """Steps between evaluations during training, for curves; 0 for none. They use the validation seed."""
    eval_episodes: int = 20
    """Episodes per mode of the evaluations during training."""
    videos: bool = False
    """Write videos of some evaluation episodes."""

    def __post_init__(self) -> None:
        for name in ("methods", "envs", "video", "variants", "modes"):
            values = [value.name if isinstance(value, Variant) else value for value in getattr(self, name)]
            if not values or len(set(values)) < len(values):
                raise GCBError(f"{name} is {values}; it must be one or more different values.")
        check_interval("the number of seeds", self.seeds if isinstance(self.seeds, int) else len(self.seeds), MAX_SEEDS)
        if not self.seed_list or len(set(self.seed_list)) < len(self.seed_list) or min(self.seed_list) < 0:
            raise GCBError(
                f"seeds is {short(self.seeds)}; accepted: a number of at least 1, or different seeds from 0 on."
            )
        for method in self.methods:
            method_named(method)
        if wrong := [mode for mode in self.modes if mode not in MODES]:
            raise GCBError(f"modes holds {wrong[0]!r}; accepted: {', '.join(MODES)}.")
        check_fields(self, transitions="[1, 1000000000]", episodes=EPISODES, image_size="[8, 2048]", eval_seed=SEED)
        check_fields(self, eval_every="[0, inf)", eval_episodes=EPISODES)
        self._check_names()

    def _check_names(self) -> None:
        for variant in self.variants:
            if variant.name and not VARIANT_NAME.fullmatch(variant.name):
                raise GCBError(f"a variant has the name {variant.name!r}; accepted: letters, digits and . _ = + -")
            for name in ("methods", "envs"):
                if unknown := set(getattr(variant, name) or ()) - set(getattr(self, name)):
                    raise GCBError(f"variant {variant.name!r}: {name} holds {min(unknown)!r}, which the grid does not.")
        for env in self.envs:
            if not ENV_NAME.fullmatch(env):
                hint = " For data with video distractors turn video on." if env.endswith("_video") else ""
                raise GCBError(f"envs holds {env!r}; accepted: {', '.join(ENV_IDS)}, or a dataset's name.{hint}")

    @property
    def seed_list(self) -> tuple[int, ...]:
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds

    @property
    def validation(self) -> Validation:
        return Validation(self.eval_every, self.eval_episodes)

    def datasets(self, data_root: Path, clips: Path | None = None) -> Iterator[DataJob]:
        """Return the datasets that the runs need."""
        for env, video in product(self.envs, self.video):
            source = (str(clips) if clips else "builtin") if video else None
            options = {"image_size": self.image_size, "video": source}
            config = CollectConfig(ENV_IDS[env], self.transitions, options=options) if env in ENV_IDS else None
            yield DataJob(data_root / dataset_name(env, video), config)

    def jobs(self, runs: Path, data_root: Path, clips: Path | None = None) -> list[RunJob]:
        """Return every run. Seeds are the outermost loop, so that a stopped sweep has results for all methods."""
        return [
            RunJob(
                runs=runs,
                env=env,
                video=video,
                variant=variant.name,
                config=self._config(seed, video, method, variant),
                dataset=data_root / dataset_name(env, video),
                episodes=self.episodes,
                modes=self.modes,
                eval_seed=self.eval_seed,
                validation=self.validation,
                videos=self.videos,
                clips=str(clips) if clips and video else None,
            )
            for seed, env, video, method, variant in product(
                self.seed_list, self.envs, self.video, self.methods, self.variants
            )
            if method in (variant.methods or self.methods) and env in (variant.envs or self.envs)
        ]

    def _config(self, seed: int, video: bool, method: str, variant: Variant) -> Any:
        preset = "laptop_video" if video and self.preset == "laptop" else self.preset
        try:
            config = make_config(method, preset, {**merge(self.overrides, variant.overrides), "seed": seed})
            self.validation.check(config.checkpoint_every)
            return config
        except GCBError as error:
            raise GCBError(f"{' '.join(filter(None, (method, variant.name)))}: {error}") from error


def merge(*overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Merge overrides field by field, later ones take precedence; {"a.b": 1} is the same as {"a": {"b": 1}}."""
    merged: dict[str, Any] = {}
    for mapping in overrides:
        for key, value in mapping.items():
            name, _, rest = str(key).partition(".")
            if rest:
                value = {rest: value}
            if isinstance(value, Mapping):
                old = merged.get(name)
                value = merge(old if isinstance(old, Mapping) else {}, value)
            merged[name] = value
    return merged


def read_grid(path: str | os.PathLike[str]) -> Grid:
    """Read a grid from a YAML file with the fields of `Grid`. Nothing in the file is executed."""
    values = read_yaml(path)
    try:
        return from_dict(Grid, values)
    except GCBError as error:
        raise GCBError(f"{path}: {error}") from error


def parse_overrides(texts: Iterable[str]) -> dict[str, Any]:
    """Return the overrides of texts such as `steps=3000` and `iql.discount=0.95`."""
    return merge(*({name: _value(text, value)} for text in texts for name, value in [_split(text)]))


def parse_variants(texts: Iterable[str]) -> tuple[Variant, ...]:
    """Return a variant for each combination of texts such as `method_config.size=32,64`."""
    axes = [[(name, value) for value in values.split(",")] for name, values in map(_split, texts)]
    variants = []
    for number, choice in enumerate(product(*axes)):
        label = "+".join(f"{name.rpartition('.')[2]}={value}" for name, value in choice)
        overrides = parse_overrides(f"{name}={value}" for name, value in choice)
        variants.append(Variant(label if VARIANT_NAME.fullmatch(label) else f"v{number}", overrides))
    return tuple(variants)


def _split(text: str) -> tuple[str, str]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name or not value:
        raise GCBError(f"{short(text)} is not an override; accepted: name=value, such as steps=3000.")
    return name, value


def _value(text: str, value: str) -> Any:
    return parse_yaml(value, f"the value of {short(text)}")
