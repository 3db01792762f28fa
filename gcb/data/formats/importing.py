"""From a file or folder of another format to a dataset: everything is checked before anything is written."""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

import gcb
from gcb.data.episode import Episode
from gcb.data.format import PARTIAL
from gcb.data.formats.episodes import Parts, Source, check_alike, make_episode
from gcb.data.formats.folder import folder_source
from gcb.data.formats.minari_files import METADATA, minari_source
from gcb.data.formats.ogbench import ogbench_source
from gcb.data.output_dir import clear, is_finished, publish
from gcb.data.store import Dataset, open_dataset
from gcb.data.writer import EpisodeWriter
from gcb.errors import GCBError
from gcb.utils.files import directory_lock, explain_os_errors
from gcb.utils.progress import Progress

Format = Literal["auto", "ogbench", "minari", "folder"]


@dataclass(frozen=True)
class ImportOptions:
    """How foreign episodes become ours. What is changed is recorded, and an export changes it back."""

    format: Format = "auto"
    """ogbench (an .npz file), minari (a dataset's folder), folder (one .npz for each episode); auto looks."""
    action_bound: float = 1.0
    """Size of the largest possible action of the source: actions are divided by it, for ours lie in [-1, 1]."""
    rewards: Literal["keep", "drop"] = "keep"
    """Keep the source's rewards, which must be 1 at the goal and 0 elsewhere, or drop them: hindsight gives others."""
    reward_offset: float = 0.0
    """Added to every reward: 1 where the source's are 0 at the goal and -1 elsewhere."""
    observation: str | None = None
    """Of Minari observations that are a Dict, the entry that the agent sees; by default "observation"."""
    env: str | None = None
    """The gymnasium id of the environment that the data come from, for `gcb eval`."""
    adapter: str | None = None
    """How that environment is played, by a name of gcb.envs.adapters.ADAPTERS; "goal" if it is left out."""

    def __post_init__(self) -> None:
        if not 0 < self.action_bound < float("inf"):
            raise GCBError(f"action_bound is {self.action_bound}; it must be above 0")
        if not np.isfinite(self.reward_offset):
            raise GCBError(f"reward_offset is {self.reward_offset}; it must be a number")
        if self.adapter is not None:
            from gcb.envs.adapters import get_adapter

            get_adapter(self.adapter)
            if self.env is None:
                raise GCBError(f"adapter is {self.adapter!r}, but no env is given that it would adapt")

    def record(self) -> dict[str, Any]:
        """What of it the manifest keeps: that which is not as usual."""
        kept = {"action_bound": (self.action_bound, 1.0), "reward_offset": (self.reward_offset, 0.0)}
        found: dict[str, Any] = {name: value for name, (value, usual) in kept.items() if value != usual}
        found |= {"rewards": "drop"} if self.rewards == "drop" else {}
        return found | ({"env": self.env, "adapter": self.adapter or "goal"} if self.env else {})


@dataclass(frozen=True)
class Imported:
    """What an import made."""

    dataset: Dataset
    left_out: tuple[str, ...]
    """Arrays of the source that a dataset has no place for."""
    was_there: bool
    """Whether the same import had been finished before."""


def import_data(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    options: ImportOptions | None = None,
    *,
    quiet: bool = False,
) -> Imported:
    """Import a file or folder of another format into the folder `out`, or go on with it, or find it finished."""
    options = options or ImportOptions()
    out, path = Path(out), Path(source)
    found = open_source(path, options)
    config = {**found.config, **options.record()}
    versions = {"python": platform.python_version(), "gcb": gcb.__version__, "numpy": np.__version__}
    identity = {"config": config, "versions": versions}
    with explain_os_errors(out, "Nothing was touched"):
        if is_finished(out, identity) and not (out / PARTIAL).exists():
            return Imported(open_dataset(out), found.left_out, was_there=True)
    _check_all(found, options, quiet)
    with explain_os_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    with directory_lock(out):
        if is_finished(out, identity) or publish(out):
            clear(out)
        else:
            _write(found, options, out, identity, quiet)
    return Imported(open_dataset(out), found.left_out, was_there=False)


def open_source(path: Path, options: ImportOptions) -> Source:
    """The episodes at a path, in the format that was named or that it looks like."""
    if not path.exists():
        raise GCBError(
            f"{path} is not there; accepted: an .npz file, a Minari dataset's folder, a folder of .npz files"
        )
    kind = options.format
    if kind == "auto":
        minari = (path / METADATA).is_file() or (path / "data" / METADATA).is_file()
        kind = "ogbench" if path.is_file() else "minari" if minari else "folder"
    if options.observation is not None and kind != "minari":
        raise GCBError(f"observation is {options.observation!r}; only Minari's observations have named entries")
    if kind == "minari":
        return minari_source(path, options.observation)
    return ogbench_source(path) if kind == "ogbench" else folder_source(path)


def _check_all(source: Source, options: ImportOptions, quiet: bool) -> None:
    """Read every episode once, so that whatever is wrong with any of them is known before a folder is made."""
    first: Episode | None = None
    with Progress("checking", source.count, "episodes", quiet=quiet) as bar:
        for name, parts in source.parts():
            episode = _adjusted(name, parts, options)
            first = first or episode
            check_alike(first, episode, name)
            bar.advance()
    if first is None:
        raise GCBError("the source has no episodes; a dataset needs at least one")


def _write(source: Source, options: ImportOptions, out: Path, identity: Mapping[str, Any], quiet: bool) -> None:
    with EpisodeWriter(out, identity) as writer:
        done = writer.journal.episodes
        with Progress("importing", source.count, "episodes", start=done, quiet=quiet) as bar:
            for name, parts in islice(source.parts(), done, None):
                writer.append(_adjusted(name, parts, options))
                bar.advance()
        writer.finish(identity)


def _adjusted(name: str, parts: Parts, options: ImportOptions) -> Episode:
    """An episode with actions and rewards as ours are."""
    changed = dict(parts)
    if options.action_bound != 1 and "actions" in changed:
        changed["actions"] = np.asarray(changed["actions"]) / options.action_bound
    if options.rewards == "drop":
        changed.pop("rewards", None)
    elif options.reward_offset and "rewards" in changed:
        changed["rewards"] = np.asarray(changed["rewards"]) + options.reward_offset
    return make_episode(changed, name)
