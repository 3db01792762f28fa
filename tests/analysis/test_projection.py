"""t-SNE: clusters stay separate, a seed repeats, and errors name the problem."""

import numpy as np
import pytest

from gcb.analysis.projection import MAX_POINTS, tsne
from gcb.errors import GCBError


def test_two_clusters_stay_separate() -> None:
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(0, 1e-3, (20, 8)), rng.normal(1, 1e-3, (20, 8))])
    positions = tsne(rows, 0)
    assert positions.shape == (40, 2)
    centres = positions[:20].mean(0), positions[20:].mean(0)
    own, other = (np.linalg.norm(positions[:20] - centre, axis=1) for centre in centres)
    assert (own < other).all()
    np.testing.assert_array_equal(tsne(rows, 0), positions)


def test_one_dimension_and_duplicates_can_be_mapped() -> None:
    assert np.isfinite(tsne(np.array([[0.0], [0.0], [1.0], [2.0], [2.0]]), 0)).all()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros((3, 2)), f"3 points .* 4 to {MAX_POINTS}"),
        (np.zeros((MAX_POINTS + 1, 1)), f"{MAX_POINTS + 1} points"),
        (np.full((9, 4), 3.0), "all equal or not finite"),
        (np.full((9, 4), np.nan), "all equal or not finite"),
    ],
)
def test_embeddings_that_cannot_be_mapped_are_rejected(rows: np.ndarray, message: str) -> None:
    with pytest.raises(GCBError, match=message):
        tsne(rows, 0)
