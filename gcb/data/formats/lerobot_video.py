"""Frames of LeRobot's videos, decoded in the order in which episodes follow each other."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import av
import numpy as np
from av.error import FFmpegError
from av.video.frame import VideoFrame

from gcb.data.formats.lerobot_meta import Span
from gcb.errors import GCBError


class VideoReader:
    """Reads the episodes of one video feature; one that starts where the last one ended is not searched for."""

    def __init__(self, fps: float) -> None:
        self._fps, self._path = fps, None
        self._frames: Iterator[VideoFrame] = iter(())
        self._pending: VideoFrame | None = None

    def read(self, span: Span, count: int, size: int | None) -> Iterator[tuple[tuple[int, int], np.ndarray]]:
        """Yield the size and the pixels of `count` frames, one every 1/fps seconds; `size` resizes them to squares."""
        self._open(span)
        tolerance = 0.5 / self._fps
        for number in range(count):
            wanted = span.start + number / self._fps
            frame = self._next(span.path)
            while frame is not None and (frame.time or 0.0) < wanted - tolerance:
                frame = self._next(span.path)
            if frame is None or (frame.time or 0.0) > wanted + tolerance:
                raise GCBError(f"{span.path} has no frame at {wanted:.3f} s: it is cut off, or of another dataset")
            yield (frame.height, frame.width), _to_array(frame, size)

    def _open(self, span: Span) -> None:
        """Start from the beginning, unless the next frame of this file is in time for the span."""
        following = self._next(span.path) if span.path == self._path else None
        if following is not None and (following.time or 0.0) <= span.start + 0.5 / self._fps:
            self._pending = following
            return
        self._path, self._pending, self._frames = span.path, None, _decode(span.path)

    def _next(self, path: Path) -> VideoFrame | None:
        if self._pending is not None:
            frame, self._pending = self._pending, None
            return frame
        try:
            return next(self._frames, None)
        except (FFmpegError, OSError, ValueError) as error:
            raise GCBError(f"{path} is damaged or not a video: {error}") from error


def _decode(path: Path) -> Iterator[VideoFrame]:
    # The format is given, so that no playlist in disguise can name other files or addresses.
    with av.open(str(path), format="mp4") as container:
        if not container.streams.video:
            raise ValueError("it has no video stream")
        with suppress(AttributeError):
            container.streams.video[0].thread_type = "AUTO"
        yield from container.decode(video=0)


def _to_array(frame: VideoFrame, size: int | None) -> np.ndarray:
    if size is None:
        return frame.to_ndarray(format="rgb24")
    return frame.reformat(size, size, "rgb24", interpolation="AREA").to_ndarray()
