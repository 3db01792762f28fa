"""Random image augmentation of training batches.

random_shift      move every image by a few pixels (RAD, DrQ)
channel_shuffle   permute the colour channels, in all images of a sample alike
random_overlay    blend another image of the dataset into all images of a sample (after SODA and SVEA)
horizontal_flip   mirror all images of a sample, and the actions with them

Images are augmented as stored, uint8 with channels last: on bytes it takes a quarter of the time that floats take.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcb.data.batch import Batch
from gcb.data.store import Dataset
from gcb.envs.adapters import ADAPTERS


class Augmenter:
    """Augments batches of images; batches of vectors are returned unchanged. All randomness comes from `rng`."""

    def __init__(
        self,
        dataset: Dataset,
        rng: np.random.Generator,
        *,
        random_shift: int = 0,
        channel_shuffle: bool = False,
        random_overlay: float = 0.0,
        horizontal_flip: bool = False,
        shifted_together: Iterable[frozenset[str]] = (),
    ) -> None:
        """`random_shift` is the largest shift in pixels, `random_overlay` the probability of an overlay.

        The fields of `Batch` in one set of `shifted_together` are shifted by the same pixels. `horizontal_flip` only
        applies where the environment is known to be symmetric: see `flipped_actions`.
        """
        self.rng, self._frames = rng, np.asarray(dataset.frames)
        self._images = self._frames.ndim == 4
        self._pixels, self._together = random_shift, tuple(shifted_together)
        self._shuffle = channel_shuffle and self._frames.shape[-1] % 3 == 0
        self._p_overlay = random_overlay
        self._flipped_actions = flipped_actions(dataset) if horizontal_flip else ()

    def __call__(self, batch: Batch[Tensor], batch_size: int, rows: slice = slice(None)) -> Batch[Tensor]:
        """Augment `batch`, which holds these rows of a batch of `batch_size`.

        Random numbers are drawn for the whole batch: a process that holds only some rows augments them as a single
        process would.
        """
        if not self._images:
            return batch
        frames, action, rng = batch.frames(), batch.action, self.rng
        if self._pixels:
            frames = random_shift(frames, self._pixels, self._together, rng, batch_size, rows)
        if self._shuffle:
            frames = channel_shuffle(frames, channel_orders(batch_size, rng)[rows])
        if self._p_overlay:
            index = rng.integers(len(self._frames), size=batch_size)[rows]
            chosen = torch.from_numpy(rng.random(batch_size)[rows] < self._p_overlay)
            overlays = torch.from_numpy(self._frames.take(index, axis=0)).to(action.device)
            frames = random_overlay(frames, overlays, chosen)
        if self._flipped_actions:
            chosen = torch.from_numpy(rng.random(batch_size)[rows] < 0.5)
            frames, action = horizontal_flip(frames, chosen), flip_actions(action, chosen, self._flipped_actions)
        return replace(batch, **frames, action=action)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the generator as JSON values."""
        return {"rng": self.rng.bit_generator.state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.rng.bit_generator.state = state["rng"]


def flipped_actions(dataset: Dataset) -> tuple[int, ...]:
    """Return the action dimensions that a horizontal flip negates, or () if the environment does not declare any.

    A dataset that names no adapter is ours only if its environment is; a user's own adapter is not imported for this.
    """
    named = dataset.config.get("adapter", "gcb" if str(dataset.config.get("env")).startswith("gcb/") else "goal")
    return ADAPTERS[named].flipped_actions if named in ADAPTERS else ()


def random_shift(
    frames: Mapping[str, Tensor],
    pixels: int,
    together: Iterable[frozenset[str]],
    rng: np.random.Generator,
    batch_size: int | None = None,
    rows: slice = slice(None),
) -> dict[str, Tensor]:
    """Shift every image by up to `pixels` in each direction; the fields in one set of `together` shift alike.

    Every field consumes its random numbers even if it does not use them, so that the numbers do not depend on
    `together`. Where `frames` are only some `rows` of a batch of `batch_size`, the whole batch's numbers are drawn.
    """
    offsets = {
        name: torch.from_numpy(rng.integers(-pixels, pixels, (batch_size or len(images), 2), endpoint=True)[rows])
        for name, images in frames.items()
    }
    for names in together:
        present = [name for name in frames if name in names]
        offsets.update({name: offsets[present[0]] for name in present})
    return {name: shift_images(images, offsets[name], pixels) for name, images in frames.items()}


def shift_images(images: Tensor, offsets: Tensor, pixels: int) -> Tensor:
    """Shift each image (batch, height, width, channels) by its own (down, right) in `offsets` (batch, 2).

    Offsets are integers of at most `pixels`; the border is filled by repeating the edge. A row shifted sideways is one
    contiguous piece of its padded row, so that the whole batch is one gather of rows.
    """
    batch, height, width, channels = images.shape
    padded = images.new_empty((batch, height, width + 2 * pixels, channels))
    padded[:, :, pixels : pixels + width] = images
    padded[:, :, :pixels] = images[:, :, :1]
    padded[:, :, pixels + width :] = images[:, :, -1:]

    down, right = offsets.to(images.device).unbind(1)
    rows = torch.arange(height, device=images.device) - down[:, None]
    rows = rows.clamp_(0, height - 1) + torch.arange(batch, device=images.device)[:, None] * height
    starts = (rows * (width + 2 * pixels) + (pixels - right)[:, None]) * channels
    # Every run of width × channels values in the padded batch, wherever it starts, as one overlapping view.
    runs = padded.as_strided((padded.numel() - width * channels + 1, width * channels), (1, 1))
    return runs.index_select(0, starts.view(-1)).view(images.shape)


def channel_shuffle(frames: Mapping[str, Tensor], orders: Tensor) -> dict[str, Tensor]:
    """Permute the channels of each sample's images by its row of `orders` (batch, 3).

    Stacked images have each triple of channels permuted alike.
    """
    return {name: _permute_channels(images, orders.to(images.device)) for name, images in frames.items()}


def _permute_channels(images: Tensor, orders: Tensor) -> Tensor:
    permuted = torch.empty_like(images)
    sample = torch.arange(len(images), device=images.device)
    for channel in range(images.shape[-1]):
        image, colour = divmod(channel, 3)
        permuted[..., channel] = images[sample, :, :, 3 * image + orders[:, colour]]
    return permuted


def channel_orders(count: int, rng: np.random.Generator) -> Tensor:
    """Sample a permutation of three channels for each of `count` samples."""
    return torch.from_numpy(rng.permuted(np.tile(np.arange(3), (count, 1)), axis=1))


def random_overlay(frames: Mapping[str, Tensor], overlays: Tensor, chosen: Tensor) -> dict[str, Tensor]:
    """Blend 3/8 of its overlay into all images of each sample that is `chosen` (batch,)."""
    rows = torch.nonzero(chosen).squeeze(1).to(overlays.device)
    # Copying whole rows by their index is more than twice as fast as writing them through a mask.
    source = torch.arange(len(chosen), device=overlays.device)
    source[rows] = len(chosen) + torch.arange(len(rows), device=overlays.device)
    overlay = _three_eighths(overlays.index_select(0, rows))
    blended: dict[str, Tensor] = {}
    for name, images in frames.items():
        background = images.index_select(0, rows)
        background = background.sub_(_three_eighths(background)).add_(overlay)
        blended[name] = torch.cat([images, background]).index_select(0, source)
    return blended


def _three_eighths(images: Tensor) -> Tensor:
    return (images >> 2) + (images >> 3)


def horizontal_flip(frames: Mapping[str, Tensor], chosen: Tensor) -> dict[str, Tensor]:
    """Mirror left and right in all images of each sample that is `chosen` (batch,)."""
    rows = torch.nonzero(chosen).squeeze(1)
    return {name: _flip(images, rows.to(images.device)) for name, images in frames.items()}


def _flip(images: Tensor, rows: Tensor) -> Tensor:
    return images.index_copy(0, rows, images.index_select(0, rows).flip(2))


def flip_actions(action: Tensor, chosen: Tensor, dimensions: Iterable[int]) -> Tensor:
    """Negate these dimensions of the actions (batch, dimensions) of the samples `chosen`."""
    sign = torch.ones_like(action)
    sign[:, list(dimensions)] = 1 - 2 * chosen.to(action.device, action.dtype)[:, None]
    return action * sign
