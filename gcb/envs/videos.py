"""Background clips from a directory of videos."""

import contextlib
import hashlib
import math
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path

import av
import numpy as np
from av.container import InputContainer
from av.error import FFmpegError
from PIL import Image

from gcb.envs.backgrounds import Clip, ClipBank
from gcb.errors import GCBError

EXTENSIONS = (".mp4", ".avi", ".webm", ".mkv", ".mov", ".m4v", ".mpg", ".mpeg", ".ogv", ".flv", ".wmv")
EVAL_DIRECTORIES = ("eval", "val", "validation", "test")
EVAL_FRACTION = 0.25
STEPS_PER_SECOND = 24  # an action lasts 10/240 s, so a clip of any frame rate plays at its natural speed
SEGMENT = 128  # steps decoded at once: an episode of 75, with a choice of where to start
EPISODE = 76
LARGEST_STORED = 256  # larger frames are upscaled from this size, so that a segment fits into the cache
CACHE_BYTES = 64 << 20


class ByteCache:
    """An LRU cache limited by the size of its values in bytes."""

    def __init__(self, limit: int):
        self._limit, self._size = limit, 0
        self._entries: OrderedDict[tuple, np.ndarray] = OrderedDict()

    def get(self, key: tuple, make: Callable[[], np.ndarray]) -> np.ndarray:
        """Return the array under `key`, calling `make` if it is not in the cache."""
        if key not in self._entries:
            self._entries[key] = make()
            self._size += self._entries[key].nbytes
            while self._size > self._limit and len(self._entries) > 1:
                self._size -= self._entries.popitem(last=False)[1].nbytes
        self._entries.move_to_end(key)
        return self._entries[key]


class VideoBank(ClipBank):
    """The videos of one split of a directory, decoded in segments when first needed."""

    def __init__(self, directory: Path, split: str):
        if not directory.is_dir():
            raise GCBError(f"The directory of video clips {str(directory)!r} does not exist (or is not a directory).")
        self._directory = directory
        self._cache = ByteCache(CACHE_BYTES)
        self._steps: dict[str, int] = {}
        self._broken: dict[str, str] = {}
        self._names = self._split(split)
        self._members = frozenset(self._names)

    def sample(self, rng: np.random.Generator) -> Clip:
        # Files are checked when first sampled: checking all of them in advance would take minutes for Kinetics. Whether
        # a file is readable does not change, so the clips depend only on the generator, not on earlier samples.
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
            raise GCBError(f"The clip {clip.name!r} is not a readable clip of {str(self._directory)!r} in this split.")
        steps = self._steps[clip.name]
        step = reflect(int(clip.start) + t, steps)
        segment = min(step // SEGMENT, max(1, steps // SEGMENT) - 1)
        side = min(size, LARGEST_STORED)
        frames = self._segment(clip.name, segment, side)
        image = frames[reflect(step - segment * SEGMENT, len(frames))]
        if clip.mirrored:
            image = image[:, ::-1]
        if size > side:
            image = np.asarray(
                Image.fromarray(np.ascontiguousarray(image)).resize((size, size), Image.Resampling.BILINEAR)
            )
        return image

    def _segment(self, name: str, segment: int, side: int) -> np.ndarray:
        """Return the frames of one segment; the last segment of a file extends to its end."""
        steps = self._steps[name]
        last = segment == max(1, steps // SEGMENT) - 1
        length = steps - segment * SEGMENT if last else SEGMENT

        def decode() -> np.ndarray:
            frames = decode_segment(self._directory / name, segment * SEGMENT, length, side)
            if not len(frames) and segment > 0:  # a truncated file plays its beginning instead
                frames = self._segment(name, 0, side)
            elif not len(frames):
                raise GCBError(f"The video clip {str(self._directory / name)!r} can no longer be read.")
            return frames

        return self._cache.get((name, segment, side), decode)

    def _readable(self, name: str) -> bool:
        """Return whether the file can be decoded. The first time it cannot, warn and say why."""
        if name not in self._steps and name not in self._broken:
            try:
                self._steps[name] = count_steps(self._directory / name)
            except (FFmpegError, GCBError) as error:
                self._broken[name] = str(error)
                warnings.warn(f"The video clip {str(self._directory / name)!r} is skipped: {error}", stacklevel=4)
        return name in self._steps

    def _split(self, split: str) -> list[str]:
        """Return the names of this split's files, at least one of which is readable."""
        names = find_videos(self._directory)
        splits = _split_by_directory(names) or self._split_by_name(names)
        if not any(map(self._readable, splits[split])):
            raise GCBError(self._why_empty(split, names))
        return splits[split]

    def _split_by_name(self, names: list[str]) -> dict[str, list[str]]:
        """Split by a hash of the name; a split without a readable clip takes the nearest one of the other.

        A single readable clip goes to the training split.
        """
        ranked = sorted(names, key=_rank)
        splits = {
            "eval": [name for name in ranked if _rank(name) < EVAL_FRACTION],
            "train": [name for name in ranked if _rank(name) >= EVAL_FRACTION],
        }
        for empty, other, nearest, least in (("train", "eval", -1, 1), ("eval", "train", 0, 2)):
            if not any(map(self._readable, splits[empty])):
                spare = [name for name in splits[other] if self._readable(name)]
                if len(spare) >= least:
                    splits[other].remove(spare[nearest])
                    splits[empty].append(spare[nearest])
        return {split: sorted(chosen) for split, chosen in splits.items()}

    def _why_empty(self, split: str, names: list[str]) -> str:
        directory = repr(str(self._directory))
        if self._steps:
            return (
                f"The {split} split of {directory} has no readable video clip, but the other one has: "
                "add clips, or sort them into the subdirectories train and eval."
            )
        message = f"No readable video clip in {directory}; tried {', '.join(EXTENSIONS)}"
        if self._broken:
            name = next(name for name in names if name in self._broken)
            message += f" ({len(names)} files; the first, {name!r}, cannot be read: {self._broken[name]})"
        return message + "."


def find_videos(directory: Path) -> list[str]:
    """Return all videos below a directory, as sorted paths relative to it."""
    paths = [path for path in directory.rglob("*") if path.suffix.lower() in EXTENSIONS and path.is_file()]
    return sorted(path.relative_to(directory).as_posix() for path in paths if not path.name.startswith("."))


def _split_by_directory(names: list[str]) -> dict[str, list[str]] | None:
    top = {name: name.split("/")[0].lower() for name in names if "/" in name}
    train = [name for name in top if top[name] == "train"]
    held_out = [name for name in top if top[name] in EVAL_DIRECTORIES]
    return {"train": train, "eval": held_out} if train and held_out else None


def _rank(name: str) -> float:
    """Return a number in [0, 1) that depends only on the file's own name, not on its directory or the machine."""
    digest = hashlib.sha256(name.rsplit("/", 1)[-1].encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def reflect(step: int, length: int) -> int:
    """Return the index of the frame after `step` steps, playing `length` frames forwards and backwards in turn."""
    if length == 1:
        return 0
    step %= 2 * (length - 1)
    return min(step, 2 * (length - 1) - step)


def count_steps(path: Path) -> int:
    """Return the length of a video in steps, at least 1. Raise an error if it has no frames."""
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
    # If the file does not state its length, only the first segment is used.
    return max(1, int(seconds * STEPS_PER_SECOND)) if seconds > 0 else SEGMENT


def decode_segment(path: Path, first: int, length: int, side: int) -> np.ndarray:
    """Return up to `length` square frames from step `first` on, one per environment step: (n, side, side, 3).

    There are fewer, or none, if the file ends or is damaged before that.
    """
    squares: list[np.ndarray] = []
    shown = None
    with contextlib.suppress(FFmpegError), av.open(str(path)) as container:
        for step, frame in _decode_frames(container, first):
            # Each frame is shown until the next one; a quarter of a step allows for rounded timestamps (.mkv: 1 ms).
            until = min(math.ceil(step - 0.25) - first, length)
            if shown is not None and until > len(squares):
                squares += [_square(shown, side)] * (until - len(squares))
            shown = frame
            if len(squares) == length:
                break
    # A truncated file may yield only frames from before `first`, which are not part of this segment.
    if shown is not None and len(squares) < length and (squares or not first):
        squares.append(_square(shown, side))
    frames = np.array(squares, np.uint8)
    frames.setflags(write=False)
    return frames


def _decode_frames(container: InputContainer, first: int) -> Iterator[tuple[float, av.VideoFrame]]:
    """Yield each frame with its time in steps, starting at the key frame before step `first`."""
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
    """Return the central square of a frame, resized to `side`."""
    scale = side / min(frame.width, frame.height)
    width, height = round(frame.width * scale), round(frame.height * scale)
    pixels = frame.reformat(width=width, height=height, format="rgb24", interpolation="AREA").to_ndarray()
    top, left = (height - side) // 2, (width - side) // 2
    return pixels[top : top + side, left : left + side]
