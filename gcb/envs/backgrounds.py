"""Video backgrounds: clips from a directory of videos, or the built-in ones, a moving camera over still images.

A `ClipBank` holds the clips of one split. `sample` chooses one and returns a small `Clip`, from which any frame can be
rendered again in any process: nothing is random after `sample`, and no file stays open.

The still images of the evaluation split are four of the photographs in `photographs/`. The training split has the six
others, two from the scikit-learn wheel, and 200 drawn textures (`gcb.envs.textures`), because eight
images are too few to represent all backgrounds. Half of the training clips show a photograph, so that natural images
remain common, and half a texture.
"""

import colorsys
import functools
import importlib.util
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from gcb.envs.textures import draw_texture
from gcb.errors import GCBError

SPLITS = ("train", "eval")


@dataclass(frozen=True)
class Clip:
    """One playing clip. Its fields are plain values: `Clip(**json.loads(json.dumps(asdict(clip))))` equals it."""

    name: str
    """Name of the still image, "texture-" and a number, or path of the video relative to the bank's directory."""
    start: float
    """Steps into the clip (or along the camera's path) at t = 0."""
    mirrored: bool = False
    zoom: float = 1.0
    """Side of the visible square, as a fraction of the image's short side."""
    pan_x: float = 0.0
    """Maximum speed of the camera, in visible squares per step."""
    pan_y: float = 0.0
    roll: float = 0.0
    """Maximum tilt of the camera to either side, in radians."""
    hue: float = 0.0
    """Colour given to a greyscale image, in [0, 1)."""


class ClipBank(ABC):
    """The clips of one split."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> Clip:
        """Return a clip for one episode."""

    @abstractmethod
    def frame(self, clip: Clip, t: int, size: int) -> np.ndarray:
        """Return the clip's frame after `t` ≥ 0 steps, as uint8 (size, size, 3)."""


def open_bank(source: str | Path, split: str) -> ClipBank:
    """Return the clips of `source`, which is "builtin" or a directory that is searched for videos.

    `split` is "train" or "eval"; the two have no clip in common. A directory with the subdirectories `train` and `eval`
    (or `val`, `test`) is split by them. Otherwise a hash of each file's name decides, so that a file keeps its split
    when others are added; only a split that would be empty takes a file from the other.
    """
    from gcb.envs.videos import VideoBank  # which imports this module

    if split not in SPLITS:
        raise GCBError(f"split is {split!r}; accepted: {', '.join(SPLITS)}.")
    return StillBank(split) if source == "builtin" else VideoBank(Path(source), split)


def composite(image: np.ndarray, background: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """Return a new array with `frame` where the mask `background` (H, W) is true, and `image` elsewhere."""
    return np.where(background[..., None], frame, image)


@dataclass(frozen=True)
class Still:
    """A photograph."""

    file: str
    split: str
    licence: str
    """As stated where it was published."""
    crop: float = 1.0
    """Fraction of each side that is used, about the centre."""
    folder: str = "gcb/envs/photographs"
    """Directory of the file: an installed package, and a path in it."""


# The photographs in `photographs/` were published with scikit-image 0.26: all of its natural images with enough detail
# whose docstrings in `skimage/data/_fetchers.py` state that they are CC0 or in the public domain. Excluded for their
# licence: motorcycle, moon, page, logo, lfw_subset (none stated), coins and ihc ("no known restrictions" only); for
# their content: horse, text, cell, clock, microaneurysms and the generated ones.
#
# And the two photographs in the scikit-learn wheel, under https://creativecommons.org/licenses/by/2.0/: anyone who
# publishes images that show them must name the photographer. Its README attributes both to danielbuechele but links
# flower.jpg to the account vultilion. The portrait in the matplotlib wheel is excluded: no licence is stated there.
SKLEARN = "sklearn/datasets/images"
STILLS = {
    "astronaut": Still("astronaut.png", "train", "public domain (NASA)"),
    "coffee": Still("coffee.png", "train", "CC0 (Rachel Michetti)"),
    "retina": Still("retina.jpg", "train", "CC0 (Mikael Häggström)", crop=0.66),  # the square inside the round image
    "hubble": Still("hubble_deep_field.jpg", "train", "public domain (NASA)"),
    "grass": Still("grass.png", "train", "CC0 (linolafett)"),
    "brick": Still("brick.png", "train", "CC0 (CC0Textures)"),
    "china": Still("china.jpg", "train", "CC BY 2.0 (danielbuechele on Flickr)", folder=SKLEARN),
    "flower": Still("flower.jpg", "train", "CC BY 2.0 (vultilion or danielbuechele on Flickr)", folder=SKLEARN),
    "chelsea": Still("chelsea.png", "eval", "CC0 (Stefan van der Walt)"),
    "rocket": Still("rocket.jpg", "eval", "public domain (SpaceX)"),
    "gravel": Still("gravel.png", "eval", "CC0 (CC0Textures)"),
    "camera": Still("camera.png", "eval", "CC0 (Lav Varshney)"),
}
TEXTURES = {f"texture-{number}": number for number in range(200)}
TEXTURE_SHARE = 0.5
TEXTURE_SIDES = (128, 512)
"""Smallest and largest side at which a texture is drawn."""
ZOOM = (0.4, 0.6)
ZOOM_SWING, ZOOM_PERIOD = 0.12, 190.0
PAN = (0.012, 0.025)
MAX_ROLL, ROLL_PERIOD = 0.12, 260.0


class StillBank(ClipBank):
    """The built-in clips: a camera that pans, zooms and tilts sinusoidally over a still image, without leaving it."""

    def __init__(self, split: str):
        self._stills = [name for name, still in STILLS.items() if still.split == split]
        self._textures = list(TEXTURES) if split == "train" else []
        self._names = {*self._stills, *self._textures}

    def sample(self, rng: np.random.Generator) -> Clip:
        return Clip(
            name=self._sample_name(rng),
            start=float(rng.uniform(0, 10_000)),
            mirrored=bool(rng.integers(2)),
            zoom=float(rng.uniform(*ZOOM)),
            pan_x=float(rng.uniform(*PAN)),
            pan_y=float(rng.uniform(*PAN)),
            roll=float(rng.uniform(0, MAX_ROLL)),
            hue=float(rng.random()),
        )

    def _sample_name(self, rng: np.random.Generator) -> str:
        if self._textures and rng.random() < TEXTURE_SHARE:
            return self._textures[rng.integers(len(self._textures))]
        return self._stills[rng.integers(len(self._stills))]

    def frame(self, clip: Clip, t: int, size: int) -> np.ndarray:
        if clip.name not in self._names:
            names = self._stills + [f"{name}, …" for name in self._textures[:1]]
            raise GCBError(f"The clip {clip.name!r} is not in this bank; it has: {', '.join(names)}.")
        image, extent = _load_still(clip.name, size)
        scale_x, scale_y = image.width / extent[0], image.height / extent[1]
        scales = (scale_x, scale_x, scale_x, scale_y, scale_y, scale_y)
        affine = [scale * value for scale, value in zip(scales, _camera(clip, t, extent, size), strict=True)]
        view = image.transform((size, size), Image.Transform.AFFINE, affine, Image.Resampling.BILINEAR)
        pixels = np.asarray(view)
        return _tint(clip.hue).take(pixels, axis=0) if image.mode == "L" else pixels


def _load_still(name: str, size: int) -> tuple[Image.Image, tuple[float, float]]:
    """Return the shrunk image, and its width and height before shrinking.

    Half of its short side fills a frame: there is no aliasing, and one image serves all zooms.
    """
    return _load_texture(name, size) if name in TEXTURES else _load_photograph(name, size)


@functools.lru_cache(maxsize=32)
def _load_photograph(name: str, size: int) -> tuple[Image.Image, tuple[float, float]]:
    still = STILLS[name]
    with Image.open(_folder(still.folder) / still.file) as opened:
        image = opened if opened.mode == "L" else opened.convert("RGB")
        width, height = still.crop * image.width, still.crop * image.height
        left, top = (image.width - width) / 2, (image.height - height) / 2
        scale = min(1.0, 2 * size / min(width, height))
        target = (round(scale * width), round(scale * height))
        small = image.resize(target, Image.Resampling.LANCZOS, box=(left, top, left + width, top + height))
    return small, (width, height)


def _folder(path: str) -> Path:
    """Return a directory of an installed package, without importing the package: scikit-learn takes a second."""
    package, _, inside = path.partition("/")
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise GCBError(f"The built-in video backgrounds need the package {package!r}, which is not installed.")
    return Path(spec.origin).parent / inside


@functools.lru_cache(maxsize=32)  # 1.5 MB for frames of 64 pixels, 25 MB at most
def _load_texture(name: str, size: int) -> tuple[Image.Image, tuple[float, float]]:
    side = min(max(2 * size, TEXTURE_SIDES[0]), TEXTURE_SIDES[1])
    image = Image.fromarray(draw_texture(TEXTURES[name], side))
    if 2 * size < side:
        image = image.resize((2 * size, 2 * size), Image.Resampling.LANCZOS)
    return image, (side, side)


def _camera(clip: Clip, t: int, extent: tuple[float, float], size: int) -> tuple[float, ...]:
    """Return the affine map from the pixels of a frame to those of the full-size image, at step t."""
    time = clip.start + t
    square = clip.zoom * min(extent)
    side = square * (1 + ZOOM_SWING * math.sin(2 * math.pi * time / ZOOM_PERIOD))
    roll = clip.roll * math.sin(2 * math.pi * time / ROLL_PERIOD)
    # The centre may move as far as the widest tilted square allows, with a small margin for the interpolation.
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
    """Return the colour of each grey level: from black through the hue to white."""
    level = np.linspace(0, 1, 256)[:, None]
    color = np.array(colorsys.hsv_to_rgb(hue, 0.6, 0.65))
    mixed = np.where(level < 0.5, 2 * level * color, color + (2 * level - 1) * (1 - color))
    return np.round(255 * mixed).astype(np.uint8)
