"""Random image augmentation of training batches.

random_shift      move images by a few pixels (RAD, DrQ)
channel_shuffle   permute the colour channels
random_overlay    blend another image of the dataset into images (after SODA and SVEA)
horizontal_flip   mirror images, and the actions with them

All images of a group of transitions are augmented alike, so that they still show one task.

Images are augmented as they are stored, uint8 with channels last, which takes a quarter of the time of floats.
"""

from collections.abc import Collection, Iterable, Mapping
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
        shifted_independently: Collection[str] = (),
    ) -> None:
        """`random_shift` is the largest shift in pixels, `random_overlay` the probability of an overlay.

        `shifted_independently` names fields of `Batch` that are shifted independently of the group's other images.
        `horizontal_flip` only applies where the environment is known to be symmetric: see `flipped_actions`.
        """
        self.rng, self._frames = rng, np.asarray(dataset.frames)
        self._images = self._frames.ndim == 4
        self._pixels, self._alone = random_shift, frozenset(shifted_independently)
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
        size, rng = batch.group_size, self.rng
        count = batch_size // size
        groups = slice(*(None if row is None else row // size for row in (rows.start, rows.stop)))
        frames, action = batch.frames(), batch.action

        def expand(values: Tensor) -> dict[str, Tensor]:
            """Return the values of the groups for every image of each field."""
            return {name: batch.expand(values) if name == "state" else values for name in frames}

        if self._pixels:
            offsets = expand(random_offsets(self._pixels, count, rng)[groups])
            offsets |= {
                name: random_offsets(self._pixels, count, rng)[groups] for name in sorted(self._alone & set(frames))
            }
            frames = {name: shift_images(images, offsets[name], self._pixels) for name, images in frames.items()}
        if self._shuffle:
            orders = expand(channel_orders(count, rng)[groups])
            frames = {name: permute_channels(images, orders[name]) for name, images in frames.items()}
        if self._p_overlay:
            index = rng.integers(len(self._frames), size=count)[groups]
            chosen = expand(torch.from_numpy(rng.random(count)[groups] < self._p_overlay))
            overlays = expand(torch.from_numpy(self._frames.take(index, axis=0)).to(action.device))
            frames = {name: blend(images, overlays[name], chosen[name]) for name, images in frames.items()}
        if self._flipped_actions:
            chosen = expand(torch.from_numpy(rng.random(count)[groups] < 0.5))
            frames = {name: flip_images(images, chosen[name]) for name, images in frames.items()}
            action = flip_actions(action, chosen["state"], self._flipped_actions)
        return replace(batch, **frames, action=action)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the generator as JSON values."""
        return {"rng": self.rng.bit_generator.state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.rng.bit_generator.state = state["rng"]


def flipped_actions(dataset: Dataset) -> tuple[int, ...]:
    """Return the action dimensions that a horizontal flip negates, or () if the environment does not declare any.

    A dataset without an adapter is gcb's own if its environment is; a user's adapter is not imported for this.
    """
    named = dataset.config.get("adapter", "gcb" if str(dataset.config.get("env")).startswith("gcb/") else "goal")
    return ADAPTERS[named].flipped_actions if named in ADAPTERS else ()


def random_offsets(pixels: int, count: int, rng: np.random.Generator) -> Tensor:
    """Sample shifts (down, right) of up to `pixels` in each direction, as (count, 2)."""
    return torch.from_numpy(rng.integers(-pixels, pixels, (count, 2), endpoint=True))


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


def permute_channels(images: Tensor, orders: Tensor) -> Tensor:
    """Permute the channels of each image by its row of `orders` (batch, 3); of stacked images, each triple alike."""
    orders, permuted = orders.to(images.device), torch.empty_like(images)
    sample = torch.arange(len(images), device=images.device)
    for channel in range(images.shape[-1]):
        image, colour = divmod(channel, 3)
        permuted[..., channel] = images[sample, :, :, 3 * image + orders[:, colour]]
    return permuted


def channel_orders(count: int, rng: np.random.Generator) -> Tensor:
    """Sample a permutation of three channels for each of `count` samples."""
    return torch.from_numpy(rng.permuted(np.tile(np.arange(3), (count, 1)), axis=1))


def blend(images: Tensor, overlays: Tensor, chosen: Tensor) -> Tensor:
    """Blend 3/8 of its overlay into each image that is `chosen` (batch,)."""
    rows = torch.nonzero(chosen).squeeze(1).to(images.device)
    # Copying whole rows by their index is more than twice as fast as writing them through a mask.
    background = images.index_select(0, rows)
    background = background.sub_(_three_eighths(background)).add_(_three_eighths(overlays.index_select(0, rows)))
    return images.index_copy(0, rows, background)


def _three_eighths(images: Tensor) -> Tensor:
    return (images >> 2) + (images >> 3)


def flip_images(images: Tensor, chosen: Tensor) -> Tensor:
    """Mirror left and right each image that is `chosen` (batch,)."""
    rows = torch.nonzero(chosen).squeeze(1).to(images.device)
    return images.index_copy(0, rows, images.index_select(0, rows).flip(2))


def flip_actions(action: Tensor, chosen: Tensor, dimensions: Iterable[int]) -> Tensor:
    """Negate these dimensions of the actions (batch, dimensions) of the samples `chosen`."""
    sign = torch.ones_like(action)
    sign[:, list(dimensions)] = 1 - 2 * chosen.to(action.device, action.dtype)[:, None]
    return action * sign
