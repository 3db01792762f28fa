"""A contact sheet: episodes of a dataset as rows of small pictures, to see at a glance what it holds."""

import io
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from gcb.data.store import Dataset
from gcb.errors import GCBError
from gcb.utils.files import explain_os_errors, write_atomically

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
    picture_size: int = 128,
) -> Path:
    """Write a PNG with a row for each of some episodes: its first frame, frames between, its last, and its goal.

    The episodes are drawn by `seed`; the pictures are enlarged without smoothing, to at least `picture_size` pixels.
    """
    _check(dataset, episodes, columns)
    chosen = np.random.default_rng(seed).permutation(dataset.episodes)[:episodes]
    height, width = dataset.frames.shape[1:3]
    scale = max(1, -(-picture_size // max(height, width)))
    cell = (width * scale + GAP, height * scale + LABEL + GAP)
    sheet = Image.new("RGB", (columns * cell[0] + GAP, len(chosen) * (cell[1] + LABEL) + GAP), PAPER)
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default()
    for row, episode in enumerate(sorted(chosen)):
        top = GAP + row * (cell[1] + LABEL)
        pen.text((GAP, top), _title(dataset, episode), INK, font)
        for column, (label, frame) in enumerate(_pictures(dataset, episode, columns)):
            left, upper = GAP + column * cell[0], top + LABEL
            picture = Image.fromarray(as_rgb(dataset.frames[frame]))
            sheet.paste(picture.resize((width * scale, height * scale), Image.Resampling.NEAREST), (left, upper))
            pen.text((left, upper + height * scale), label, GOAL_INK if label == "goal" else INK, font)
    buffer = io.BytesIO()
    sheet.save(buffer, "PNG", optimize=True)
    with explain_os_errors(path):
        write_atomically(path, buffer.getvalue())
    return Path(path)


def _pictures(dataset: Dataset, episode: int, columns: int) -> Iterator[tuple[str, int]]:
    """Label and frame of each picture in an episode's row."""
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
    """An image of any number of channels as one to look at: of stacked frames the last, grey without colours."""
    return frame[..., -3:] if frame.shape[-1] % 3 == 0 else np.repeat(frame[..., -1:], 3, axis=-1)


def _check(dataset: Dataset, episodes: int, columns: int) -> None:
    frames = dataset.frames
    if frames.ndim != 4 or frames.dtype != np.uint8:
        raise GCBError(
            f"the frames have shape {frames.shape[1:]} and dtype {frames.dtype}; "
            "a contact sheet needs pictures: height × width × channels of uint8"
        )
    if episodes < 1 or columns < 3:
        raise GCBError(f"a contact sheet of {episodes} episodes and {columns} columns: at least 1 and 3 are needed")
