"""Images from a generative method: frames, their reconstructions, and samples."""

from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from gcb.agent.agent import Agent
from gcb.data import Dataset
from gcb.errors import GCBError
from gcb.methods import METHODS
from gcb.utils.media import tile, write_png

COLUMNS = ("first frame", "frame", "reconstruction", "sample")


@runtime_checkable
class Generative(Protocol):
    """A method that generates images: uint8, channels last. `context` holds the first frames of the episodes."""

    def reconstruct(self, images: Tensor, context: Tensor) -> Tensor:
        """Return the images decoded from their codes."""
        ...

    def sample(self, context: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return an image decoded from a random code for each context."""
        ...


def reconstruction_sheet(
    agent: Agent, dataset: Dataset, path: Path, *, rows: int = 8, seed: int = 0, scale: int = 2
) -> None:
    """Write a PNG with a row per sampled frame: its episode's first frame, the frame, its reconstruction, a sample.

    `seed` selects the frames and the samples.
    """
    method = agent.method
    if not isinstance(method, Generative):
        accepted = [name for name, known in METHODS.items() if issubclass(known, Generative)]
        raise GCBError(f"{method.name} does not generate images; accepted: {', '.join(accepted)}.")
    if rows < 1 or len(agent.shapes.observation) != 3:
        raise GCBError(f"{rows} rows of observations {agent.shapes.observation}; at least one row of images is needed.")
    first, frame = _sample_frames(dataset, rows, np.random.default_rng(seed))
    if first.shape[1:] != agent.shapes.observation:
        raise GCBError(f"the dataset's frames are {first.shape[1:]}, the agent's {agent.shapes.observation}.")
    context, images = (torch.from_numpy(frames).to(agent.device) for frames in (first, frame))
    generated = method.reconstruct(images, context), method.sample(context, torch.Generator().manual_seed(seed))
    columns = (first, frame, *(images.cpu().numpy() for images in generated))
    cells = [image for row in zip(*columns, strict=True) for image in row]
    write_png(path, tile(cells, len(COLUMNS), scale, labels=COLUMNS * rows))


def _sample_frames(dataset: Dataset, rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the first frames of random episodes, and a later frame of each."""
    episodes = rng.integers(dataset.episodes, size=rows)
    first = np.asarray(dataset.episode_first_frame)[episodes]
    later = first + rng.integers(1, np.asarray(dataset.episode_length)[episodes] + 1)
    return dataset.frames[first], dataset.frames[later]
