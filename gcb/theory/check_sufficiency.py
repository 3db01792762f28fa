"""Proposition 3 in MDPs with G = S: does Q-learning on the abstraction reach the optimal values of any reward?

The abstraction is the one that Eq. (analogy) leaves to ψ: states s and t are merged when (s, g) and (t, g) are related
for every goal g. With the relation of Definition 4.1 (all actions) merged states have equal dynamics.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from gcb.theory.builders import grid_world, mdps_and_policies, open_plan, stay_or_switch_mdp
from gcb.theory.gcmdp import GCMDP, Floats, Integers, optimal_policy, optimal_q
from gcb.theory.process import all_actions, bisimulation_classes, on_policy, state_classes
from gcb.theory.verdicts import Tally, Verdict

SOURCE = "Proposition 3"


def psi_classes(mdp: GCMDP) -> Integers:
    """The states that ψ may merge when φ realises Definition 4.1, [s]."""
    return state_classes(mdp, bisimulation_classes(all_actions(mdp)))


def on_policy_psi_classes(mdp: GCMDP) -> Integers:
    """The states that ψ may merge when φ realises the on-policy metric of π*, [s]."""
    return state_classes(mdp, bisimulation_classes(on_policy(mdp, optimal_policy(mdp))))


def merge(classes: Integers, first: int, second: int) -> Integers:
    """A coarser abstraction: two classes become one; the numbers stay without gaps."""
    return np.unique(np.where(classes == second, first, classes), return_inverse=True)[1].astype(np.int64)


def aggregated_q(P: Floats, R: Floats, gamma: float, classes: Integers, tolerance: float = 1e-12) -> Floats:
    """Return the limit of Q-learning on class numbers if all state-action pairs are visited equally often, [s, a]."""
    members = np.eye(int(classes.max()) + 1)[classes]
    members /= members.sum(axis=0)
    Q = np.zeros((members.shape[1], R.shape[1]))
    while True:
        target = R + gamma * np.einsum("sax,x->sa", P, Q.max(axis=1)[classes])
        updated = members.T @ target
        change = float(np.abs(updated - Q).max())
        Q = updated
        if change * gamma <= tolerance * (1.0 - gamma):
            return Q[classes]


def limit_error(mdp: GCMDP, R: Floats, classes: Integers) -> float:
    """The largest |Q - Q*| of Q-learning's limit on an abstraction, for rewards R[s, a]."""
    return float(np.abs(aggregated_q(mdp.P, R, mdp.gamma, classes) - optimal_q(mdp.P, R, mdp.gamma)).max())


def check_limits(rng: np.random.Generator, count: int) -> list[Verdict]:
    """The limit of Q-learning on four abstractions, for random rewards on states."""
    arrival = Tally(SOURCE, "Q-learning on ψ of Def. 4.1 has Q* as its limit, reward on arriving")
    leaving = Tally(SOURCE, "the same, reward R(s) on leaving s", expected=False)
    onpolicy = Tally(SOURCE, "the same on ψ of the on-policy relation of π*, reward on arriving", expected=False)
    coarser = Tally(SOURCE, "merging the two best-matched further classes keeps Q*", expected=False)
    switch, merged = stay_or_switch_mdp(), 0
    onpolicy.add(limit_error(switch, switch.P @ np.array([1.0, 0.0]), on_policy_psi_classes(switch)))
    for mdp, _ in mdps_and_policies(rng, count, every_state_a_goal=True):
        alpha, classes = rng.normal(size=mdp.states), psi_classes(mdp)
        R = mdp.P @ alpha
        merged += mdp.states - int(classes.max()) - 1
        arrival.add(limit_error(mdp, R, classes))
        onpolicy.add(limit_error(mdp, R, on_policy_psi_classes(mdp)))
        leaving.add(limit_error(mdp, np.repeat(alpha[:, None], mdp.actions, axis=1), classes))
        pairs = list(combinations(range(int(classes.max()) + 1), 2))
        if pairs:
            coarser.add(min(limit_error(mdp, R, merge(classes, *pair)) for pair in pairs))
    return [
        arrival.verdict(f"{merged} states merged"),
        leaving.verdict("states with equal dynamics and unequal rewards are merged"),
        onpolicy.verdict(
            "such as two states, stay or switch: merged, though each action means the opposite in the other"
        ),
        coarser.verdict(),
    ]


@dataclass(frozen=True)
class LearningCurve:
    """Q-learning on one abstraction of one MDP."""

    name: str
    classes: int
    updates: Integers
    """Sampled transitions so far."""
    error: Floats
    """Largest |Q - Q*|, as a share of the largest |Q*|."""
    limit: float
    """The error of its exact limit."""


def q_learning(
    rng: np.random.Generator, mdp: GCMDP, R: Floats, classes: Integers, sweeps: int, name: str
) -> LearningCurve:
    """Run tabular Q-learning on class numbers with sampled transitions, each (s, a) once per sweep, step size n^-0.6.

    `R` is the reward of arriving in each state, [s'].
    """
    optimal = optimal_q(mdp.P, mdp.P @ R, mdp.gamma)
    scale = np.abs(optimal).max()
    cumulative = mdp.P.cumsum(axis=2)
    members = np.eye(int(classes.max()) + 1)[classes]
    members /= members.sum(axis=0)
    Q = np.zeros((members.shape[1], mdp.actions))
    marks = np.unique(np.geomspace(1, sweeps, 40).astype(int))
    errors = []
    for sweep in range(1, sweeps + 1):
        draw = rng.random((mdp.states, mdp.actions, 1))
        after = np.minimum((cumulative < draw).sum(axis=2), mdp.states - 1)
        target = R[after] + mdp.gamma * Q.max(axis=1)[classes][after]
        Q += sweep**-0.6 * (members.T @ target - Q)
        if sweep in marks:
            errors.append(float(np.abs(Q[classes] - optimal).max() / scale))
    limit = limit_error(mdp, mdp.P @ R, classes) / scale
    updates = marks * mdp.states * mdp.actions
    return LearningCurve(name, len(Q), updates, np.asarray(errors), float(limit))


def learning_curves(rng: np.random.Generator, sweeps: int) -> list[LearningCurve]:
    """A slippery 3 × 3 grid whose colour is redrawn at every step; a random reward on the 18 coloured cells."""
    mdp = grid_world(open_plan(3, 3), gamma=0.8, slip=0.2, colours=2, colour_change=1.0)
    R, classes = rng.normal(size=mdp.states), psi_classes(mdp)
    every_state = np.arange(mdp.states)
    abstractions = {
        "every state": every_state,
        "ψ, Definition 4.1": classes,
        "coarser: two cells merged": merge(classes, 0, 1),
    }
    return [q_learning(rng, mdp, R, part, sweeps, name) for name, part in abstractions.items()]


def check_learning(curves: list[LearningCurve], tolerance: float) -> Verdict:
    """Sampled Q-learning on ψ comes within `tolerance` of Q*."""
    claim = f"sampled Q-learning on ψ of Def. 4.1 comes within {tolerance:.0%} of Q*"
    tally = Tally(SOURCE, claim, tolerance=tolerance)
    psi = next(curve for curve in curves if curve.name.startswith("ψ, Def"))
    coarser = next(curve for curve in curves if curve.name.startswith("coarser"))
    tally.add(float(psi.error[-1]))
    note = f"{psi.updates[-1]:,} transitions; with two more classes merged it stops at {coarser.limit:.0%}"
    return tally.verdict(note)
