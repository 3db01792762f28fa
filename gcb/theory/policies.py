"""Values and policies of a finite GCMDP: the exact V^π, V* and π* that the propositions speak of."""

import numpy as np
from numpy.typing import ArrayLike

from gcb.errors import GCBError
from gcb.theory.gcmdp import GCMDP, Floats, check_distributions


def check_policy(world: GCMDP, policy: ArrayLike) -> Floats:
    """A policy π[s, g, a] of this world, or an error that says what is wrong with it."""
    values = np.asarray(policy, dtype=np.float64)
    expected = (world.states, len(world.goals), world.actions)
    if values.shape != expected:
        raise GCBError(f"The policy has shape {values.shape}; [states, goals, actions] = {expected} was expected.")
    return check_distributions("policy", values)


def uniform_policy(world: GCMDP) -> Floats:
    return np.full((world.states, len(world.goals), world.actions), 1.0 / world.actions)


def random_policy(world: GCMDP, rng: np.random.Generator) -> Floats:
    """A random stochastic policy that looks at the goal."""
    return rng.dirichlet(np.ones(world.actions), size=(world.states, len(world.goals)))


def one_policy_for_all_goals(world: GCMDP, behaviour: ArrayLike) -> Floats:
    """Spread a policy over states, [s, a], to every goal: the case that Proposition 4 needs."""
    values = np.asarray(behaviour, dtype=np.float64)
    return check_policy(world, np.repeat(values[:, None, :], len(world.goals), axis=1))


def evaluate_rewards(P: Floats, behaviour: Floats, R: Floats, gamma: float) -> Floats:
    """V of a policy [s, a] for rewards R[s, a] by solving the Bellman equations."""
    chain = np.einsum("sa,sax->sx", behaviour, P)
    return np.linalg.solve(np.eye(len(chain)) - gamma * chain, (behaviour * R).sum(axis=1))


def evaluate(world: GCMDP, policy: ArrayLike) -> Floats:
    """V^π(s, g) as [s, k]."""
    checked = check_policy(world, policy)
    columns = [evaluate_rewards(world.P, checked[:, k], world.R[:, :, k], world.gamma) for k in range(len(world.goals))]
    return np.stack(columns, axis=1)


def optimal_q(P: Floats, R: Floats, gamma: float, tolerance: float = 1e-12) -> Floats:
    """Q* for rewards R[s, a] or R[s, a, k], by value iteration to `tolerance`."""
    Q = np.zeros_like(R)
    while True:
        updated = R + gamma * np.einsum("sax,x...->sa...", P, Q.max(axis=1))
        change = float(np.abs(updated - Q).max())
        Q = updated
        if change * gamma <= tolerance * (1.0 - gamma):
            return Q


def optimal_policy(world: GCMDP, *, ties: str = "first", tie_tolerance: float = 1e-9) -> Floats:
    """π*(s, g): the first of the best actions, or (`ties="uniform"`) all of them with equal chance."""
    if ties not in ("first", "uniform"):
        raise GCBError(f"ties is {ties!r}; 'first' or 'uniform' was expected.")
    Q = np.moveaxis(optimal_q(world.P, world.R, world.gamma), 1, 2)
    best = Q.max(axis=-1, keepdims=True) - Q <= tie_tolerance
    if ties == "uniform":
        return best / best.sum(axis=-1, keepdims=True)
    return np.eye(world.actions)[best.argmax(axis=-1)]
