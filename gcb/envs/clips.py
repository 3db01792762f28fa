"""What a background clip is, and what a bank of them offers."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

STEPS_PER_SECOND = 24  # an action lasts 10/240 s, so that a clip of any frame rate plays at its natural speed
CACHE_BYTES = 64 << 20
Value = TypeVar("Value")


@dataclass(frozen=True)
class Clip:
    """One playing clip. Plain numbers only: `Clip(**json.loads(json.dumps(asdict(clip))))` is the same clip."""

    name: str
    """The still, or the video's path below the bank's folder."""
    start: float
    """Steps into the clip (or along the camera's path) at t = 0."""
    mirrored: bool = False
    zoom: float = 1.0
    """Side of the visible square as a share of the short side of the picture."""
    pan_x: float = 0.0
    """Top speed of the camera, in visible squares per step."""
    pan_y: float = 0.0
    roll: float = 0.0
    """How far the camera tilts to either side, in radians."""
    hue: float = 0.0
    """The colour given to a grey still, in [0, 1)."""


class ClipBank(ABC):
    """The clips of one split."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> Clip:
        """A clip for one episode."""

    @abstractmethod
    def frame(self, clip: Clip, t: int, size: int) -> np.ndarray:
        """The clip's picture after `t` steps: uint8, (size, size, 3). Defined for every t ≥ 0."""


class ByteCache:
    """What was used last, up to a number of bytes."""

    def __init__(self, limit: int):
        self._limit, self._held = limit, 0
        self._entries: OrderedDict[tuple, tuple[object, int]] = OrderedDict()

    def get(self, key: tuple, make: Callable[[], tuple[Value, int]]) -> Value:
        """The value under `key`; `make` returns it with its size in bytes when it is not here."""
        if key not in self._entries:
            self._entries[key] = make()
            self._held += self._entries[key][1]
            while self._held > self._limit and len(self._entries) > 1:
                self._held -= self._entries.popitem(last=False)[1][1]
        self._entries.move_to_end(key)
        return self._entries[key][0]  # pyright: ignore[reportReturnType]
