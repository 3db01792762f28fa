"""The built-in bank: a camera that pans and zooms over natural stills of scikit-image's wheel. No download."""

import colorsys
import functools
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import skimage
from PIL import Image

from gcb.envs.clips import CACHE_BYTES, ByteCache, Clip, ClipBank
from gcb.errors import GCBError


@dataclass(frozen=True)
class Still:
    file: str
    split: str
    licence: str
    """As stated in the docstring of the still's function in `skimage/data/_fetchers.py`."""
    crop: float = 1.0
    """Share of the sides that is used, about the centre."""


# Every still in the wheel of scikit-image that is a natural picture, rich enough to look at, and stated to be CC0 or in
# the public domain. Left out for their licence: motorcycle, moon, page, logo, lfw_subset (none stated), coins and ihc
# ("no known restrictions" only); for their content: horse, text, cell, clock, microaneurysms and the drawn ones.
STILLS = {
    "astronaut": Still("astronaut.png", "train", "public domain (NASA)"),
    "coffee": Still("coffee.png", "train", "CC0 (Rachel Michetti)"),
    "retina": Still("retina.jpg", "train", "CC0 (Mikael Häggström)", crop=0.66),  # the square inside the round picture
    "hubble": Still("hubble_deep_field.jpg", "train", "public domain (NASA)"),
    "grass": Still("grass.png", "train", "CC0 (linolafett)"),
    "brick": Still("brick.png", "train", "CC0 (CC0Textures)"),
    "chelsea": Still("chelsea.png", "eval", "CC0 (Stefan van der Walt)"),
    "rocket": Still("rocket.jpg", "eval", "public domain (SpaceX)"),
    "gravel": Still("gravel.png", "eval", "CC0 (CC0Textures)"),
    "camera": Still("camera.png", "eval", "CC0 (Lav Varshney)"),
}
ZOOM = (0.4, 0.6)
ZOOM_SWING, ZOOM_PERIOD = 0.12, 190.0
PAN = (0.012, 0.025)
MAX_ROLL, ROLL_PERIOD = 0.12, 260.0


class StillBank(ClipBank):
    """A hand-held camera over a still: it sways, zooms and tilts on sines, for ever and without leaving the picture."""

    def __init__(self, split: str):
        self._names = [name for name, still in STILLS.items() if still.split == split]
        self._cache = ByteCache(CACHE_BYTES)

    def sample(self, rng: np.random.Generator) -> Clip:
        return Clip(
            name=self._names[rng.integers(len(self._names))],
            start=float(rng.uniform(0, 10_000)),
            mirrored=bool(rng.integers(2)),
            zoom=float(rng.uniform(*ZOOM)),
            pan_x=float(rng.uniform(*PAN)),
            pan_y=float(rng.uniform(*PAN)),
            roll=float(rng.uniform(0, MAX_ROLL)),
            hue=float(rng.random()),
        )

    def frame(self, clip: Clip, t: int, size: int) -> np.ndarray:
        if clip.name not in self._names:
            raise GCBError(f"The clip {clip.name!r} is not in this bank; it holds: {', '.join(self._names)}.")
        image, extent = self._cache.get((clip.name, size), lambda: _load_still(STILLS[clip.name], size))
        across, down = image.width / extent[0], image.height / extent[1]
        scales = (across, across, across, down, down, down)
        seen = [scale * value for scale, value in zip(scales, _camera(clip, t, extent, size), strict=True)]
        view = image.transform((size, size), Image.Transform.AFFINE, seen, Image.Resampling.BILINEAR)
        pixels = np.asarray(view)
        return _tint(clip.hue).take(pixels, axis=0) if image.mode == "L" else pixels


def _load_still(still: Still, size: int) -> tuple[tuple[Image.Image, tuple[float, float]], int]:
    """The still and its own width and height before it was shrunk.

    Half its short side then fills a frame: no aliasing, and one image serves all zooms.
    """
    with Image.open(Path(skimage.__file__).parent / "data" / still.file) as opened:
        image = opened if opened.mode == "L" else opened.convert("RGB")
        width, height = still.crop * image.width, still.crop * image.height
        left, top = (image.width - width) / 2, (image.height - height) / 2
        scale = min(1.0, 2 * size / min(width, height))
        target = (round(scale * width), round(scale * height))
        small = image.resize(target, Image.Resampling.LANCZOS, box=(left, top, left + width, top + height))
    return (small, (width, height)), small.width * small.height * len(small.getbands())


def _camera(clip: Clip, t: int, extent: tuple[float, float], size: int) -> tuple[float, ...]:
    """The affine map from the pixels of a frame to those of the still in its own size, at step t."""
    time = clip.start + t
    square = clip.zoom * min(extent)
    side = square * (1 + ZOOM_SWING * math.sin(2 * math.pi * time / ZOOM_PERIOD))
    roll = clip.roll * math.sin(2 * math.pi * time / ROLL_PERIOD)
    # The widest tilted square there can be, and a little for the interpolation, decide how far the centre may go.
    reach = square * (1 + ZOOM_SWING) * (math.cos(clip.roll) + math.sin(clip.roll)) / 2 + 0.01 * min(extent)
    centre = []
    for length, speed in zip(extent, (clip.pan_x, clip.pan_y), strict=True):
        room = length / 2 - reach
        centre.append(length / 2 + room * math.sin(speed * square / room * time))
    step = side / size
    right_x, right_y = step * math.cos(roll), step * math.sin(roll)
    down_x, down_y = -right_y, right_x
    if clip.mirrored:
        right_x, right_y = -right_x, -right_y
    left = centre[0] - (right_x + down_x) * size / 2
    top = centre[1] - (right_y + down_y) * size / 2
    return right_x, down_x, left, right_y, down_y, top


@functools.lru_cache(maxsize=64)
def _tint(hue: float) -> np.ndarray:
    """Grey levels to colours: black, through the hue, to white."""
    level = np.linspace(0, 1, 256)[:, None]
    color = np.array(colorsys.hsv_to_rgb(hue, 0.6, 0.65))
    mixed = np.where(level < 0.5, 2 * level * color, color + (2 * level - 1) * (1 - color))
    return np.round(255 * mixed).astype(np.uint8)
