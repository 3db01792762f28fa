"""The super-MDP of the paper's proofs (appendix): its states are the tasks (s, g), and the goal is carried along."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gcb.theory.gcmdp import GCMDP, Floats, Integers
from gcb.theory.policies import check_policy


@dataclass(frozen=True, eq=False)
class TaskProcess:
    """What one step does to each task: M reward-and-successor rows for each of N tasks.

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


def _carry_goal(world: GCMDP, states: Integers) -> Integers:
    """Successor states of [m, s, k, b] → successor tasks [m, i, b]."""
    goals = np.arange(len(world.goals))[None, None, :, None]
    return (states * len(world.goals) + goals).reshape(len(states), world.tasks, -1)


def on_policy(world: GCMDP, policy: ArrayLike) -> TaskProcess:
    """Each task moves as π(s, g) moves it: the process of Eq. (gcbm) and Proposition 1."""
    checked = check_policy(world, policy)
    rewards = np.einsum("ska,sak->sk", checked, world.R)
    states, weights = _supports(np.einsum("ska,sax->skx", checked, world.P))
    return TaskProcess(
        rewards.reshape(1, -1),
        _carry_goal(world, states[None]),
        weights.reshape(1, world.tasks, -1),
        checked.reshape(world.tasks, -1),
    )


def all_actions(world: GCMDP) -> TaskProcess:
    """Each task under each action: the process of Definition 4.1."""
    rewards = np.moveaxis(world.R, 1, 0).reshape(world.actions, -1)
    states, weights = _supports(np.moveaxis(world.P, 1, 0))
    shape = (world.actions, world.states, len(world.goals), states.shape[-1])
    spread = np.broadcast_to(states[:, :, None], shape)
    spread_weights = np.broadcast_to(weights[:, :, None], shape)
    return TaskProcess(rewards, _carry_goal(world, spread), spread_weights.reshape(world.actions, world.tasks, -1))


def quotient(process: TaskProcess, classes: Integers) -> TaskProcess:
    """One task for each class of a bisimulation relation; `d[classes][:, classes]` then is the metric of all tasks.

    Exact: related tasks are at distance 0, so transport between classes costs what transport between tasks costs.
    """
    _, members = np.unique(classes, return_index=True)
    policy = None if process.policy is None else process.policy[members]
    successors = classes[process.successors[:, members]]
    return TaskProcess(process.rewards[:, members], successors, process.weights[:, members], policy)
