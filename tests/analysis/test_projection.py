"""The map: what is near stays near, a seed repeats, and what cannot be mapped is said."""

import numpy as np
import pytest

from gcb.analysis.projection import MOST, tsne
from gcb.errors import GCBError


def test_two_heaps_stay_two_heaps() -> None:
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(0, 1e-3, (20, 8)), rng.normal(1, 1e-3, (20, 8))])
    positions = tsne(rows, 0)
    assert positions.shape == (40, 2)
    middles = positions[:20].mean(0), positions[20:].mean(0)
    own, other = (np.linalg.norm(positions[:20] - middle, axis=1) for middle in middles)
    assert (own < other).all()
    np.testing.assert_array_equal(tsne(rows, 0), positions)


def test_a_single_dimension_and_doubles_can_be_mapped() -> None:
    assert np.isfinite(tsne(np.array([[0.0], [0.0], [1.0], [2.0], [2.0]]), 0)).all()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros((3, 2)), f"a map of 3 points was asked for; accepted: 4 to {MOST}"),
        (np.zeros((MOST + 1, 1)), f"a map of {MOST + 1} points"),
        (np.full((9, 4), 3.0), "all alike or not finite"),
        (np.full((9, 4), np.nan), "all alike or not finite"),
    ],
)
def test_what_cannot_be_mapped_is_said(rows: np.ndarray, message: str) -> None:
    with pytest.raises(GCBError, match=message):
        tsne(rows, 0)
