"""Images and captions for the page."""

import base64
import io
from collections.abc import Sequence
from typing import Literal

import numpy as np
from PIL import Image

from gcb.analysis.embed import Tasks
from gcb.analysis.geometry import openings
from gcb.envs.layout import TRAVEL
from gcb.errors import GCBError

ENCODER_OPTIONS = {"jpeg": {"quality": 90, "subsampling": 0}, "png": {"compress_level": 3}}

ImageFormat = Literal["jpeg", "png"]


def encode(image: np.ndarray, image_format: ImageFormat) -> bytes:
    """Encode an RGB image: as JPEG in about a millisecond, or losslessly as PNG, which suits small images only."""
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, image_format, **ENCODER_OPTIONS[image_format])
    return buffer.getvalue()


def data_url(image: np.ndarray, image_format: ImageFormat = "jpeg") -> str:
    """Return a data URL that contains the encoded image."""
    return f"data:image/{image_format};base64,{base64.b64encode(encode(image, image_format)).decode()}"


def from_data_url(url: str, size: int | None = None) -> np.ndarray:
    """Return the image of a data URL, resized to a square of `size` pixels if given; small images are not smoothed."""
    image = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGB")
    if size is not None and image.width != size:
        method = Image.Resampling.NEAREST if image.width < size else Image.Resampling.LANCZOS
        image = image.resize((size, size), method)
    return np.asarray(image)


def decode_picture(text: str, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return the pixels of a visitor's picture, a PNG in base64; its size must be that of the agent's observations."""
    height, width = shape[:2]
    accepted = f"a PNG of {width}×{height} pixels"
    try:
        with Image.open(io.BytesIO(base64.b64decode(text, validate=True)), formats=["PNG"]) as image:
            if image.size != (width, height):  # known before the pixels are decoded
                raise GCBError(f"{name} is a picture of {image.width}×{image.height} pixels; accepted: {accepted}.")
            return np.asarray(image.convert("RGB"))
    except GCBError:
        raise
    except Exception as error:  # a crafted file may raise anything
        raise GCBError(f"{name} is not a picture that can be read; accepted: {accepted}.") from error


def open_fraction(opening: float) -> float:
    """Convert a drawer's opening from metres to a fraction of its travel."""
    return float(np.clip(opening / TRAVEL, 0.0, 1.0))


def task_label(task: str, before: Sequence[float], after: Sequence[float]) -> str:
    """Describe a task by the openings (in metres) of the drawers, upper first, before and after it."""
    if task == "button" and len(after) > 1:
        return f"press the button: lower drawer {'opens' if after[1] > TRAVEL / 2 else 'closes'}"
    start, end = open_fraction(before[0]), open_fraction(after[0])
    return f"{'open' if end > start else 'close'} the drawer: {100 * start:.0f} to {100 * end:.0f} %"


def task_labels(tasks: Tasks, pose: np.ndarray | None) -> list[str]:
    """Describe each task of a dataset; where its hidden states are not those of gcb's environments, by name only."""
    if pose is None or tasks.hidden_state is None or tasks.hidden_goal is None:
        return [str(name) for name in tasks.task]
    before, after = openings(tasks.hidden_state, pose), openings(tasks.hidden_goal, pose)
    changes = zip(before.tolist(), after.tolist(), strict=True)
    return [task_label(str(name), *change) for name, change in zip(tasks.task, changes, strict=True)]
