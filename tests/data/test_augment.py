"""Augmentation: against a simple loop and values worked out by hand, and with the promised distribution."""

import json
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from helpers.tiny import tiny_dataset
from torch import Tensor

from gcb.data import Batch, Dataset, GoalSampling, Sampler
from gcb.data.augment import (
    Augmenter,
    blend,
    channel_orders,
    flip_actions,
    flip_images,
    flipped_actions,
    permute_channels,
    random_offsets,
    shift_images,
)


def shifted_by_loop(images: np.ndarray, offsets: np.ndarray, pixels: int) -> np.ndarray:
    """Pad with the edge, then crop each image at its offset."""
    height, width = images.shape[1:3]
    padded = np.pad(images, ((0, 0), (pixels, pixels), (pixels, pixels), (0, 0)), mode="edge")
    return np.stack(
        [
            image[pixels - down : pixels - down + height, pixels - right : pixels - right + width]
            for image, (down, right) in zip(padded, offsets, strict=True)
        ]
    )


def random_images(count: int, shape: tuple[int, int, int], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(256, size=(count, *shape), dtype=np.uint8)


def test_every_offset_matches_the_loop() -> None:
    pixels = 3
    steps = range(-pixels, pixels + 1)
    offsets = np.array([(down, right) for down in steps for right in steps])
    images = random_images(len(offsets), (10, 13, 6))
    shifted = shift_images(torch.from_numpy(images), torch.from_numpy(offsets), pixels)
    assert np.array_equal(shifted.numpy(), shifted_by_loop(images, offsets, pixels))
    assert shifted.dtype == torch.uint8


def test_a_dot_shifts_down_and_right() -> None:
    image = torch.zeros(1, 5, 5, 1, dtype=torch.uint8)
    image[0, 2, 2] = 1
    shifted = shift_images(image, torch.tensor([[1, 2]]), 2)
    assert shifted[0, 3, 4] == 1
    assert shifted.sum() == 1


def test_offsets_are_uniform() -> None:
    offsets = random_offsets(2, 2000, np.random.default_rng(1))
    assert offsets.shape == (2000, 2)
    counts = np.unique(offsets.numpy(), axis=0, return_counts=True)[1]
    assert len(counts) == 25
    assert counts.min() >= 45  # 80 expected of each; √80 ≈ 9
    assert counts.max() <= 120


def test_channels_of_each_sample_are_permuted_by_its_own_order() -> None:
    images = torch.arange(12, dtype=torch.uint8).view(2, 1, 1, 6)  # two samples of two stacked images of one pixel
    permuted = permute_channels(images, torch.tensor([[0, 1, 2], [2, 0, 1]]))
    assert permuted.flatten(1).tolist() == [[0, 1, 2, 3, 4, 5], [8, 6, 7, 11, 9, 10]]


def test_all_channel_orders_are_sampled() -> None:
    orders = {tuple(order) for order in channel_orders(500, np.random.default_rng(0)).tolist()}
    assert orders == set(permutations(range(3)))


def test_an_overlay_is_three_eighths_of_the_chosen_samples() -> None:
    images = torch.tensor([80, 80, 255], dtype=torch.uint8).view(3, 1, 1, 1)
    overlays = torch.tensor([160, 160, 255], dtype=torch.uint8).view(3, 1, 1, 1)
    chosen = torch.tensor([True, False, True])
    blended = blend(images, overlays, chosen)
    assert blended.flatten().tolist() == [50 + 60, 80, 255]  # 5/8 · 80 + 3/8 · 160; white on white stays white
    assert images.flatten().tolist() == [80, 80, 255]


def test_a_flip_mirrors_the_chosen_samples_and_their_actions() -> None:
    images = torch.arange(12, dtype=torch.uint8).view(2, 2, 3, 1)
    chosen = torch.tensor([False, True])
    flipped = flip_images(images, chosen)
    assert flipped[0].tolist() == images[0].tolist()
    assert flipped[1].flatten().tolist() == [8, 7, 6, 11, 10, 9]
    assert images.flatten().tolist() == list(range(12))
    actions = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    assert flip_actions(actions, chosen, (0, 2)).tolist() == [[1, 2, 3], [-1, 2, -3]]


def augmenter(data: Dataset, seed: int = 0, **settings: Any) -> Augmenter:
    return Augmenter(data, np.random.default_rng(seed), **settings)


def image_batch(data: Dataset, size: int = 64, group_size: int = 1) -> Batch[Tensor]:
    sampler = Sampler(data, GoalSampling(), np.random.default_rng(0), group_size=group_size)
    return sampler.sample(size, extra_frames=["initial_state"]).to("cpu")


def one_image_per_group(groups: int, group_size: int) -> Batch[Tensor]:
    """Return a batch in which all frames of a group are the same image, and all actions 1."""
    images = torch.from_numpy(random_images(groups, (32, 32, 3)))
    rows, zeros = images.repeat_interleave(group_size, 0), torch.zeros(groups)
    final = torch.zeros(len(rows)).bool()
    return Batch(rows, images, images, torch.ones(len(rows), 5), final, zeros, zeros.bool(), images)


ALL = {"random_shift": 4, "channel_shuffle": True, "random_overlay": 0.5, "horizontal_flip": True}
HALVES = (slice(0, 32), slice(32, 64))


@pytest.fixture(scope="module")
def drawer() -> Dataset:
    """A dataset of an environment that declares how actions flip."""
    return Dataset.from_arrays(**tiny_dataset(actions=5).arrays(), config={"env": "gcb/Drawer-v0"})


@pytest.mark.parametrize("group_size", [1, 2])
@pytest.mark.parametrize("name", ALL)
def test_all_frames_of_a_group_are_augmented_alike(drawer: Dataset, name: str, group_size: int) -> None:
    batch = one_image_per_group(16, group_size)
    augmented = augmenter(drawer, **{name: ALL[name]})(batch, 16 * group_size)
    changed = (augmented.goal != batch.goal).flatten(1).any(1)
    assert changed.sum() > 4
    for frames in (augmented.next_state, augmented.initial_state):
        assert frames is not None
        assert torch.equal(frames, augmented.goal)
    assert torch.equal(augmented.state, batch.expand(augmented.goal))
    if name == "horizontal_flip":
        flipped = torch.where(changed[:, None], torch.tensor([1.0, -1, 1, -1, 1]), 1.0)
        assert torch.equal(augmented.action, batch.expand(flipped))
    else:
        assert torch.equal(augmented.action, batch.action)
        assert len({tuple(image.flatten().tolist()) for image in augmented.goal}) == 16


def test_a_frame_can_be_shifted_independently(drawer: Dataset) -> None:
    batch = one_image_per_group(16, 2)
    alike, alone = (
        augmenter(drawer, random_shift=4, shifted_independently=names)(batch, 32) for names in ((), ("next_state",))
    )
    assert not torch.equal(alone.next_state, alone.goal)
    assert torch.equal(alone.goal, alike.goal)  # the others' shifts do not depend on it
    assert torch.equal(alone.state, alike.state)
    offsets = random_offsets(4, 16, np.random.default_rng(0))
    assert np.array_equal(alone.goal.numpy(), shifted_by_loop(batch.goal.numpy(), offsets.numpy(), 4))


def test_half_of_the_samples_are_flipped_with_their_actions(drawer: Dataset) -> None:
    batch = image_batch(drawer)
    flipped = augmenter(drawer, horizontal_flip=True)(batch, 64)
    chosen = (flipped.state != batch.state).flatten(1).any(1)
    assert 16 < chosen.sum() < 48
    assert torch.equal(flipped.goal[chosen], batch.goal[chosen].flip(2))
    assert torch.equal(flipped.goal[~chosen], batch.goal[~chosen])
    assert torch.equal(flipped.action[chosen], batch.action[chosen] * torch.tensor([1, -1, 1, -1, 1]))
    assert torch.equal(flipped.action[~chosen], batch.action[~chosen])


@pytest.mark.parametrize("group_size", [1, 4])
def test_some_rows_are_augmented_as_in_the_whole_batch(drawer: Dataset, group_size: int) -> None:
    batch, settings = image_batch(drawer, group_size=group_size), {**ALL, "shifted_independently": ("next_state",)}
    whole = augmenter(drawer, **settings)(batch, 64)
    halves = [augmenter(drawer, **settings)(part, 64, rows) for part, rows in zip(batch.split(2), HALVES, strict=True)]
    for name, tensor in {**whole.frames(), "action": whole.action}.items():
        assert torch.equal(torch.cat([getattr(half, name) for half in halves]), tensor)
        assert not torch.equal(tensor, getattr(batch, name))
    assert torch.equal(whole.reward, batch.reward)


def test_a_restored_augmenter_continues_alike(drawer: Dataset) -> None:
    batch, original = image_batch(drawer), augmenter(drawer, **ALL)
    original(batch, 64)
    restored = augmenter(drawer, seed=9, **ALL)
    restored.load_state_dict(json.loads(json.dumps(original.state_dict())))
    assert torch.equal(restored(batch, 64).state, original(batch, 64).state)


def test_vectors_are_not_augmented() -> None:
    rng = np.random.default_rng(0)
    data = Dataset.from_arrays(rng.normal(size=(22, 5)), rng.uniform(-1, 1, (20, 2)), [10, 10])
    batch = Sampler(data, GoalSampling().without_original(), rng).sample(8).to("cpu")
    assert augmenter(data, **ALL)(batch, 8) is batch


@pytest.mark.parametrize(
    ("config", "dimensions"),
    [
        ({"env": "gcb/ButtonDrawer-v0"}, (1, 3)),
        ({"env": "Pendulum-v1"}, ()),
        ({"env": "Pendulum-v1", "adapter": "goal"}, ()),
        ({"env": "Pendulum-v1", "adapter": "mine:Own"}, ()),
        ({}, ()),
    ],
)
def test_only_environments_that_declare_it_are_flipped(config: dict[str, str], dimensions: tuple[int, ...]) -> None:
    assert flipped_actions(Dataset.from_arrays(**tiny_dataset().arrays(), config=config)) == dimensions
