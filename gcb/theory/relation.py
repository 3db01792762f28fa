"""Goal-conditioned bisimulation relations (Definition 4.1) by partition refinement over tasks."""

import numpy as np
from numpy.typing import NDArray

from gcb.errors import GCBError
from gcb.theory.gcmdp import GCMDP, Floats, Integers
from gcb.theory.process import TaskProcess

DECIMALS = 9  # probabilities that agree this far are taken to be equal


def _number(rows: NDArray[np.generic]) -> Integers:
    """Give equal rows the same number."""
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _merged(classes: Integers, weights: Floats) -> Floats:
    """P(class | task) in a canonical form: [i, b] classes and weights → [i, 2b] rows that compare by equality."""
    order = np.argsort(classes, axis=1, kind="stable")
    classes = np.take_along_axis(classes, order, axis=1)
    weights = np.take_along_axis(weights, order, axis=1)
    for b in range(1, classes.shape[1]):
        same = classes[:, b] == classes[:, b - 1]
        weights[:, b] += np.where(same, weights[:, b - 1], 0.0)
        weights[:, b - 1] = np.where(same, 0.0, weights[:, b - 1])
    weights = np.round(weights, DECIMALS)
    classes = np.where(weights > 0, classes, -1)
    order = np.argsort(classes, axis=1, kind="stable")
    classes, weights = np.take_along_axis(classes, order, axis=1), np.take_along_axis(weights, order, axis=1)
    return np.concatenate([classes.astype(np.float64), weights], axis=1)


def bisimulation_classes(process: TaskProcess, *, with_policy: bool = False) -> Integers:
    """The coarsest goal-conditioned bisimulation relation, as a class number for each task, [i].

    With `all_actions(world)` this is Definition 4.1, read with G a group of state-goal pairs and the goal carried
    along (the printed P(G|s, a) names a group of states, over which the relation is not defined). With
    `on_policy(world, policy)` it is its on-policy form; `with_policy` then also asks for equal action probabilities,
    as the metric with `action_weight` does.
    """
    seen = process.rewards.T
    if with_policy:
        if process.policy is None:
            raise GCBError("with_policy compares policies; this process takes all actions and has none.")
        seen = np.concatenate([seen, process.policy], axis=1)
    classes = _number(np.round(seen, DECIMALS))
    while True:
        parts: list[NDArray[np.generic]] = [classes[:, None]]
        for successors, weights in zip(process.successors, process.weights, strict=True):
            follow = classes[successors]
            parts.append(follow if process.deterministic else _merged(follow, weights))
        refined = _number(np.concatenate(parts, axis=1))
        if refined.max() == classes.max():
            return classes
        classes = refined


def state_classes(world: GCMDP, classes: Integers) -> Integers:
    """The abstraction of states that Eq. (analogy) leaves to ψ: s ~ t when (s, g) ~ (t, g) for every goal, [s]."""
    return _number(classes.reshape(world.states, len(world.goals)))
