"""Nearest neighbours against brute force and against values worked out by hand."""

import numpy as np
import pytest

from gcb.analysis import neighbours
from gcb.analysis.neighbours import nearest
from gcb.errors import GCBError


def brute_force(queries, keys, k, exclude=None, norm="l2"):
    """Compute and sort every distance."""
    difference = queries[:, None].astype(float) - keys[None].astype(float)
    distance = np.abs(difference).sum(-1) if norm == "l1" else np.sqrt((difference**2).sum(-1))
    if exclude is not None:
        distance[exclude[0][:, None] == exclude[1][None]] = np.inf
    order = np.argsort(distance, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(distance, order, 1)


def test_by_hand() -> None:
    keys = np.array([[0.0, 0.0], [3.0, 4.0], [1.0, 0.0], [0.0, 2.0]])
    indices, distances = nearest(np.array([[0.0, 0.0], [3.0, 3.0]]), keys, k=3)
    assert indices.tolist() == [[0, 2, 3], [1, 3, 2]]
    np.testing.assert_allclose(distances[0], [0, 1, 2])
    np.testing.assert_allclose(distances[1], [1, np.sqrt(10), np.sqrt(13)])
    indices, distances = nearest(np.array([[0.0, 0.0]]), keys, k=4, norm="l1")
    assert indices.tolist() == [[0, 2, 3, 1]]
    assert distances.tolist() == [[0, 1, 2, 7]]


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_equals_brute_force_over_many_blocks(monkeypatch: pytest.MonkeyPatch, norm: str, offset: float) -> None:
    """Far from the origin the matrix product alone confuses near ties."""
    monkeypatch.setattr(neighbours, "QUERY_ROWS", 7)
    monkeypatch.setattr(neighbours, "BLOCK_NUMBERS", 40)
    rng = np.random.default_rng(0)
    queries, keys = (offset + rng.normal(size=(count, 3)).astype(np.float32) for count in (20, 65))
    labels = rng.integers(5, size=20), rng.integers(5, size=65)
    for exclude in (None, labels):
        expected, distances = brute_force(queries, keys, 4, exclude, norm)
        actual, actual_distances = nearest(queries, keys, 4, exclude, norm)  # pyright: ignore[reportArgumentType]
        np.testing.assert_array_equal(actual, expected)
        np.testing.assert_allclose(actual_distances, distances, rtol=1e-12)


def test_uint8_images_do_not_overflow() -> None:
    rng = np.random.default_rng(1)
    images = rng.integers(256, size=(30, 4, 4, 3), dtype=np.uint8)
    actual, distances = nearest(images[:5], images, 3)
    expected, exact = brute_force(images[:5].reshape(5, -1), images.reshape(30, -1), 3)
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_allclose(distances, exact)


def test_ties_are_broken_by_index() -> None:
    keys = np.repeat(np.random.default_rng(0).normal(size=(9, 6)), 5, axis=0)
    for row, query in enumerate(keys):
        group = 5 * (row // 5)
        indices, distances = nearest(query[None], keys, k=5)
        assert indices.tolist() == [list(range(group, group + 5))]
        assert not distances.any()


def test_keys_with_the_same_label_are_excluded() -> None:
    points = np.array([[0.0], [0.1], [5.0]])
    labels = np.array([7, 7, 8])
    assert nearest(points, points, exclude=(labels, labels))[0][:, 0].tolist() == [2, 2, 1]
    with pytest.raises(GCBError, match=r"query 0 has 1 keys .* k is 2"):
        nearest(points, points, 2, exclude=(labels, labels))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k is 0; .* 1 to 4"),
        ({"k": 5}, "k is 5; .* 1 to 4"),
        ({"norm": "cosine"}, "norm is 'cosine'"),
        ({"queries": np.zeros((2, 9))}, r"queries are \(2, 9\) and keys \(4, 3\)"),
        ({"queries": np.zeros((0, 3))}, "0 queries and 4 keys"),
        ({"exclude": (np.zeros(2), np.zeros(3))}, "2 and 3 labels for 2 queries and 4 keys"),
    ],
)
def test_invalid_arguments_are_named(arguments: dict, message: str) -> None:
    with pytest.raises(GCBError, match=message):
        nearest(**{"queries": np.zeros((2, 3)), "keys": np.zeros((4, 3)), **arguments})
