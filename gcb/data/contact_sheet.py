"""Contact sheet of a dataset: one row of small images per episode."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from gcb.data.store import Dataset
from gcb.errors import GCBError
from gcb.utils.dataclass_io import check_interval
from gcb.utils.media import write_png

GAP = 4
LABEL = 14
PAPER, INK, GOAL_INK = (250, 250, 250), (40, 40, 40), (0, 110, 60)


def contact_sheet(
    dataset: Dataset,
    path: str | os.PathLike[str],
    *,
    episodes: int = 8,
    columns: int = 6,
    seed: int = 0,
    image_size: int = 128,
) -> Path:
    """Write a PNG with one row per episode: frames from the first to the last, then the goal.

    The episodes are sampled with `seed`. Images are enlarged to at least `image_size` pixels without smoothing.
    """
    frames = dataset.frames
    if frames.ndim != 4 or frames.dtype != np.uint8:
        raise GCBError(
            f"the frames have shape {frames.shape[1:]} and dtype {frames.dtype}; "
            "a contact sheet needs uint8 images (height, width, channels)"
        )
    check_interval("episodes", episodes, "[1, inf)")
    check_interval("columns", columns, "[3, inf)")
    chosen = np.random.default_rng(seed).permutation(dataset.episodes)[:episodes]
    height, width = frames.shape[1:3]
    scale = max(1, -(-image_size // max(height, width)))
    cell = (width * scale + GAP, height * scale + LABEL + GAP)
    sheet = Image.new("RGB", (columns * cell[0] + GAP, len(chosen) * (cell[1] + LABEL) + GAP), PAPER)
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default()
    for row, episode in enumerate(sorted(chosen)):
        top = GAP + row * (cell[1] + LABEL)
        pen.text((GAP, top), _title(dataset, episode), INK, font)
        for column, (label, frame) in enumerate(_episode_images(dataset, episode, columns)):
            left, upper = GAP + column * cell[0], top + LABEL
            image = Image.fromarray(as_rgb(frames[frame]))
            sheet.paste(image.resize((width * scale, height * scale), Image.Resampling.NEAREST), (left, upper))
            pen.text((left, upper + height * scale), label, GOAL_INK if label == "goal" else INK, font)
    write_png(Path(path), np.asarray(sheet))
    return Path(path)


def _episode_images(dataset: Dataset, episode: int, columns: int) -> Iterator[tuple[str, int]]:
    """Yield the label and the frame index of each image in an episode's row."""
    first, length = int(dataset.episode_first_frame[episode]), int(dataset.episode_length[episode])
    goal = int(dataset.episode_goal_frame[episode])
    for step in np.unique(np.linspace(0, length, columns - 1).round().astype(int)):
        yield f"step {step}", first + int(step)
    if goal >= 0:
        yield "goal", goal


def _title(dataset: Dataset, episode: int) -> str:
    parts = [f"episode {episode}"]
    if dataset.episode_task is not None:
        parts.append(dataset.task_names[dataset.episode_task[episode]])
    if dataset.episode_success is not None:
        parts.append("success" if dataset.episode_success[episode] else "no success")
    return ", ".join(parts)


def as_rgb(frame: np.ndarray) -> np.ndarray:
    """Return an image with any number of channels as RGB: the last of stacked frames, or grey for other channels."""
    return frame[..., -3:] if frame.shape[-1] % 3 == 0 else np.repeat(frame[..., -1:], 3, axis=-1)
