"""A batch's groups: values per group and per row, its parts, and its conversion to tensors."""

from typing import Any

import numpy as np
import torch

from gcb.data import Batch


def batch_of(groups: int, group_size: int, **optional: Any) -> Batch[np.ndarray]:
    """Return a batch of vectors (row or group number,) whose fields differ by tens."""
    rows, each = np.arange(groups * group_size), np.arange(groups)
    return Batch(
        state=rows[:, None],
        next_state=10.0 + each[:, None],
        goal=20.0 + each[:, None],
        action=rows[:, None] / 8,
        final=rows % 4 == 3,
        reward=each.astype(np.float32),
        terminal=each % 2 == 0,
        **optional,
    )


def test_values_of_groups_and_rows() -> None:
    batch = batch_of(3, 2).to("cpu")
    assert batch.group_size == 2
    assert batch.expand(torch.tensor([5, 6, 7])).tolist() == [5, 5, 6, 6, 7, 7]
    assert batch.first(batch.state).tolist() == [[0], [2], [4]]
    alone = batch_of(3, 1).to("cpu")
    assert alone.group_size == 1
    assert alone.expand(alone.goal) is alone.goal
    assert torch.equal(alone.first(alone.state), alone.state)


def test_maps_and_images_of_groups_keep_their_order_in_memory() -> None:
    batch, maps = batch_of(3, 2).to("cpu"), torch.arange(3 * 4 * 5 * 6.0).view(3, 4, 5, 6)
    for order in (torch.contiguous_format, torch.channels_last):
        expanded = batch.expand(maps.contiguous(memory_format=order))
        assert torch.equal(expanded, maps.repeat_interleave(2, 0))
        assert expanded.is_contiguous(memory_format=order)


def test_conversion_to_tensors() -> None:
    batch = batch_of(2, 2, has_partner=np.array([True, False])).to("cpu")
    assert batch.action.dtype == torch.float32
    assert batch.terminal.tolist() == [True, False]
    assert batch.final.tolist() == [False, False, False, True]
    assert batch.has_partner is not None
    assert batch.has_partner.tolist() == [True, False]
    assert batch_of(2, 2).to("cpu").has_partner is None
    assert list(batch.frames()) == ["state", "next_state", "goal"]


def test_parts_are_whole_groups() -> None:
    initial_state, has_partner = 30.0 + np.arange(4)[:, None], np.array([True, True, False, False])
    batch = batch_of(4, 3, initial_state=initial_state, has_partner=has_partner).to("cpu")
    first, second = batch.split(2)
    assert first.group_size == second.group_size == 3
    names = ("state", "next_state", "goal", "action", "final", "reward", "terminal", "initial_state", "has_partner")
    for name in names:
        assert torch.equal(torch.cat([getattr(first, name), getattr(second, name)]), getattr(batch, name))
    assert second.state.flatten().tolist() == [6, 7, 8, 9, 10, 11]
    assert second.goal.flatten().tolist() == [22, 23]
    assert batch_of(4, 3).to("cpu").split(2)[0].has_partner is None
