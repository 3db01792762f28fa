"""Partners: for each episode, other episodes that do the same thing, so that one can serve as an example of the other.

Distances come from an embedding, such as a learned metric φ; no labels are used. A metric is reliable between
neighbours only: far away, opening a drawer that faces left may look like closing one that faces right. So each
episode is linked to its nearest neighbours, and partners are found by walking along the links: a short walk leads to
an episode that does the same thing in almost the same place, a long one carries the task from neighbour to neighbour to
any place.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gcb.utils.dataclass_io import check_fields

CANDIDATES = 4096
"""Largest number of episodes that are linked; of more, as many are sampled, and the others have no partners."""
WALKS = 64
"""Walks from each episode; new ones are made when the table is renewed."""
BLOCK = 512
"""Episodes whose distances to all others are computed at once."""


@dataclass(frozen=True)
class PartnerConfig:
    """How an episode's partners are found, and how often a partner's pair is the example."""

    source: Literal["metric", "pixels", "random", "none"] = "metric"
    """How partners are found: by the learned metric φ, by pixels or at random; or no partners."""
    probability: float = 0.7
    """Probability that an episode's example is its partner's pair (s₀, g) instead of its own."""
    neighbors: int = 5
    """Number of nearest episodes that an episode is linked to; only mutual neighbours are linked."""
    max_hops: int = 1024
    """Length of the longest walk along the links in the last third of training; lengths are spread evenly from 1 on a
    logarithmic scale. Earlier walks are shorter: the metric still makes mistakes, which add up along a walk."""
    every: int = 400
    """Steps between searches: the metric changes while it is learned."""
    start: float = 0.125
    """Fraction of the training steps before the first search."""

    def __post_init__(self) -> None:
        check_fields(
            self,
            "method_config.partners.",
            probability="[0, 1]",
            neighbors="[1, 1000]",
            max_hops="[1, 100000]",
            every="[1, inf)",
            start="[0, 1]",
        )


@dataclass(frozen=True, eq=False)
class Partners:
    """A table of partners, by numbers of episodes of the dataset."""

    episodes: np.ndarray
    """(n,) the episodes that have partners, in ascending order."""
    table: np.ndarray
    """(n, walks) their partners, from the shortest walk to the longest."""

    def sample(self, episodes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Sample a partner for each of these episodes; -1 for an episode that is not in the table."""
        row = np.searchsorted(self.episodes, episodes).clip(max=len(self.episodes) - 1)
        partner = self.table[row, rng.integers(self.table.shape[1], size=len(episodes))]
        return np.where(self.episodes[row] == episodes, partner, -1)


def find_partners(
    embedding: np.ndarray, episodes: np.ndarray, neighbors: int, max_hops: float, rng: np.random.Generator
) -> Partners:
    """Return partners of at least two episodes, given an embedding (n, dimension) of each. Distances are ℓ1."""
    links, count = mutual_neighbors(embedding, neighbors)
    hops = np.floor(max_hops ** np.linspace(0, 1, WALKS)).astype(np.int64)
    return Partners(episodes, episodes[walk(links, count, hops, rng)])


def random_partners(episodes: np.ndarray, rng: np.random.Generator) -> Partners:
    """Return random partners: any other of at least two episodes."""
    count = len(episodes)
    other = (np.arange(count)[:, None] + rng.integers(1, count, size=(count, WALKS))) % count
    return Partners(episodes, episodes[other])


def mutual_neighbors(embedding: np.ndarray, neighbors: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the links (n, neighbors) of each row of an embedding, and how many of them there are (n,).

    Two rows are linked if each is among the nearest of the other. A row without such a link is linked to its nearest.
    """
    nearest = _nearest(embedding, min(neighbors, len(embedding) - 1))
    rows = np.arange(len(nearest))[:, None]
    mutual = (nearest[nearest] == rows[:, :, None]).any(axis=2)
    mutual[~mutual.any(axis=1)] = True
    # The links come first in each row.
    order = np.argsort(~mutual, axis=1, kind="stable")
    return np.take_along_axis(nearest, order, axis=1), mutual.sum(axis=1)


def walk(links: np.ndarray, count: np.ndarray, hops: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return where random walks along links end that start in each row: one of each length in `hops` (ascending)."""
    place = np.repeat(np.arange(len(links))[:, None], len(hops), axis=1)
    for hop in range(1, int(hops[-1]) + 1):
        going = np.searchsorted(hops, hop)
        here = place[:, going:]
        place[:, going:] = links[here, (rng.random(here.shape, np.float32) * count[here]).astype(np.int64)]
    return place


def _nearest(embedding: np.ndarray, count: int) -> np.ndarray:
    """Return the `count` rows nearest to each row by ℓ1, nearest first, without the row itself."""
    import torch  # imported here because collecting and inspecting data do not need it

    points, found = torch.from_numpy(embedding), []
    for start in range(0, len(points), BLOCK):
        distance = torch.cdist(points[start : start + BLOCK], points, p=1)
        rows = torch.arange(len(distance))
        distance[rows, start + rows] = torch.inf
        found.append(distance.topk(count, largest=False).indices)
    return torch.cat(found).numpy()
