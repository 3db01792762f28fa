"""Import data in another format as a dataset. Every episode is checked before anything is written."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gcb.data.episode import Episode, check_same_layout, make_episode
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

Format = Literal["auto", "ogbench", "minari", "npz_dir"]


@dataclass(frozen=True)
class ImportOptions:
    """How to convert the source. Changes to the data are recorded, and an export reverts them."""

    format: Format = "auto"
    """ogbench (an .npz file), minari (a dataset's directory), npz_dir (one .npz file per episode), auto (detect)."""
    action_bound: float = 1.0
    """Largest possible action of the source. Actions are divided by it to lie in [-1, 1]."""
    rewards: Literal["keep", "drop"] = "keep"
    """Keep the source's rewards, which must be 1 at the goal and 0 elsewhere, or drop them and rely on hindsight."""
    reward_offset: float = 0.0
    """Added to every reward: 1 if the source's rewards are 0 at the goal and -1 elsewhere."""
    observation: str | None = None
    """For Minari observations of type Dict, the entry that the agent sees. The default is "observation"."""
    env: str | None = None
    """Gymnasium id of the environment that the data come from, for `gcb eval`."""
    adapter: str | None = None
    """Adapter for that environment, by a name in gcb.envs.adapters.ADAPTERS. The default is "goal"."""

    def __post_init__(self) -> None:
        check_fields(self, action_bound="(0, inf)", reward_offset="(-inf, inf)")
        if self.adapter is not None:
            from gcb.envs.adapters import get_adapter

            get_adapter(self.adapter)
            if self.env is None:
                raise GCBError(f"adapter is {self.adapter!r}, but env is not given; an adapter needs an environment")

    def record(self) -> dict[str, Any]:
        """Return the options for the manifest: those that differ from their defaults."""
        values = {"action_bound": (self.action_bound, 1.0), "reward_offset": (self.reward_offset, 0.0)}
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
            if self.action_bound != 1 and "actions" in converted:
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
    identity = make_identity({**episodes.config, **options.record()}, "numpy")
    already_complete = is_complete(out, identity)
    if not already_complete:
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
            f"{path} does not exist; accepted: an .npz file, a Minari dataset's directory, a directory of .npz files"
        )
    format = options.format
    if format == "auto":
        is_minari = (path / METADATA).is_file() or (path / "data" / METADATA).is_file()
        format = "ogbench" if path.is_file() else "minari" if is_minari else "npz_dir"
    if options.observation is not None and format != "minari":
        raise GCBError(f"observation is {options.observation!r}; only Minari's observations have named entries")
    if format == "minari":
        return minari_source(path, options.observation)
    return ogbench_source(path) if format == "ogbench" else npz_dir_source(path)


def _check_all(source: EpisodeSource, options: ImportOptions, quiet: bool) -> None:
    """Read every episode once to find errors before anything is written."""
    first = None
    with Progress("checking", source.count, "episodes", quiet=quiet) as bar:
        for name, episode in options.convert(source):
            first = first or episode.layout()
            check_same_layout(name, episode.layout(), first)
            bar.advance()
    if first is None:
        raise GCBError("the source has no episodes; a dataset needs at least one")


def _write_rest(source: EpisodeSource, options: ImportOptions, writer: EpisodeWriter, quiet: bool) -> None:
    """Append the episodes that are not yet written."""
    done = writer.journal.episodes
    with Progress("importing", source.count, "episodes", start=done, quiet=quiet) as bar:
        for _, episode in islice(options.convert(source), done, None):
            writer.append(episode)
            bar.advance()
