"""The plain layout: a folder with one .npz file for each episode, in the order of their names.

EPISODES/0000.npz   observations, actions and, if they are known, rewards, terminated, goal, states, goal_state,
EPISODES/0001.npz   task, success: see `gcb.data.formats.episodes`
…
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from gcb.data.formats.episodes import Parts, Source
from gcb.data.formats.npz import Archive
from gcb.errors import GCBError
from gcb.utils.files import sha256


def folder_source(path: Path) -> Source:
    """The episodes of a folder of .npz files."""
    files = sorted(path.glob("*.npz"))
    if not files:
        raise GCBError(f"{path} holds no .npz file; accepted: one for each episode, such as 0000.npz")
    hashes = {file.name: sha256(file) for file in files}
    digest = hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()

    def parts() -> Iterator[tuple[str, Parts]]:
        for file in files:
            archive = Archive(file)
            yield str(file), {name: archive.array(name) for name in archive.entries}

    return Source({"source": {"format": "folder", "name": path.name, "sha256": digest}}, len(files), parts)
