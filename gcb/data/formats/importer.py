"""Import data in another format as a dataset. Every episode is checked before anything is written."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gcb.data.episode import Episode, check_same_layout, make_episode
from gcb.data.formats.lerobot import lerobot_source
from gcb.data.formats.lerobot_meta import INFO
from gcb.data.formats.minari import METADATA, minari_source
from gcb.data.formats.npz import npz_dir_source
from gcb.data.formats.ogbench import ogbench_source
from gcb.data.formats.source import EpisodeSource
from gcb.data.output_dir import is_complete, make_identity
from gcb.data.store import Dataset, open_dataset
from gcb.data.writer import EpisodeWriter, resume_or_create
from gcb.errors import GCBError
from gcb.utils.dataclass_io import check_fields
from gcb.utils.progress import Progress

Format = Literal["auto", "ogbench", "minari", "lerobot", "npz_dir"]


@dataclass(frozen=True)
class ImportOptions:
    """How to convert the source. Changes to the data are recorded, and an export reverts them."""

    format: Format = "auto"
    """ogbench (an .npz file), minari or lerobot (a dataset's directory), npz_dir (one .npz file per episode), auto."""
    action_bound: float | None = None
    """Largest possible action: actions are divided by it to lie in [-1, 1]. By default what the source says, or 1."""
    rewards: Literal["keep", "drop"] = "keep"
    """Keep the source's rewards, which must be 1 at the goal and 0 elsewhere, or drop them and rely on hindsight."""
    reward_offset: float = 0.0
    """Added to every reward: 1 if the source's rewards are 0 at the goal and -1 elsewhere."""
    observation: str | None = None
    """What the agent sees: an entry of Minari's Dict observations (default "observation"), or a LeRobot feature."""
    goal: str | None = None
    """LeRobot feature that shows the goal, or "last" for the last frame. By default observation.images.goal, if any."""
    image_size: int | None = None
    """Resize LeRobot's images to squares of this size; none keeps them, up to 128 pixels a side."""
    env: str | None = None
    """Gymnasium id of the environment that the data come from, for `gcb eval`."""
    adapter: str | None = None
    """Adapter of that environment: gcb, goal (the default), achieved or info. `gcb eval --adapter` also takes yours."""

    def __post_init__(self) -> None:
        check_fields(self, action_bound="(0, inf)", reward_offset="(-inf, inf)", image_size="[8, 1024]")
        if self.adapter is not None:
            from gcb.envs.adapters import get_adapter

            get_adapter(self.adapter)
            if self.env is None:
                raise GCBError(f"adapter is {self.adapter!r}, but env is not given; an adapter needs an environment")

    def record(self) -> dict[str, Any]:
        """Return the options for the manifest: those that change something."""
        values = {"action_bound": (self.action_bound or 1.0, 1.0), "reward_offset": (self.reward_offset, 0.0)}
        record: dict[str, Any] = {name: value for name, (value, default) in values.items() if value != default}
        if self.rewards == "drop":
            record["rewards"] = "drop"
        if self.env:
            record |= {"env": self.env, "adapter": self.adapter or "goal"}
        return record

    def convert(self, source: EpisodeSource) -> Iterator[tuple[str, Episode]]:
        """Yield the name and the checked episode of each episode of a source, with these options applied."""
        for name, arrays in source.episodes():
            converted = dict(arrays)
            if self.action_bound not in (None, 1) and "actions" in converted:
                converted["actions"] = np.asarray(converted["actions"]) / self.action_bound
            if self.rewards == "drop":
                converted.pop("rewards", None)
            elif self.reward_offset and "rewards" in converted:
                converted["rewards"] = np.asarray(converted["rewards"]) + self.reward_offset
            yield name, make_episode(converted, name)


@dataclass(frozen=True)
class ImportResult:
    """The outcome of an import."""

    dataset: Dataset
    unused_arrays: tuple[str, ...]
    """Arrays of the source that a dataset has no field for."""
    already_complete: bool
    """Whether an earlier call had completed the same import."""


def import_data(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    options: ImportOptions | None = None,
    *,
    quiet: bool = False,
) -> ImportResult:
    """Import a file or directory in another format into the directory `out`, resuming an unfinished import."""
    options = options or ImportOptions()
    out = Path(out)
    episodes = open_source(Path(source), options)
    if options.action_bound is None:
        options = replace(options, action_bound=episodes.action_bound)
    identity = make_identity({**episodes.config, **options.record()}, "numpy")
    already_complete = is_complete(out, identity)
    if not already_complete:
        if episodes.check_first:
            _check_all(episodes, options, quiet)
        with resume_or_create(out, identity) as writer:
            if writer is not None:
                _write_rest(episodes, options, writer, quiet)
                writer.finish(identity)
    return ImportResult(open_dataset(out), episodes.unused_arrays, already_complete)


def open_source(path: Path, options: ImportOptions) -> EpisodeSource:
    """Open the episodes at a path in the given or detected format."""
    if not path.exists():
        raise GCBError(
            f"{path} does not exist; accepted: an .npz file, the directory of a Minari or LeRobot dataset, a directory "
            "of .npz files"
        )
    format = _detect(path) if options.format == "auto" else options.format
    if options.observation is not None and format not in ("minari", "lerobot"):
        raise GCBError(f"observation is {options.observation!r}; only Minari's and LeRobot's observations have names")
    for name, value in (("goal", options.goal), ("image_size", options.image_size)):
        if value is not None and format != "lerobot":
            raise GCBError(f"{name} is {value!r}; only LeRobot datasets take it")
    if format == "minari":
        return minari_source(path, options.observation)
    if format == "lerobot":
        return lerobot_source(path, options.observation, options.goal, options.image_size)
    return ogbench_source(path) if format == "ogbench" else npz_dir_source(path)


def _detect(path: Path) -> Format:
    if path.is_file():
        return "ogbench"
    if (path / INFO).is_file():
        return "lerobot"
    return "minari" if (path / METADATA).is_file() or (path / "data" / METADATA).is_file() else "npz_dir"


def _checked(source: EpisodeSource, options: ImportOptions) -> Iterator[Episode]:
    """Yield the episodes; each must have the layout of the first one."""
    first = None
    for name, episode in options.convert(source):
        first = first or episode.layout()
        check_same_layout(name, episode.layout(), first)
        yield episode
    if first is None:
        raise GCBError("the source has no episodes; a dataset needs at least one")


def _check_all(source: EpisodeSource, options: ImportOptions, quiet: bool) -> None:
    """Read every episode once to find errors before anything is written."""
    with Progress("checking", source.count, "episodes", quiet=quiet) as bar:
        for _ in _checked(source, options):
            bar.advance()


def _write_rest(source: EpisodeSource, options: ImportOptions, writer: EpisodeWriter, quiet: bool) -> None:
    """Append the episodes that are not yet written; if the source turns out to be damaged, keep nothing."""
    done = writer.journal.episodes
    episodes = islice(_checked(source, options), done, None)
    with Progress("importing", source.count, "episodes", start=done, quiet=quiet) as bar:
        while True:
            try:
                episode = next(episodes, None)
            except GCBError:
                writer.discard()
                raise
            if episode is None:
                return
            writer.append(episode)
            bar.advance()
