"""What an autoencoder has learned, as a picture: frames, the same drawn again from their codes, and samples."""

import io
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from gcb.agent.agent import Agent
from gcb.data import Dataset
from gcb.errors import GCBError
from gcb.methods import METHODS
from gcb.utils.files import explain_os_errors, write_atomically
from gcb.utils.media import tile

COLUMNS = ("first frame", "frame", "drawn again", "sample")


@runtime_checkable
class Generative(Protocol):
    """A method that can draw pictures. Images are uint8, channels last; `context` are first frames of episodes."""

    def reconstruct(self, images: Tensor, context: Tensor) -> Tensor:
        """The images, drawn from their codes."""
        ...

    def sample(self, context: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """One picture for each context, from a code drawn at random."""
        ...


def reconstruction_sheet(
    agent: Agent, dataset: Dataset, path: Path, *, rows: int = 8, seed: int = 0, scale: int = 2
) -> None:
    """Write a PNG with a row for each of some frames of a dataset: its episode's first frame, it, it again, a sample.

    Frames and samples are drawn by `seed`.
    """
    method = agent.method
    if not isinstance(method, Generative):
        able = [name for name, known in METHODS.items() if issubclass(known, Generative)]
        raise GCBError(f"{method.name} draws no pictures; those that do are {', '.join(able)}.")
    if rows < 1 or len(agent.shapes.observation) != 3:
        raise GCBError(f"{rows} rows of observations {agent.shapes.observation}; at least one row of images is needed.")
    first, frame = _frames(dataset, rows, np.random.default_rng(seed))
    if first.shape[1:] != agent.shapes.observation:
        raise GCBError(f"the dataset's frames are {first.shape[1:]}, the agent's {agent.shapes.observation}.")
    context, images = (torch.from_numpy(frames).to(agent.device) for frames in (first, frame))
    again, sample = method.reconstruct(images, context), method.sample(context, torch.Generator().manual_seed(seed))
    columns = (first, frame, again.cpu().numpy(), sample.cpu().numpy())
    cells = [picture for row in zip(*columns, strict=True) for picture in row]
    buffer = io.BytesIO()
    Image.fromarray(tile(cells, len(COLUMNS), scale, labels=COLUMNS * rows)).save(buffer, "PNG", optimize=True)
    with explain_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, buffer.getvalue())


def _frames(dataset: Dataset, rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """First frames of some episodes, and a later frame of each."""
    episodes = rng.integers(dataset.episodes, size=rows)
    first = np.asarray(dataset.episode_first_frame)[episodes]
    later = first + rng.integers(1, np.asarray(dataset.episode_length)[episodes] + 1)
    return dataset.frames[first], dataset.frames[later]
