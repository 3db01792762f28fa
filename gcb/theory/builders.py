"""Small MDPs: grids, random MDPs, a toy drawer-and-button table, and random instances for the checks."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from scipy.sparse.csgraph import floyd_warshall

from gcb.errors import GCBError
from gcb.theory.gcmdp import GCMDP, Floats, Integers, optimal_policy, random_policy, uniform_policy

# "stay" is first: ties between actions go to the first one
MOVES = {"stay": (0, 0), "up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}
SIDEWAYS = {"up": ("left", "right"), "down": ("left", "right"), "left": ("up", "down"), "right": ("up", "down")}


def _cells(plan: Sequence[str]) -> list[tuple[int, int]]:
    if not plan or any(len(row) != len(plan[0]) for row in plan) or set("".join(plan)) - set(".#"):
        raise GCBError(f"the plan is {list(plan)}; accepted: rows of equal length of '.' (free) and '#' (wall).")
    cells = [(y, x) for y, row in enumerate(plan) for x, mark in enumerate(row) if mark == "."]
    if not cells:
        raise GCBError(f"the plan {list(plan)} has no free cell.")
    return cells


def _grid_transitions(cells: list[tuple[int, int]], slip: float) -> Floats:
    """Return P: a move goes sideways with probability `slip`, walls and edges stop it, and staying never slips."""
    index = {cell: number for number, cell in enumerate(cells)}
    P = np.zeros((len(cells), len(MOVES), len(cells)))
    for (state, (y, x)), (action, name) in product(enumerate(cells), enumerate(MOVES)):
        outcomes = [(name, 1.0)] if name == "stay" else [(name, 1.0 - slip)]
        outcomes += [(side, slip / 2) for side in SIDEWAYS.get(name, ())]
        for move, probability in outcomes:
            dy, dx = MOVES[move]
            P[state, action, index.get((y + dy, x + dx), state)] += probability
    return P


def grid_world(
    plan: Sequence[str],
    *,
    gamma: float = 0.9,
    slip: float = 0.0,
    colours: int = 1,
    colour_change: float = 0.0,
    colour_matters: bool = True,
    goals: Sequence[int] | None = None,
) -> GCMDP:
    """Return a grid drawn as rows of '.' and '#', in which every state also has one of `colours` colours.

    State number = cell * colours + colour. The colour has no effect on moves: it is kept for the whole episode, or
    redrawn at each step with probability `colour_change`. With `colour_matters=False` the right cell in any colour
    counts as the goal; otherwise the goal is s' = g as in the paper, colour included.
    """
    if not 0.0 <= slip <= 1.0 or not 0.0 <= colour_change <= 1.0 or colours < 1:
        given = f"slip is {slip}, colour_change {colour_change}, colours {colours}"
        raise GCBError(f"{given}; accepted: two probabilities and a count.")
    cells = _cells(plan)
    keep = (1.0 - colour_change) * np.eye(colours) + colour_change / colours
    moves = _grid_transitions(cells, slip)
    states = len(cells) * colours
    P = np.einsum("xay,cd->xcayd", moves, keep).reshape(states, len(MOVES), states)
    wanted = np.arange(states) if goals is None else np.asarray(goals)
    mdp = GCMDP(P, wanted, gamma, None, [f"{cell}/{c}" for cell in cells for c in range(colours)], list(MOVES))
    if colour_matters:
        return mdp
    same_cell = (np.arange(states)[:, None] // colours == mdp.goals[None] // colours).astype(np.float64)
    return GCMDP(P, mdp.goals, gamma, same_cell, mdp.state_names, mdp.action_names)


def open_plan(height: int, width: int) -> tuple[str, ...]:
    """Return a plan without walls."""
    return ("." * width,) * height


def random_mdp(
    rng: np.random.Generator,
    *,
    states: int,
    actions: int = 2,
    goals: int | None = None,
    support: int = 2,
    twins: int = 0,
    gamma: float = 0.9,
) -> GCMDP:
    """Return an MDP with random dynamics and at most `support` successors; `support=1` is deterministic.

    Probabilities are multiples of 1/4, so that rows can be equal. The last `twins` states copy the dynamics of the
    first ones: they differ in name only, and a good abstraction merges them. The goals are `goals` random states; by
    default G = S.
    """
    if not 1 <= support <= 4 or not 0 <= twins <= states // 2:
        raise GCBError(f"support is {support} and twins {twins}; accepted: 1 to 4, and up to half of {states} states.")
    P = np.zeros((states, actions, states))
    shares = np.bincount(np.arange(4) % support) / 4
    for state, action in product(range(states - twins), range(actions)):
        np.add.at(P[state, action], rng.integers(states, size=support), shares)
    if twins:
        P[-twins:] = P[:twins]
    chosen: Integers = np.arange(states) if goals is None else rng.choice(states, size=goals, replace=False)
    return GCMDP(P, chosen, gamma)


def stay_or_switch_mdp(gamma: float = 0.9) -> GCMDP:
    """Two states, "stay" and "switch": either goal is one step from either state, by different actions."""
    P = np.stack([np.eye(2), np.eye(2)[::-1]], axis=1)
    return GCMDP(P, np.arange(2), gamma, action_names=("stay", "switch"))


PLACES = ("left", "middle", "right")
TABLE_ACTIONS = ("wait", "left", "right", "pull", "push")  # "wait" is first: ties go to the first action


def drawer_button_mdp(gamma: float = 0.9) -> GCMDP:
    """A toy of the paper's Button and Drawer table: deterministic, 48 states, every state a goal.

    The gripper is left, in the middle or right. In layout 0 the top drawer is on the left and the button on the
    right; layout 1 is its mirror image. At the drawer, pull opens and push closes; at the button, push toggles the
    bottom drawer. Layout and colour last for the whole episode. A goal is achieved when both drawers are as it
    shows and the scene is the same, wherever the gripper is, as in the paper's environments.
    """
    features = list(product(range(2), range(2), range(3), range(2), range(2)))
    index: dict[tuple[int, ...], int] = {feature: number for number, feature in enumerate(features)}
    P = np.zeros((len(features), len(TABLE_ACTIONS), len(features)))
    for (layout, colour, place, top, bottom), name in product(features, TABLE_ACTIONS):
        drawer_at, button_at = (0, 2) if layout == 0 else (2, 0)
        after = [layout, colour, place, top, bottom]
        if name in ("left", "right"):
            after[2] = min(max(place + (1 if name == "right" else -1), 0), 2)
        elif name in ("pull", "push") and place == drawer_at:
            after[3] = int(name == "pull")
        elif name == "push" and place == button_at:
            after[4] = 1 - bottom
        before = index[layout, colour, place, top, bottom]
        P[before, TABLE_ACTIONS.index(name), index[tuple(after)]] = 1.0
    rows = np.asarray(features)
    achieved = (rows[:, None, [0, 1, 3, 4]] == rows[None, :, [0, 1, 3, 4]]).all(axis=-1).astype(np.float64)
    names = [f"layout{a}/colour{b}/{PLACES[c]}/top{d}/bottom{e}" for a, b, c, d, e in features]
    return GCMDP(P, np.arange(len(features)), gamma, achieved, names, TABLE_ACTIONS)


def _random_mdp(rng: np.random.Generator, every_state_a_goal: bool) -> GCMDP:
    gamma = float(rng.choice([0.5, 0.8, 0.9]))
    if rng.random() < 0.25:
        plan = open_plan(*((1, 4), (2, 2), (1, 3))[rng.integers(3)])
        slip = float(rng.choice([0.0, 0.2]))
        chosen = None if every_state_a_goal else [0, 2]
        return grid_world(plan, gamma=gamma, slip=slip, goals=chosen)
    states = int(rng.integers(2, 6))
    return random_mdp(
        rng,
        states=states,
        actions=int(rng.integers(2, 4)),
        goals=None if every_state_a_goal else int(rng.integers(1, min(states, 3) + 1)),
        support=int(rng.integers(1, 4)),
        twins=int(rng.integers(0, states // 2 + 1)),
        gamma=gamma,
    )


def _policy(rng: np.random.Generator, mdp: GCMDP) -> Floats:
    kind = rng.integers(4)
    if kind == 0:
        return random_policy(mdp, rng)
    if kind == 1:
        return uniform_policy(mdp)
    return optimal_policy(mdp, ties="first" if kind == 2 else "uniform")


def mdps_and_policies(
    rng: np.random.Generator, count: int, *, every_state_a_goal: bool = False
) -> Iterator[tuple[GCMDP, Floats]]:
    """`count` random MDPs (at most 25 tasks), deterministic and not, each with a policy π[s, g, a]."""
    for _ in range(count):
        mdp = _random_mdp(rng, every_state_a_goal)
        yield mdp, _policy(rng, mdp)


def random_pseudometric(rng: np.random.Generator, size: int) -> Floats:
    """Return shortest paths over random weights; some pairs are at distance 0, others a hundred times farther apart."""
    weights = rng.exponential(size=(size, size)) * 10.0 ** rng.uniform(-1, 1)
    weights = np.triu(weights, 1)
    paths = floyd_warshall(weights + weights.T, directed=False)
    merged = rng.integers(max(1, size - size // 4), size=size)
    return np.asarray(paths, dtype=np.float64)[np.ix_(merged, merged)]
