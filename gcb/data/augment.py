"""Augmentation of images as they are stored: uint8, channels last. On bytes it costs a quarter of that on floats.

shift       every image moves by some pixels (RAD, DrQ). A row shifted sideways is one contiguous piece of its padded
            row, so that a whole batch is one gather of rows
mirror      left and right change places, in all images of a sample alike; the actions must be turned with them
recolour    the colour channels change places, in all images of a sample alike
overlay     another picture shines through, the same in all images of a sample (after SODA and SVEA)
"""

from collections.abc import Iterable, Mapping

import numpy as np
import torch
from torch import Tensor


def shift_images(images: Tensor, offsets: Tensor, pixels: int) -> Tensor:
    """Move each image (batch, height, width, channels) by its own (down, right) in `offsets` (batch, 2).

    Offsets are whole and at most `pixels` in size; what comes into view repeats the edge.
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


def shift_frames(
    frames: Mapping[str, Tensor],
    pixels: int,
    together: Iterable[frozenset[str]],
    rng: np.random.Generator,
    batch_size: int | None = None,
    rows: slice = slice(None),
) -> dict[str, Tensor]:
    """Move every frame of a batch at random by up to `pixels`; the roles in one set of `together` move alike.

    Each role has its draws whether it uses them or not, so that the draws do not depend on `together`. Where `frames`
    are only some `rows` of a batch of `batch_size`, the whole batch's draws are made.
    """
    offsets = {
        role: torch.from_numpy(rng.integers(-pixels, pixels, (batch_size or len(images), 2), endpoint=True)[rows])
        for role, images in frames.items()
    }
    for roles in together:
        present = [role for role in frames if role in roles]
        offsets.update({role: offsets[present[0]] for role in present})
    return {role: shift_images(images, offsets[role], pixels) for role, images in frames.items()}


def mirror_frames(frames: Mapping[str, Tensor], chosen: Tensor) -> dict[str, Tensor]:
    """Exchange left and right in all images of each sample that is `chosen` (batch,)."""
    rows = torch.nonzero(chosen).squeeze(1)
    return {role: _mirrored(images, rows.to(images.device)) for role, images in frames.items()}


def _mirrored(images: Tensor, rows: Tensor) -> Tensor:
    return images.index_copy(0, rows, images.index_select(0, rows).flip(2))


def mirror_actions(action: Tensor, chosen: Tensor, dimensions: Iterable[int]) -> Tensor:
    """The actions (batch, dimensions) of mirrored scenes: these dimensions change sign in the samples `chosen`."""
    sign = torch.ones_like(action)
    sign[:, list(dimensions)] = 1 - 2 * chosen.to(action.device, action.dtype)[:, None]
    return action * sign


def recolour_frames(frames: Mapping[str, Tensor], orders: Tensor) -> dict[str, Tensor]:
    """Put the channels of each sample's images into its own order: `orders` is (batch, 3), 0 1 2 as they are.

    Of stacked images each triple of channels is put into that order.
    """
    return {role: _recoloured(images, orders.to(images.device)) for role, images in frames.items()}


def _recoloured(images: Tensor, orders: Tensor) -> Tensor:
    coloured = torch.empty_like(images)
    sample = torch.arange(len(images), device=images.device)
    for channel in range(images.shape[-1]):
        stacked, colour = divmod(channel, 3)
        coloured[..., channel] = images[sample, :, :, 3 * stacked + orders[:, colour]]
    return coloured


def overlay_frames(frames: Mapping[str, Tensor], pictures: Tensor, chosen: Tensor) -> dict[str, Tensor]:
    """Let a picture shine through all images of each sample that is `chosen` (batch,): it is 3/8 of what comes out."""
    rows = torch.nonzero(chosen).squeeze(1).to(pictures.device)
    # Whole rows, copied by their number: more than twice as fast as to put them in their places by a mask.
    place = torch.arange(len(chosen), device=pictures.device)
    place[rows] = len(chosen) + torch.arange(len(rows), device=pictures.device)
    shine = _three_eighths(pictures.index_select(0, rows))
    blended: dict[str, Tensor] = {}
    for role, images in frames.items():
        below = images.index_select(0, rows)
        below = below.sub_(_three_eighths(below)).add_(shine)
        blended[role] = torch.cat([images, below]).index_select(0, place)
    return blended


def _three_eighths(images: Tensor) -> Tensor:
    return (images >> 2) + (images >> 3)


def draw_orders(count: int, rng: np.random.Generator) -> Tensor:
    """A random order of three channels for each sample."""
    return torch.from_numpy(rng.permuted(np.tile(np.arange(3), (count, 1)), axis=1))
