"""Finite goal-conditioned MDPs (section 3) with their exact values and policies.

```
P        [s, a, s']   probability of s' after action a in state s
goals    [k]          the states that can be goals, G ⊂ S
achieved [s', k]      does arriving in s' count as goal k?     default: s' = goals[k]
policy   [s, k, a]    probability of action a in state s for goal k
a task   (s, k)       one state-goal pair; its index is s * K + k
```
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gcb.errors import GCBError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PROBABILITY_TOLERANCE = 1e-8


def check_unit_interval(name: str, value: float) -> float:
    """Return a discount; raise an error unless it is strictly between 0 and 1: at 1 there may be no V and no metric."""
    if not 0.0 < float(value) < 1.0:
        raise GCBError(f"{name} is {value}; it must lie strictly between 0 and 1.")
    return float(value)


def check_distributions(name: str, array: ArrayLike) -> Floats:
    """Return `array` as floats; raise an error unless its last axis holds probability distributions."""
    values = np.asarray(array, dtype=np.float64)
    if not np.isfinite(values).all():
        raise GCBError(f"{name} has a value that is not finite; accepted: probabilities.")
    if values.size and values.min() < 0:
        where = tuple(int(index) for index in np.unravel_index(values.argmin(), values.shape))
        raise GCBError(f"{name}{list(where)} is {values.min():g}; a probability cannot be negative.")
    error = np.abs(values.sum(axis=-1) - 1.0)
    if error.size and error.max() > PROBABILITY_TOLERANCE:
        where = tuple(int(index) for index in np.unravel_index(error.argmax(), error.shape))
        raise GCBError(f"{name}{list(where)} sums to {values[where].sum():.6g}; each row must sum to 1.")
    return values


@dataclass(frozen=True, eq=False)
class GCMDP:
    """The tuple (S, A, P, G, R, γ) of section 3, with R(s, a, g) = P(s' counts as g | s, a)."""

    P: Floats
    """Transition probabilities, [s, a, s']."""
    goals: Integers
    """The state that each goal shows, [k]."""
    gamma: float
    """Discount of the value function."""
    achieved: Floats | None = None
    """1 where arriving in s' counts as goal k, [s', k]; by default the paper's 1(s' = g)."""
    state_names: Sequence[str] = ()
    action_names: Sequence[str] = ()

    def __post_init__(self) -> None:
        P = np.asarray(self.P, dtype=np.float64)
        if P.ndim != 3 or P.shape[0] != P.shape[2] or 0 in P.shape:
            raise GCBError(f"P has shape {P.shape}; accepted: [states, actions, states], none of them empty.")
        object.__setattr__(self, "P", check_distributions("P", P))
        object.__setattr__(self, "gamma", check_unit_interval("gamma", self.gamma))
        object.__setattr__(self, "goals", self._checked_goals())
        object.__setattr__(self, "achieved", self._checked_achieved())
        for name, length in (("state_names", self.states), ("action_names", self.actions)):
            given = tuple(getattr(self, name)) or tuple(str(index) for index in range(length))
            if len(given) != length:
                raise GCBError(f"{name} has {len(given)} entries; accepted: {length}.")
            object.__setattr__(self, name, given)

    def _checked_goals(self) -> Integers:
        goals = np.asarray(self.goals)
        if goals.ndim != 1 or not goals.size or not np.issubdtype(goals.dtype, np.integer):
            raise GCBError(f"goals is {self.goals!r}; accepted: a non-empty list of state numbers.")
        wrong = goals[(goals < 0) | (goals >= self.states)]
        if wrong.size:
            raise GCBError(f"Goal {wrong[0]} does not exist; states are numbered 0 to {self.states - 1}.")
        return goals.astype(np.int64)

    def _checked_achieved(self) -> Floats:
        if self.achieved is None:
            return (np.arange(self.states)[:, None] == self.goals[None]).astype(np.float64)
        achieved = np.asarray(self.achieved, dtype=np.float64)
        expected = (self.states, len(self.goals))
        if achieved.shape != expected:
            raise GCBError(f"achieved has shape {achieved.shape}; accepted: [states, goals] = {expected}.")
        if not np.isin(achieved, (0.0, 1.0)).all():
            raise GCBError(
                "achieved has other values; accepted: only 0 and 1, which is where a state counts as a goal."
            )
        return achieved

    @property
    def states(self) -> int:
        return np.shape(self.P)[0]

    @property
    def actions(self) -> int:
        return np.shape(self.P)[1]

    @property
    def tasks(self) -> int:
        """The number of state-goal pairs."""
        return self.states * len(self.goals)

    @property
    def deterministic(self) -> bool:
        return bool(((self.P == 0.0) | (self.P == 1.0)).all())

    @cached_property
    def R(self) -> Floats:
        """R(s, a, g) as [s, a, k]: the probability that action a in s arrives at goal k."""
        assert self.achieved is not None
        return np.einsum("sax,xk->sak", self.P, self.achieved)

    def task(self, state: int, goal: int) -> int:
        """The index of the pair (state, goals[goal])."""
        if not (0 <= state < self.states and 0 <= goal < len(self.goals)):
            raise GCBError(f"Task ({state}, {goal}) does not exist: {self.states} states, {len(self.goals)} goals.")
        return state * len(self.goals) + goal


def check_policy(mdp: GCMDP, policy: ArrayLike) -> Floats:
    """Return a policy π[s, g, a] as floats; raise an error if it is not one of this MDP."""
    values = np.asarray(policy, dtype=np.float64)
    expected = (mdp.states, len(mdp.goals), mdp.actions)
    if values.shape != expected:
        raise GCBError(f"the policy has shape {values.shape}; accepted: [states, goals, actions] = {expected}.")
    return check_distributions("policy", values)


def uniform_policy(mdp: GCMDP) -> Floats:
    return np.full((mdp.states, len(mdp.goals), mdp.actions), 1.0 / mdp.actions)


def random_policy(mdp: GCMDP, rng: np.random.Generator) -> Floats:
    """Return a random stochastic policy that depends on the goal."""
    return rng.dirichlet(np.ones(mdp.actions), size=(mdp.states, len(mdp.goals)))


def goal_agnostic_policy(mdp: GCMDP, behaviour: ArrayLike) -> Floats:
    """Return a policy over states, [s, a], repeated for every goal: the case that Proposition 4 requires."""
    values = np.asarray(behaviour, dtype=np.float64)
    return check_policy(mdp, np.repeat(values[:, None, :], len(mdp.goals), axis=1))


def evaluate_rewards(P: Floats, behaviour: Floats, R: Floats, gamma: float) -> Floats:
    """V of a policy [s, a] for rewards R[s, a] by solving the Bellman equations."""
    chain = np.einsum("sa,sax->sx", behaviour, P)
    return np.linalg.solve(np.eye(len(chain)) - gamma * chain, (behaviour * R).sum(axis=1))


def evaluate(mdp: GCMDP, policy: ArrayLike) -> Floats:
    """V^π(s, g) as [s, k]."""
    checked = check_policy(mdp, policy)
    columns = [evaluate_rewards(mdp.P, checked[:, k], mdp.R[:, :, k], mdp.gamma) for k in range(len(mdp.goals))]
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


def optimal_policy(mdp: GCMDP, *, ties: str = "first", tie_tolerance: float = 1e-9) -> Floats:
    """Return π*(s, g): the first of the best actions or, with `ties="uniform"`, all of them with equal probability."""
    if ties not in ("first", "uniform"):
        raise GCBError(f"ties is {ties!r}; accepted: 'first' or 'uniform'.")
    Q = np.moveaxis(optimal_q(mdp.P, mdp.R, mdp.gamma), 1, 2)
    best = Q.max(axis=-1, keepdims=True) - Q <= tie_tolerance
    if ties == "uniform":
        return best / best.sum(axis=-1, keepdims=True)
    return np.eye(mdp.actions)[best.argmax(axis=-1)]
