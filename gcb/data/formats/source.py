"""A source of episodes: what each format's reader returns and the importer consumes."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcb.data.episode import EpisodeArrays
from gcb.data.format import check_origin
from gcb.utils.dataclass_io import check_entries, check_interval
from gcb.utils.files import sha256

EXTRAS_TYPES: dict[str, Any] = {
    "config": dict[str, Any],
    "task_names": tuple[str, ...],
    "scene_names": tuple[str, ...],
    "has_tasks": bool,
    "rewards": bool,
    "action_bound": float,
}
"""Types of the entries that gcb adds to files in other formats, which have no place for them."""


@dataclass(frozen=True)
class EpisodeSource:
    """Episodes in another format."""

    config: Mapping[str, Any]
    """Where they come from, as JSON values; recorded in the dataset's manifest."""
    count: int
    episodes: Callable[[], Iterator[tuple[str, EpisodeArrays]]]
    """Iterate over the name and the arrays of each episode; every call starts from the first."""
    unused_arrays: tuple[str, ...] = ()
    """Arrays of the source that a dataset has no field for."""
    action_bound: float = 1.0
    """Largest possible action, if the source says so."""
    check_first: bool = True
    """Whether to read everything once before anything is written; not if reading takes long, as from videos."""


def sha256_of_files(root: Path, files: Iterable[Path]) -> str:
    """Return one hash for the names (relative to `root`) and contents of several files."""
    hashes = {str(file.relative_to(root)): sha256(file) for file in files}
    return hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()


def check_extras(extras: Any, name: str) -> None:
    """Raise `GCBError` unless what a file says in gcb's own entries has the right types."""
    check_entries(extras, EXTRAS_TYPES, name)
    check_origin(extras.get("config", {}), f"{name}.config")
    check_interval(f"{name}.action_bound", extras.get("action_bound"), "(0, inf)")
