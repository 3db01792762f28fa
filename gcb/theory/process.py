"""The super-MDP over tasks (s, g) of the paper's appendix, and bisimulation relations on it (Definition 4.1)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gcb.errors import GCBError
from gcb.theory.gcmdp import GCMDP, Floats, Integers, check_policy


@dataclass(frozen=True, eq=False)
class TaskProcess:
    """The outcome of one step from each task: M rows of reward and successors for each of N tasks.

    On-policy M = 1, the policy's own step; with all actions M = A. Successor lists are padded to the longest
    support with weight 0.

    ```
    rewards    [m, i]      expected reward of the step
    successors [m, i, b]   task numbers that may follow
    weights    [m, i, b]   their probabilities
    policy     [i, a]      action probabilities of the task, or None when all actions are meant
    ```
    """

    rewards: Floats
    successors: Integers
    weights: Floats
    policy: Floats | None = None

    @property
    def tasks(self) -> int:
        return self.rewards.shape[1]

    @property
    def deterministic(self) -> bool:
        return self.successors.shape[2] == 1

    def chain(self) -> Floats:
        """The transition matrix between tasks, [i, j], of an on-policy process."""
        matrix = np.zeros((self.tasks, self.tasks))
        rows = np.broadcast_to(np.arange(self.tasks)[:, None], self.successors[0].shape)
        np.add.at(matrix, (rows, self.successors[0]), self.weights[0])
        return matrix


def _supports(rows: Floats) -> tuple[Integers, Floats]:
    """The non-zero entries of each row, [..., n] → indices and weights [..., widest support]."""
    widest = int((rows > 0).sum(axis=-1).max())
    order = np.argsort(rows <= 0, axis=-1, kind="stable")[..., :widest]
    return order.astype(np.int64), np.take_along_axis(rows, order, axis=-1)


def _carry_goal(mdp: GCMDP, states: Integers) -> Integers:
    """Successor states of [m, s, k, b] → successor tasks [m, i, b]."""
    goals = np.arange(len(mdp.goals))[None, None, :, None]
    return (states * len(mdp.goals) + goals).reshape(len(states), mdp.tasks, -1)


def on_policy(mdp: GCMDP, policy: ArrayLike) -> TaskProcess:
    """Each task moves as π(s, g) moves it: the process of Eq. (gcbm) and Proposition 1."""
    checked = check_policy(mdp, policy)
    rewards = np.einsum("ska,sak->sk", checked, mdp.R)
    states, weights = _supports(np.einsum("ska,sax->skx", checked, mdp.P))
    return TaskProcess(
        rewards.reshape(1, -1),
        _carry_goal(mdp, states[None]),
        weights.reshape(1, mdp.tasks, -1),
        checked.reshape(mdp.tasks, -1),
    )


def all_actions(mdp: GCMDP) -> TaskProcess:
    """Each task under each action: the process of Definition 4.1."""
    rewards = np.moveaxis(mdp.R, 1, 0).reshape(mdp.actions, -1)
    states, weights = _supports(np.moveaxis(mdp.P, 1, 0))
    shape = (mdp.actions, mdp.states, len(mdp.goals), states.shape[-1])
    expanded = np.broadcast_to(states[:, :, None], shape)
    expanded_weights = np.broadcast_to(weights[:, :, None], shape)
    return TaskProcess(rewards, _carry_goal(mdp, expanded), expanded_weights.reshape(mdp.actions, mdp.tasks, -1))


def quotient(process: TaskProcess, classes: Integers) -> TaskProcess:
    """One task for each class of a bisimulation relation; `d[classes][:, classes]` then is the metric of all tasks.

    Exact: related tasks are at distance 0, so transport between classes costs what transport between tasks costs.
    """
    _, members = np.unique(classes, return_index=True)
    policy = None if process.policy is None else process.policy[members]
    successors = classes[process.successors[:, members]]
    return TaskProcess(process.rewards[:, members], successors, process.weights[:, members], policy)


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

    With `all_actions(mdp)` this is Definition 4.1, read with G a group of state-goal pairs and the goal carried
    along (the printed P(G|s, a) names a group of states, over which the relation is not defined). With
    `on_policy(mdp, policy)` it is its on-policy form; `with_policy` then also asks for equal action probabilities,
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


def state_classes(mdp: GCMDP, classes: Integers) -> Integers:
    """The abstraction of states that Eq. (analogy) leaves to ψ: s ~ t when (s, g) ~ (t, g) for every goal, [s]."""
    return _number(classes.reshape(mdp.states, len(mdp.goals)))
