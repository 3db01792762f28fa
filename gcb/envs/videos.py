"""Background clips from a folder of videos."""

import contextlib
import hashlib
import math
import warnings
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
from av.container import InputContainer
from av.error import FFmpegError
from PIL import Image

from gcb.envs.clips import CACHE_BYTES, STEPS_PER_SECOND, ByteCache, Clip, ClipBank
from gcb.errors import GCBError

EXTENSIONS = (".mp4", ".avi", ".webm", ".mkv", ".mov", ".m4v", ".mpg", ".mpeg", ".ogv", ".flv", ".wmv")
EVAL_FOLDERS = ("eval", "val", "validation", "test")
EVAL_SHARE = 0.25
SEGMENT = 128  # steps decoded at once: an episode of 75 and some choice of where to begin
EPISODE = 76
LARGEST_STORED = 256  # larger frames are blown up from this; a segment then stays below the cache's size


class VideoBank(ClipBank):
    """The videos of one split of a folder, decoded in segments when first needed."""

    def __init__(self, folder: Path, split: str):
        if not folder.is_dir():
            raise GCBError(f"The folder of video clips {str(folder)!r} does not exist (or is not a folder).")
        self._folder = folder
        self._cache = ByteCache(CACHE_BYTES)
        self._steps: dict[str, int] = {}
        self._broken: dict[str, str] = {}
        self._names = self._split(split)
        self._members = frozenset(self._names)

    def sample(self, rng: np.random.Generator) -> Clip:
        # Whether a file is readable never changes, so that drawing again keeps the generator's course the same
        # whatever was drawn before; looking at all files beforehand would take minutes for the Kinetics set.
        while True:
            name = self._names[rng.integers(len(self._names))]
            if self._readable(name):
                break
        steps = self._steps[name]
        segment = int(rng.integers(max(1, steps // SEGMENT)))
        room = min(SEGMENT, steps) - EPISODE
        start = segment * SEGMENT + int(rng.integers(max(1, room + 1)))
        return Clip(name=name, start=start, mirrored=bool(rng.integers(2)))

    def frame(self, clip: Clip, t: int, size: int) -> np.ndarray:
        if clip.name not in self._members or not self._readable(clip.name):
            raise GCBError(
                f"The clip {clip.name!r} is not among the readable ones of {str(self._folder)!r} in this split."
            )
        steps = self._steps[clip.name]
        place = reflect(int(clip.start) + t, steps)
        segment = min(place // SEGMENT, max(1, steps // SEGMENT) - 1)
        side = min(size, LARGEST_STORED)
        frames = self._segment(clip.name, segment, side)
        image = frames[reflect(place - segment * SEGMENT, len(frames))]
        if clip.mirrored:
            image = image[:, ::-1]
        if size > side:
            image = np.asarray(
                Image.fromarray(np.ascontiguousarray(image)).resize((size, size), Image.Resampling.BILINEAR)
            )
        return image

    def _segment(self, name: str, segment: int, side: int) -> np.ndarray:
        """The frames of one segment; the last one of a file takes in the rest of it."""
        steps = self._steps[name]
        last = segment == max(1, steps // SEGMENT) - 1
        length = steps - segment * SEGMENT if last else SEGMENT

        def decode() -> tuple[np.ndarray, int]:
            frames = decode_segment(self._folder / name, segment * SEGMENT, length, side)
            if not len(frames) and segment > 0:  # a file cut short plays its beginning instead
                frames = self._segment(name, 0, side)
            elif not len(frames):
                raise GCBError(f"The video clip {str(self._folder / name)!r} was readable before and is no longer.")
            return frames, frames.nbytes

        return self._cache.get((name, segment, side), decode)

    def _readable(self, name: str) -> bool:
        """Whether the file yields a picture; the first time it does not, a warning says why."""
        if name not in self._steps and name not in self._broken:
            try:
                self._steps[name] = count_steps(self._folder / name)
            except (FFmpegError, GCBError) as error:
                self._broken[name] = str(error)
                warnings.warn(f"The video clip {str(self._folder / name)!r} is skipped: {error}", stacklevel=4)
        return name in self._steps

    def _split(self, split: str) -> list[str]:
        """The names of this split's files; at least one of them is readable."""
        names = find_videos(self._folder)
        sides = _split_by_folder(names) or self._split_by_name(names)
        if not any(map(self._readable, sides[split])):
            raise GCBError(self._why_empty(split, names))
        return sides[split]

    def _split_by_name(self, names: list[str]) -> dict[str, list[str]]:
        """By a hash of the name; a side left without a readable clip gets the nearest one of the other side.

        Of a single readable clip the training side takes it.
        """
        ranked = sorted(names, key=_rank)
        sides = {
            "eval": [name for name in ranked if _rank(name) < EVAL_SHARE],
            "train": [name for name in ranked if _rank(name) >= EVAL_SHARE],
        }
        for empty, other, nearest, least in (("train", "eval", -1, 1), ("eval", "train", 0, 2)):
            if not any(map(self._readable, sides[empty])):
                spare = [name for name in sides[other] if self._readable(name)]
                if len(spare) >= least:
                    sides[other].remove(spare[nearest])
                    sides[empty].append(spare[nearest])
        return {side: sorted(chosen) for side, chosen in sides.items()}

    def _why_empty(self, split: str, names: list[str]) -> str:
        folder = repr(str(self._folder))
        if self._steps:
            return (
                f"The {split} split of {folder} has no readable video clip, the other one has: "
                "add clips, or sort them into subfolders train and eval."
            )
        message = f"No readable video clip in {folder}; tried {', '.join(EXTENSIONS)}"
        if self._broken:
            name = next(name for name in names if name in self._broken)
            message += f" ({len(names)} files; the first, {name!r}, cannot be read: {self._broken[name]})"
        return message + "."


def find_videos(folder: Path) -> list[str]:
    """All videos below a folder, as sorted paths relative to it."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.suffix.lower() in EXTENSIONS)
    return sorted(path.as_posix() for path in found if not path.name.startswith(".") and (folder / path).is_file())


def _split_by_folder(names: list[str]) -> dict[str, list[str]] | None:
    top = {name: name.split("/")[0].lower() for name in names if "/" in name}
    train = [name for name in top if top[name] == "train"]
    held_out = [name for name in top if top[name] in EVAL_FOLDERS]
    return {"train": train, "eval": held_out} if train and held_out else None


def _rank(name: str) -> float:
    """A number in [0, 1) from the file's own name, the same on every machine and in every folder."""
    digest = hashlib.sha256(name.rsplit("/", 1)[-1].encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def reflect(place: int, length: int) -> int:
    """Where one is after `place` steps to and fro over `length` frames."""
    if length == 1:
        return 0
    place %= 2 * (length - 1)
    return min(place, 2 * (length - 1) - place)


def count_steps(path: Path) -> int:
    """How many steps a video lasts, at least 1; an error when it yields no picture."""
    with av.open(str(path)) as container:
        if not container.streams.video:
            raise GCBError("it has no video stream")
        stream = container.streams.video[0]
        if next(container.decode(stream), None) is None:
            raise GCBError("it has no frames")
        if stream.duration and stream.time_base:
            seconds = float(stream.duration * stream.time_base)
        else:
            seconds = (container.duration or 0) / 1e6
    # Without a stated length only the first segment is used.
    return max(1, int(seconds * STEPS_PER_SECOND)) if seconds > 0 else SEGMENT


def decode_segment(path: Path, first: int, length: int, side: int) -> np.ndarray:
    """Up to `length` square frames from step `first` on, one per step of the worlds: (n, side, side, 3), read-only.

    Fewer, or none, when the file ends or breaks before.
    """
    squares: list[np.ndarray] = []
    shown = None
    with contextlib.suppress(FFmpegError), av.open(str(path)) as container:
        for place, frame in _pictures(container, first):
            # The previous picture stays until this one comes; a quarter of a step forgives rounded times (.mkv: 1 ms).
            until = min(math.ceil(place - 0.25) - first, length)
            if shown is not None and until > len(squares):
                squares += [_square(shown, side)] * (until - len(squares))
            shown = frame
            if len(squares) == length:
                break
    # A file cut short yields a picture from before `first` only: no part of this segment.
    if shown is not None and len(squares) < length and (squares or not first):
        squares.append(_square(shown, side))
    frames = np.array(squares, np.uint8)
    frames.setflags(write=False)
    return frames


def _pictures(container: InputContainer, first: int) -> Iterator[tuple[float, av.VideoFrame]]:
    """Each picture with its time in steps, from the key frame before step `first`."""
    stream = container.streams.video[0]
    stream.codec_context.thread_count = 1  # workers already use every core
    base = float(stream.time_base or 0)
    origin = (stream.start_time or 0) * base
    rate = float(stream.average_rate or STEPS_PER_SECOND)
    if first:
        container.seek(int((first / STEPS_PER_SECOND + origin) * 1e6))
    for index, frame in enumerate(container.decode(stream)):
        seconds = index / rate if frame.time is None else frame.time - origin
        yield seconds * STEPS_PER_SECOND, frame


def _square(frame: av.VideoFrame, side: int) -> np.ndarray:
    """The middle square of a picture, shrunk to `side`."""
    scale = side / min(frame.width, frame.height)
    width, height = round(frame.width * scale), round(frame.height * scale)
    pixels = frame.reformat(width=width, height=height, format="rgb24", interpolation="AREA").to_ndarray()
    top, left = (height - side) // 2, (width - side) // 2
    return pixels[top : top + side, left : left + side]
