"""A grid of runs: methods × worlds × video × variants × seeds, and the jobs it stands for."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal

from gcb.data import CollectConfig
from gcb.envs.spec import ENV_IDS, MODES
from gcb.errors import GCBError
from gcb.methods import method_named
from gcb.runs.config import make_config
from gcb.sweep.data_job import DataJob
from gcb.sweep.run_job import RunJob

ENV_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._]*")
VARIANT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=+-]*")
"""What may become part of a run's name, <world>-<method>-<variant>-s<seed>."""


@dataclass(frozen=True)
class Variant:
    """Settings that differ from a method's own; the empty variant is the method as it is."""

    name: str = ""
    """Part of the run's name; empty for none."""
    set: Mapping[str, Any] = field(default_factory=dict)
    """Changes of the configuration, as {"iql": {"discount": 0.95}}."""
    methods: tuple[str, ...] | None = None
    """Methods it applies to; null for all of the grid."""
    envs: tuple[str, ...] | None = None
    """Worlds it applies to; null for all of the grid."""


@dataclass(frozen=True)
class Grid:
    """What is to be trained and how it is to be evaluated."""

    methods: tuple[str, ...]
    """Methods by name; `gcb methods` lists them."""
    envs: tuple[str, ...] = ("button_drawer",)
    """drawer, button_drawer, or the name of a dataset that stands beside theirs."""
    video: tuple[Literal["plain", "video"], ...] = ("plain",)
    """Without video distractors, with them, or both."""
    seeds: int | tuple[int, ...] = 1
    """How many seeds from 0 on, or a list of them."""
    preset: str = "laptop"
    """Values to start from: paper, laptop or smoke. Where there is video, laptop means laptop_video."""
    set: Mapping[str, Any] = field(default_factory=dict)
    """Changes of every run's configuration."""
    variants: tuple[Variant, ...] = (Variant(),)
    """Further changes, each a run of its own."""
    transitions: int = 50_000
    """Size of the datasets that are collected."""
    image_size: int = 64
    """Side of their images in pixels."""
    episodes: int = 200
    """Episodes of an evaluation, in each mode."""
    modes: tuple[Literal["goal", "strict", "loose"], ...] = ("goal", "strict")
    """How the agents are told what to do; those that a method cannot be told by are NA."""
    eval_seed: int = 0
    """Which episodes."""
    videos: bool = False
    """Write videos of some episodes, too."""

    def __post_init__(self) -> None:
        for name in ("methods", "envs", "video", "variants", "modes"):
            values = [one.name if isinstance(one, Variant) else one for one in getattr(self, name)]
            if not values:
                raise GCBError(f"{name} is empty; a grid needs at least one.")
            if len(set(values)) < len(values):
                raise GCBError(f"{name} is {values}; each may be there once.")
        for method in self.methods:
            method_named(method)
        self._check_names()
        for name in ("transitions", "episodes", "image_size"):
            if getattr(self, name) < 1:
                raise GCBError(f"{name} is {getattr(self, name)}; it must be at least 1.")
        for name, known in (("modes", MODES), ("video", ("plain", "video"))):
            if wrong := [value for value in getattr(self, name) if value not in known]:
                raise GCBError(f"{name} holds {wrong[0]!r}; accepted: {', '.join(known)}.")
        if self.eval_seed < 0:
            raise GCBError(f"eval_seed is {self.eval_seed}; it must not be negative.")
        if not self.seed_list or len(set(self.seed_list)) < len(self.seed_list) or min(self.seed_list) < 0:
            raise GCBError(f"seeds is {self.seeds!r}; accepted: a number of at least 1, or different seeds from 0 on.")

    def _check_names(self) -> None:
        for variant in self.variants:
            if variant.name and not VARIANT_NAME.fullmatch(variant.name):
                raise GCBError(f"variants has the name {variant.name!r}; accepted: letters, digits and . _ = + -")
            for what in ("methods", "envs"):
                if strangers := set(getattr(variant, what) or ()) - set(getattr(self, what)):
                    raise GCBError(f"variant {variant.name!r}: {what} has {min(strangers)!r}, which the grid has not.")
        for env in self.envs:
            if not ENV_NAME.fullmatch(env):
                raise GCBError(f"worlds holds {env!r}; accepted: {', '.join(ENV_IDS)}, or a dataset's name.")

    @property
    def seed_list(self) -> tuple[int, ...]:
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds

    def runs(self, out: Path, data_root: Path, clips: Path | None = None) -> list[RunJob]:
        """Every run; all of one seed come before the next, so that a stopped sweep has compared something."""
        return [
            self._run(out, data_root, clips, *choice)
            for choice in product(self.seed_list, self.envs, self.video, self.methods, self.variants)
            if self._wanted(*choice)
        ]

    def datasets(self, data_root: Path, clips: Path | None = None) -> Iterator[DataJob]:
        """The datasets that the runs stand on."""
        for env, video in product(self.envs, self.video):
            folder = data_root / dataset_name(env, video)
            source = (str(clips) if clips else "builtin") if video == "video" else None
            options = {"image_size": self.image_size, "video": source}
            env = ENV_IDS.get(env)
            yield DataJob(folder, CollectConfig(env, self.transitions, options=options) if env else None)

    def _preset(self, video: str) -> str:
        return "laptop_video" if video == "video" and self.preset == "laptop" else self.preset

    def _wanted(self, seed: int, env: str, video: str, method: str, variant: Variant) -> bool:
        return method in (variant.methods or self.methods) and env in (variant.envs or self.envs)

    def _run(
        self,
        out: Path,
        data_root: Path,
        clips: Path | None,
        seed: int,
        env: str,
        video: Literal["plain", "video"],
        method: str,
        variant: Variant,
    ) -> RunJob:
        changes = merged(self.set, variant.set)
        try:
            config = make_config(method, self._preset(video), {**changes, "seed": seed})
        except GCBError as error:
            raise GCBError(f"{method}{' ' + variant.name if variant.name else ''}: {error}") from error
        return RunJob(
            out=out,
            env=env,
            video=video == "video",
            variant=variant.name,
            config=config,
            data=data_root / dataset_name(env, video),
            episodes=self.episodes,
            modes=self.modes,
            eval_seed=self.eval_seed,
            videos=self.videos,
            clips=str(clips) if clips and video == "video" else None,
        )


def dataset_name(env: str, video: str) -> str:
    """The folder of a dataset: drawer, drawer_video, …"""
    return f"{env}_video" if video == "video" else env


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Both changes, the second having the last word, field by field."""
    both = dict(first)
    for name, value in second.items():
        old = both.get(name)
        both[name] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return both
