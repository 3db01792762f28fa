"""Moving pictures behind the scene: clips from a folder of videos, or pans and zooms over bundled natural stills.

A `Bank` holds the clips of one split; `draw` chooses one, and the small `Clip` it returns is all that is needed to draw
any of its frames again, in any process. Nothing random happens after `draw`, and no file stays open.
"""

from pathlib import Path

import numpy as np

from gcb.envs.clips import Clip, ClipBank
from gcb.envs.stills import StillBank
from gcb.envs.videos import VideoBank
from gcb.errors import GCBError

__all__ = ["Clip", "ClipBank", "composite", "open_bank"]

SPLITS = ("train", "eval")


def open_bank(source: str | Path, split: str) -> ClipBank:
    """The clips of `source`, "builtin" or a folder that is searched for videos.

    `split` is "train" or "eval"; the two share no clip. A folder with subfolders `train` and `eval` (or `val`, `test`)
    is split by them. In any other a hash of each file's name decides, so that a file stays where it is when others
    come; only a split that would be empty takes one from the other.
    """
    if split not in SPLITS:
        raise GCBError(f"Unknown split {split!r} of the video clips; accepted: {', '.join(SPLITS)}.")
    return StillBank(split) if source == "builtin" else VideoBank(Path(source), split)


def composite(image: np.ndarray, background: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """`frame` where `background` (H, W) is true, `image` elsewhere; a new array."""
    return np.where(background[..., None], frame, image)
