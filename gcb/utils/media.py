"""Images, videos that play in browsers, and grids of frames."""

import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from gcb.errors import GCBError
from gcb.utils.files import output_file, write_output

LABEL_HEIGHT = 14


def write_png(path: str | Path, image: np.ndarray) -> None:
    """Write a uint8 (H, W, 3) image atomically, creating the directory if needed."""
    path, buffer = Path(path), io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG", optimize=True)
    write_output(path, buffer.getvalue())


def write_video(path: str | Path, frames: Iterable[np.ndarray], fps: float) -> None:
    """Write uint8 (H, W, 3) frames to an .mp4 (H.264) or .gif file, atomically."""
    path = Path(path)
    writers = {".mp4": _write_mp4, ".gif": _write_gif}
    if path.suffix.lower() not in writers:
        raise GCBError(f"Cannot write a video to {str(path)!r}; accepted endings: {', '.join(writers)}.")
    if not fps > 0:
        raise GCBError(f"fps is {fps}; it must be above 0.")
    remaining = _checked(frames)
    first = next(remaining, None)
    if first is None:
        raise GCBError(f"There are no frames to write to {str(path)!r}.")
    with output_file(path) as handle:
        writers[path.suffix.lower()](handle.name, first, remaining, fps)


def _checked(frames: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield the frames as contiguous arrays; raise an error unless all are uint8 RGB of one shape."""
    shape = None
    for index, frame in enumerate(frames):
        frame = np.asarray(frame)
        if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
            raise GCBError(f"Frame {index} is {frame.dtype} {frame.shape}; it must be uint8 (height, width, 3).")
        if shape is not None and frame.shape != shape:
            raise GCBError(f"Frame {index} has shape {frame.shape}, the ones before it {shape}.")
        shape = frame.shape
        yield np.ascontiguousarray(frame)


def _write_mp4(path: str, first: np.ndarray, remaining: Iterator[np.ndarray], fps: float) -> None:
    import av  # here because it takes long to load, and most uses of this module write no video

    height, width = first.shape[:2]
    # yuv420p, the pixel format that every browser decodes, needs an even width and height.
    padding = ((0, height % 2), (0, width % 2), (0, 0))
    with av.open(path, "w", format="mp4", options={"movflags": "faststart"}) as container:
        stream = container.add_stream("libx264", rate=Fraction(fps).limit_denominator(1001), options={"crf": "18"})
        stream.width, stream.height = width + width % 2, height + height % 2
        stream.pix_fmt = "yuv420p"
        for frame in itertools.chain([first], remaining):
            image = av.VideoFrame.from_ndarray(np.pad(frame, padding, mode="edge"), format="rgb24")
            container.mux(stream.encode(image))
        container.mux(stream.encode())


def _write_gif(path: str, first: np.ndarray, remaining: Iterator[np.ndarray], fps: float) -> None:
    others = (Image.fromarray(frame) for frame in remaining)
    Image.fromarray(first).save(
        path, format="GIF", save_all=True, append_images=others, duration=round(1000 / fps), loop=0
    )


def tile(
    frames: Sequence[np.ndarray], columns: int, scale: int = 1, labels: Sequence[str] | None = None, gap: int = 2
) -> np.ndarray:
    """Return a grid of frames of one shape on white, row by row, each enlarged `scale` times without smoothing.

    With `labels`, each frame has a line of text below it.
    """
    if not len(frames) or columns < 1 or scale < 1:
        raise GCBError(
            f"Cannot tile {len(frames)} frames in {columns} columns at scale {scale}: each must be at least 1."
        )
    if labels is not None and len(labels) != len(frames):
        raise GCBError(f"There are {len(labels)} labels for {len(frames)} frames.")
    cells = [
        _cell(frame, scale, None if labels is None else labels[index]) for index, frame in enumerate(_checked(frames))
    ]
    height, width = cells[0].shape[:2]
    rows, columns = -(-len(cells) // columns), min(columns, len(cells))
    grid = np.full((rows * (height + gap) - gap, columns * (width + gap) - gap, 3), 255, np.uint8)
    for index, cell in enumerate(cells):
        top, left = index // columns * (height + gap), index % columns * (width + gap)
        grid[top : top + height, left : left + width] = cell
    return grid


def _cell(frame: np.ndarray, scale: int, label: str | None) -> np.ndarray:
    large = frame.repeat(scale, axis=0).repeat(scale, axis=1)
    if label is None:
        return large
    strip = Image.new("RGB", (large.shape[1], LABEL_HEIGHT), "white")
    ImageDraw.Draw(strip).text((1, 0), label, fill="black", font=ImageFont.load_default(size=LABEL_HEIGHT - 3))
    return np.vstack([large, np.asarray(strip)])
