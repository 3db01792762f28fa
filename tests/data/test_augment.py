"""Random shifts: against the plain loop, and drawn as promised."""

from itertools import permutations

import numpy as np
import torch

from gcb.data.augment import (
    draw_orders,
    mirror_actions,
    mirror_frames,
    overlay_frames,
    recolour_frames,
    shift_frames,
    shift_images,
)


def shifted_by_loop(images: np.ndarray, offsets: np.ndarray, pixels: int) -> np.ndarray:
    """Pad with the edge, then cut each image out where its offset says."""
    height, width = images.shape[1:3]
    padded = np.pad(images, ((0, 0), (pixels, pixels), (pixels, pixels), (0, 0)), mode="edge")
    return np.stack(
        [
            one[pixels - down : pixels - down + height, pixels - right : pixels - right + width]
            for one, (down, right) in zip(padded, offsets, strict=True)
        ]
    )


def random_images(count: int, shape: tuple[int, int, int], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(256, size=(count, *shape), dtype=np.uint8)


def test_every_offset_equals_the_plain_loop() -> None:
    pixels = 3
    steps = range(-pixels, pixels + 1)
    offsets = np.array([(down, right) for down in steps for right in steps])
    images = random_images(len(offsets), (10, 13, 6))
    moved = shift_images(torch.from_numpy(images), torch.from_numpy(offsets), pixels)
    assert np.array_equal(moved.numpy(), shifted_by_loop(images, offsets, pixels))
    assert moved.dtype == torch.uint8


def test_a_dot_moves_down_and_right() -> None:
    image = torch.zeros(1, 5, 5, 1, dtype=torch.uint8)
    image[0, 2, 2] = 1
    moved = shift_images(image, torch.tensor([[1, 2]]), 2)
    assert moved[0, 3, 4] == 1
    assert moved.sum() == 1


def test_frames_move_on_their_own_or_together() -> None:
    images = torch.from_numpy(random_images(8, (12, 12, 3)))
    frames = {"state": images, "next_state": images, "goal": images}
    alone = shift_frames(frames, 4, (), np.random.default_rng(0))
    assert not torch.equal(alone["state"], alone["goal"])
    together = shift_frames(frames, 4, (frozenset({"state", "goal", "initial_state"}),), np.random.default_rng(0))
    assert torch.equal(together["state"], together["goal"])
    assert not torch.equal(together["state"], together["next_state"])
    assert torch.equal(together["next_state"], alone["next_state"])  # the draws do not depend on who moves with whom


def test_all_offsets_are_drawn_alike() -> None:
    rng = np.random.default_rng(1)
    image = torch.zeros(2000, 9, 9, 1, dtype=torch.uint8)
    image[:, 4, 4] = 1
    moved = shift_frames({"state": image}, 2, (), rng)["state"]
    counts = moved.sum(0).view(9, 9)[2:7, 2:7]
    assert counts.sum() == 2000
    assert counts.min() >= 45  # 80 expected of each of the 25; √80 ≈ 9
    assert counts.max() <= 120


def test_recolouring_puts_each_samples_channels_in_its_own_order() -> None:
    images = torch.arange(12, dtype=torch.uint8).view(2, 1, 1, 6)  # two samples of two stacked pictures of one pixel
    orders = torch.tensor([[0, 1, 2], [2, 0, 1]])
    coloured = recolour_frames({"state": images, "goal": images}, orders)
    assert coloured["state"].flatten(1).tolist() == [[0, 1, 2, 3, 4, 5], [8, 6, 7, 11, 9, 10]]
    assert torch.equal(coloured["goal"], coloured["state"])


def test_all_orders_of_channels_are_drawn() -> None:
    drawn = {tuple(order) for order in draw_orders(500, np.random.default_rng(0)).tolist()}
    assert drawn == set(permutations(range(3)))


def test_an_overlay_is_three_eighths_of_the_chosen_samples() -> None:
    images = torch.tensor([80, 80, 255], dtype=torch.uint8).view(3, 1, 1, 1)
    pictures = torch.tensor([160, 160, 255], dtype=torch.uint8).view(3, 1, 1, 1)
    chosen = torch.tensor([True, False, True])
    blended = overlay_frames({"state": images}, pictures, chosen)["state"]
    assert blended.flatten().tolist() == [50 + 60, 80, 255]  # 5/8 · 80 + 3/8 · 160; white on white stays white
    assert images.flatten().tolist() == [80, 80, 255]


def test_a_mirror_exchanges_left_and_right_of_the_chosen_samples_and_turns_their_actions() -> None:
    images = torch.arange(12, dtype=torch.uint8).view(2, 2, 3, 1)
    chosen = torch.tensor([False, True])
    mirrored = mirror_frames({"state": images, "goal": images}, chosen)
    assert mirrored["state"][0].tolist() == images[0].tolist()
    assert mirrored["state"][1].flatten().tolist() == [8, 7, 6, 11, 10, 9]
    assert torch.equal(mirrored["goal"], mirrored["state"])
    actions = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    assert mirror_actions(actions, chosen, (0, 2)).tolist() == [[1, 2, 3], [-1, 2, -3]]
