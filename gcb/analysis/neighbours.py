"""Nearest neighbours: a matrix product proposes in blocks, exact distances decide."""

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from gcb.errors import GCBError

QUERY_ROWS = 1024
BLOCK_NUMBERS = 1 << 24
"""Numbers in a block of keys: bounds the memory to 64 MB, however long a row is."""
SPARE = 16
"""Proposals beyond k: the product's rounding may swap near ties, which the exact distances then put right."""

Norm = Literal["l1", "l2"]
Labels = tuple[np.ndarray, np.ndarray]


def nearest(
    queries: np.ndarray, keys: np.ndarray, k: int = 1, exclude: Labels | None = None, norm: Norm = "l2"
) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest keys of each query, nearest first: (indices, distances), each (queries, k).

    Rows may have any shape and type; they are compared as flat vectors of numbers. `exclude` holds labels of the
    queries and of the keys: a key with the query's own label (its episode, its scene) is no neighbour of it. Of a few
    equally near keys the first comes first; of more than `SPARE`, any.
    """
    if not len(queries) or not len(keys):
        raise GCBError(f"there are {len(queries)} queries and {len(keys)} keys; at least one of each is needed.")
    queries, keys = queries.reshape(len(queries), -1), keys.reshape(len(keys), -1)
    _check(queries, keys, k, exclude, norm)
    # Far from the origin the product below would lose what is small in the differences.
    middle = keys.mean(axis=0, dtype=np.float64).astype(np.float32)
    indices, distances = [], []
    for start in range(0, len(queries), QUERY_ROWS):
        rows = slice(start, start + QUERY_ROWS)
        labels = None if exclude is None else (exclude[0][rows], exclude[1])
        proposed = _propose(queries[rows], keys, middle, k, labels, norm)
        found, exact = _decide(queries[rows], keys, proposed, k, norm)
        indices.append(found)
        distances.append(exact)
    return np.concatenate(indices), np.concatenate(distances)


def _propose(
    queries: np.ndarray, keys: np.ndarray, middle: np.ndarray, k: int, labels: Labels | None, norm: Norm
) -> np.ndarray:
    """Candidates among which the k nearest are; -1 where there are too few."""
    wanted = min(k + SPARE, len(keys))
    near, best = torch.empty(len(queries), 0), torch.empty(len(queries), 0, dtype=torch.int64)
    centred, rows = _centred(queries, middle), max(1, BLOCK_NUMBERS // max(1, keys.shape[1]))
    for start in range(0, len(keys), rows):
        block = _centred(keys[start : start + rows], middle)
        distance = _compare(centred, block, norm)
        if labels is not None:
            distance[torch.from_numpy(labels[0][:, None] == labels[1][None, start : start + rows])] = torch.inf
        near = torch.cat([near, distance], 1)
        best = torch.cat([best, (start + torch.arange(len(block))).expand(len(queries), -1)], 1)
        near, order = near.topk(min(wanted, near.shape[1]), largest=False)
        best = best.gather(1, order)
    best[near == torch.inf] = -1
    return best.numpy()


def _centred(rows: np.ndarray, middle: np.ndarray) -> Tensor:
    return torch.from_numpy(rows.astype(np.float32) - middle)


def _compare(queries: Tensor, keys: Tensor, norm: Norm) -> Tensor:
    """Distances that are right but for rounding; for l2 their squares, in the same order."""
    if norm == "l1":
        return torch.cdist(queries, keys, p=1)
    return queries.square().sum(1, keepdim=True) + keys.square().sum(1) - 2 * queries @ keys.T


def _decide(
    queries: np.ndarray, keys: np.ndarray, proposed: np.ndarray, k: int, norm: Norm
) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest of each query's proposals, by exact distances."""
    found, exact = np.empty((len(queries), k), np.int64), np.empty((len(queries), k))
    for row, query in enumerate(queries):
        candidates = np.sort(proposed[row][proposed[row] >= 0])
        if len(candidates) < k:
            raise GCBError(f"query {row} has {len(candidates)} keys that are not excluded, but k is {k}.")
        difference = keys[candidates].astype(np.float64) - query
        distance = np.abs(difference).sum(1) if norm == "l1" else np.sqrt(np.square(difference).sum(1))
        order = np.argsort(distance, kind="stable")[:k]
        found[row], exact[row] = candidates[order], distance[order]
    return found, exact


def _check(queries: np.ndarray, keys: np.ndarray, k: int, exclude: Labels | None, norm: str) -> None:
    if queries.shape[1] != keys.shape[1]:
        raise GCBError(f"queries are {queries.shape} and keys {keys.shape}; their rows must be of one length.")
    if not 1 <= k <= len(keys):
        raise GCBError(f"k is {k}; accepted: 1 to {len(keys)}, the number of keys.")
    if norm not in ("l1", "l2"):
        raise GCBError(f"norm is {norm!r}; accepted: 'l1', 'l2'.")
    if exclude is not None and (len(exclude[0]), len(exclude[1])) != (len(queries), len(keys)):
        lengths = f"{len(exclude[0])} and {len(exclude[1])}"
        raise GCBError(f"exclude has {lengths} labels for {len(queries)} queries and {len(keys)} keys.")
