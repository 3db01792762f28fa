"""Random worlds and policies for the checks: small, but of every kind the propositions speak of."""

from collections.abc import Iterator

import numpy as np
from scipy.sparse.csgraph import floyd_warshall

from gcb.theory.builders import grid_world, open_plan, random_world
from gcb.theory.gcmdp import GCMDP, Floats
from gcb.theory.policies import optimal_policy, random_policy, uniform_policy


def _world(rng: np.random.Generator, every_state_a_goal: bool) -> GCMDP:
    gamma = float(rng.choice([0.5, 0.8, 0.9]))
    if rng.random() < 0.25:
        plan = open_plan(*((1, 4), (2, 2), (1, 3))[rng.integers(3)])
        slip = float(rng.choice([0.0, 0.2]))
        chosen = None if every_state_a_goal else [0, 2]
        return grid_world(plan, gamma=gamma, slip=slip, goals=chosen)
    states = int(rng.integers(2, 6))
    return random_world(
        rng,
        states=states,
        actions=int(rng.integers(2, 4)),
        goals=None if every_state_a_goal else int(rng.integers(1, min(states, 3) + 1)),
        support=int(rng.integers(1, 4)),
        twins=int(rng.integers(0, states // 2 + 1)),
        gamma=gamma,
    )


def _policy(rng: np.random.Generator, world: GCMDP) -> Floats:
    kind = rng.integers(4)
    if kind == 0:
        return random_policy(world, rng)
    if kind == 1:
        return uniform_policy(world)
    return optimal_policy(world, ties="first" if kind == 2 else "uniform")


def worlds_and_policies(
    rng: np.random.Generator, count: int, *, every_state_a_goal: bool = False
) -> Iterator[tuple[GCMDP, Floats]]:
    """`count` random worlds (at most 25 tasks), deterministic and not, each with a policy π[s, g, a]."""
    for _ in range(count):
        world = _world(rng, every_state_a_goal)
        yield world, _policy(rng, world)


def random_pseudometric(rng: np.random.Generator, size: int) -> Floats:
    """Shortest paths over random weights, some pairs at distance 0, some a hundred times further than others."""
    weights = rng.exponential(size=(size, size)) * 10.0 ** rng.uniform(-1, 1)
    weights = np.triu(weights, 1)
    paths = floyd_warshall(weights + weights.T, directed=False)
    merged = rng.integers(max(1, size - size // 4), size=size)
    return np.asarray(paths, dtype=np.float64)[np.ix_(merged, merged)]
