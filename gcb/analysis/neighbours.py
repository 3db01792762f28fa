"""Exact nearest neighbours: a matrix product selects candidates, exact distances rank them."""

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from gcb.errors import GCBError

QUERY_ROWS = 256
"""Queries at a time: with 50,000 keys their distances take 51 MB."""
BLOCK_NUMBERS = 1 << 24
"""Numbers in a block of keys: bounds the memory to 64 MB, however long a row is."""
SPARE = 16
"""Candidates beyond k: rounding in the product may swap near ties, which the exact distances correct."""

Norm = Literal["l1", "l2"]
Labels = tuple[np.ndarray, np.ndarray]


def nearest(
    queries: np.ndarray, keys: np.ndarray, k: int = 1, exclude: Labels | None = None, norm: Norm = "l2"
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest keys of each query, nearest first: (indices, distances), each (queries, k).

    Rows may have any shape and dtype; they are compared as flat vectors. `exclude` holds labels of the queries and of
    the keys: a key with the query's label (its episode, its scene) is not a neighbour. Of up to `SPARE` equally near
    keys the first comes first; of more, any.
    """
    if not len(queries) or not len(keys):
        raise GCBError(f"there are {len(queries)} queries and {len(keys)} keys; at least one of each is needed.")
    queries, keys = queries.reshape(len(queries), -1), keys.reshape(len(keys), -1)
    _check(queries, keys, k, exclude, norm)
    # Far from the origin the matrix product would lose small differences.
    mean = keys.mean(axis=0, dtype=np.float64).astype(np.float32)
    indices, distances = np.empty((len(queries), k), np.int64), np.empty((len(queries), k))
    for start in range(0, len(queries), QUERY_ROWS):
        rows = slice(start, start + QUERY_ROWS)
        rough = _rough_distances(queries[rows], keys, mean, norm)
        if exclude is not None:
            rough[torch.from_numpy(exclude[0][rows, None] == exclude[1])] = torch.inf
        values, candidates = rough.topk(min(k + SPARE, len(keys)), largest=False)
        for row, (value, candidate) in enumerate(zip(values.numpy(), candidates.numpy(), strict=True), start):
            ranked = np.sort(candidate[value < np.inf])
            if len(ranked) < k:
                raise GCBError(f"query {row} has {len(ranked)} keys that are not excluded, but k is {k}.")
            indices[row], distances[row] = _rank(queries[row], keys, ranked, k, norm)
    return indices, distances


def _rough_distances(queries: np.ndarray, keys: np.ndarray, mean: np.ndarray, norm: Norm) -> Tensor:
    """Return (queries, keys) float32 distances, which rounding may reorder; for l2 their squares."""
    centred, rows = _centred(queries, mean), max(1, BLOCK_NUMBERS // max(1, keys.shape[1]))
    blocks = (_centred(keys[start : start + rows], mean) for start in range(0, len(keys), rows))
    if norm == "l1":
        return torch.cat([torch.cdist(centred, block, p=1) for block in blocks], 1)
    length = centred.square().sum(1, keepdim=True)
    return torch.cat([length + block.square().sum(1) - 2 * centred @ block.T for block in blocks], 1)


def _centred(rows: np.ndarray, mean: np.ndarray) -> Tensor:
    return torch.from_numpy(rows.astype(np.float32) - mean)


def _rank(
    query: np.ndarray, keys: np.ndarray, candidates: np.ndarray, k: int, norm: Norm
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest candidates and their exact distances."""
    difference = keys[candidates].astype(np.float64) - query
    distance = np.abs(difference).sum(1) if norm == "l1" else np.sqrt(np.square(difference).sum(1))
    order = np.argsort(distance, kind="stable")[:k]
    return candidates[order], distance[order]


def _check(queries: np.ndarray, keys: np.ndarray, k: int, exclude: Labels | None, norm: str) -> None:
    if queries.shape[1] != keys.shape[1]:
        raise GCBError(f"queries are {queries.shape} and keys {keys.shape}; their rows must have the same length.")
    if not 1 <= k <= len(keys):
        raise GCBError(f"k is {k}; accepted: 1 to {len(keys)}, the number of keys.")
    if norm not in ("l1", "l2"):
        raise GCBError(f"norm is {norm!r}; accepted: 'l1', 'l2'.")
    if exclude is not None and (len(exclude[0]), len(exclude[1])) != (len(queries), len(keys)):
        lengths = f"{len(exclude[0])} and {len(exclude[1])}"
        raise GCBError(f"exclude has {lengths} labels for {len(queries)} queries and {len(keys)} keys.")
