"""A source of episodes: what each format's reader returns and the importer consumes."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcb.data.episode import EpisodeArrays
from gcb.utils.files import sha256


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


def sha256_of_files(root: Path, files: Iterable[Path]) -> str:
    """Return one hash for the names (relative to `root`) and contents of several files."""
    hashes = {str(file.relative_to(root)): sha256(file) for file in files}
    return hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()
