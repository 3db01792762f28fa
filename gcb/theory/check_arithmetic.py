"""Can ψ's arithmetic, Eq. (analogy) and Eq. (psi_obj), be true of an exact φ?

With R = 1(s' = g) a task one step before its goal earns the same rewards as a task at its goal where one can wait:
1, 1, 1, … So φ(s, g) = φ(g, g) for neighbours, hence ψ(s) = ψ(g) for neighbours, hence ψ is one point in a connected
MDP, and the arithmetic says φ(s, g) = φ(g, g) for all s. But two steps from the goal the distance is positive.
"""

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from gcb.errors import GCBError
from gcb.theory.builders import drawer_button_mdp, grid_world, open_plan
from gcb.theory.gcmdp import GCMDP, Floats, Integers, evaluate, optimal_policy
from gcb.theory.metric import metric, reward_weight
from gcb.theory.process import TaskProcess, on_policy
from gcb.theory.verdicts import Tally, Verdict

ORDER_STRIDE = 7  # every seventh of the 120 orders of five actions


def unrolled_phi(
    process: TaskProcess, c: float, *, scaled: bool, action_weight: float = 0.0, tolerance: float = 1e-6
) -> Floats:
    """An exact φ of a deterministic on-policy MDP: ||φ_i - φ_j||₁ = d(i, j), up to `tolerance`.

    The entries of task i are the discounted future of its policy: c^t r_t and, with `action_weight`, half of c^t times
    the action probabilities, for t = 0, 1, 2, …
    """
    if not process.deterministic or process.policy is None:
        raise GCBError("An unrolled φ needs a deterministic MDP and a policy: one future for each task.")
    seen = np.concatenate([process.rewards[0][:, None], action_weight / 2 * process.policy], axis=1)
    steps = int(np.ceil(np.log(tolerance * (1 - c)) / np.log(c)))
    task, parts = np.arange(process.tasks), []
    for step in range(steps):
        parts.append(reward_weight(c, scaled) * c**step * seen[task])
        task = process.successors[0, :, 0][task]
    phi = np.concatenate(parts, axis=1)
    return phi[:, phi.std(axis=0) > 0]


def grounded(mdp: GCMDP, phi: Floats) -> Floats:
    """φ(s, g) - φ(g, g) as [s, k, dimension]."""
    table = phi.reshape(mdp.states, len(mdp.goals), -1)
    return table - table[mdp.goals, np.arange(len(mdp.goals))][None]


def _design(mdp: GCMDP) -> Floats:
    """The matrix that takes ψ [s] to ψ(g) - ψ(s) for every task, [i, s]."""
    eye = np.eye(mdp.states)
    return np.tile(eye[mdp.goals], (mdp.states, 1)) - np.repeat(eye, len(mdp.goals), axis=0)


def best_psi(mdp: GCMDP, phi: Floats, tasks: NDArray[np.bool_] | None = None) -> tuple[Floats, float]:
    """The ψ [s, dimension] that minimises L_ψ, Eq. (psi_obj), over the tasks, and the share it leaves unexplained.

    The share is Σ||φ(s,g) - φ(g,g) - (ψ(g) - ψ(s))||² / Σ||φ(s,g) - φ(g,g)||²: 0 is perfect, 1 is a constant ψ.
    """
    chosen = np.ones(mdp.tasks, dtype=bool) if tasks is None else tasks
    target, design = grounded(mdp, phi).reshape(mdp.tasks, -1)[chosen], _design(mdp)[chosen]
    psi = np.asarray(np.linalg.lstsq(design, target, rcond=None)[0], dtype=np.float64)
    total = float((target**2).sum())
    return psi, float(((target - design @ psi) ** 2).sum()) / total if total else 0.0


def analogy_accuracy(mdp: GCMDP, phi: Floats, psi: Floats, cells: Integers) -> float:
    """How often ψ(s) + φ(s_a, g_a) - φ(g_a, g_a) lies nearest to the ψ of the cell displaced as g_a is from s_a.

    For grids with G = S and cell coordinates [s, 2]. Where several states are nearest, chance among them counts.
    """
    offsets, right, asked = grounded(mdp, phi), 0.0, 0
    displaced = cells[:, None, None] + cells[None, None] - cells[None, :, None]
    for example, goal in np.ndindex(mdp.states, mdp.states):
        distance = ((psi[:, None] + offsets[example, goal] - psi[None]) ** 2).sum(axis=-1)
        nearest = distance <= distance.min(axis=1, keepdims=True) + 1e-9
        wanted = (displaced[:, example, goal][:, None] == cells[None]).all(axis=-1)
        inside = wanted.any(axis=1)
        right += float(((nearest & wanted).sum(axis=1) / nearest.sum(axis=1))[inside].sum())
        asked += int(inside.sum())
    return right / asked


@dataclass(frozen=True)
class Arithmetic:
    """How far ψ's arithmetic goes with an exact φ, for one weight of the actions in the metric."""

    mdp: str
    action_weight: float
    unexplained: float
    """The fraction of φ(s, g) - φ(g, g) that the best ψ leaves unexplained."""
    accuracy: float | None
    """How often the nearest neighbour is the analogous goal; None where displacement has no meaning."""
    accuracy_range: tuple[float, float] | None
    """Its minimum and maximum over the orders in which π* breaks ties; `accuracy` and `unexplained` are medians."""
    chance: float


def _tie_orders(mdp: GCMDP) -> list[GCMDP]:
    """Return the MDP with its actions in other orders: π* takes the first of equally good actions."""
    orders = list(permutations(range(mdp.actions)))[::ORDER_STRIDE]
    return [GCMDP(mdp.P[:, order], mdp.goals, mdp.gamma, mdp.achieved) for order in orders]


def _measure(mdp: GCMDP, c: float, weight: float, cells: Integers | None) -> tuple[float, float | None]:
    """What the best ψ leaves unexplained, and how often it points at the analogous goal."""
    policy = optimal_policy(mdp)
    phi = unrolled_phi(on_policy(mdp, policy), c, scaled=True, action_weight=weight)
    psi, unexplained = best_psi(mdp, phi, evaluate(mdp, policy).reshape(-1) > 1e-9)
    return unexplained, None if cells is None else analogy_accuracy(mdp, phi, psi, cells)


def arithmetic_table(c: float = 0.9) -> list[Arithmetic]:
    """The best ψ in deterministic MDPs, π* for every goal, over the tasks that π* achieves."""
    plans = {"corridor of 3": (1, 3), "corridor of 7": (1, 7), "4 × 4 grid": (4, 4)}
    mdps = {name: grid_world(open_plan(*size)) for name, size in plans.items()}
    mdps["5 × 5 with walls"] = grid_world((".....", ".###.", "...#.", ".#...", "....."))
    mdps["drawer and button"] = drawer_button_mdp()
    rows = []
    for name, mdp in mdps.items():
        cells = np.argwhere(np.ones(plans[name])) if name in plans else None
        variants = _tie_orders(mdp) if cells is not None else [mdp]
        for weight in (0.0, 1.0, 10.0):
            found = [_measure(variant, c, weight, cells) for variant in variants]
            unexplained = float(np.median([share for share, _ in found]))
            hits = [hit for _, hit in found if hit is not None]
            accuracy = float(np.median(hits)) if hits else None
            span = (min(hits), max(hits)) if hits else None
            rows.append(Arithmetic(name, weight, unexplained, accuracy, span, 1 / mdp.states))
    return rows


def check_arithmetic(rows: list[Arithmetic]) -> list[Verdict]:
    """Eq. (psi_obj) for an exact φ: without actions almost nothing is explained, with them something is."""
    exact = Tally("Eq. (analogy)", "some ψ fits an exact φ of d, reward only", expected=False, tolerance=1e-6)
    acting = Tally("Eq. (analogy)", "some ψ fits an exact φ of d with actions", expected=False, tolerance=1e-6)
    better = Tally("Eq. (psi_obj)", "with actions in the metric ψ explains more of φ")
    alone = {row.mdp: row.unexplained for row in rows if not row.action_weight}
    for row in rows:
        (acting if row.action_weight else exact).add(row.unexplained)
        if row.action_weight:
            better.add(row.unexplained - alone[row.mdp])
    shares = [row.unexplained for row in rows if row.action_weight]
    return [
        exact.verdict("largest violation = share unexplained; 1 = the best ψ is a single point"),
        acting.verdict(f"{min(shares):.0%} to {max(shares):.0%} stays unexplained"),
        better.verdict(),
    ]


def check_goal_point() -> list[Verdict]:
    """The footnote to Eq. (psi_obj): is φ(g, g) one point for all goals?"""
    where = "Eq. (psi_obj), footnote"
    can_wait = Tally(where, "φ(g, g) is one point for all goals, where one can wait at a goal")
    slippery = Tally(where, "the same where holding a goal is a matter of luck", expected=False)
    for tally, mdp in (
        (can_wait, grid_world(open_plan(3, 4))),
        (can_wait, grid_world(open_plan(2, 3), slip=0.2)),
        (can_wait, drawer_button_mdp()),
        (slippery, _without_waiting(grid_world(open_plan(2, 3), slip=0.2))),
    ):
        d = metric(on_policy(mdp, optimal_policy(mdp)), mdp.gamma, scaled=True)
        points = [mdp.task(int(goal), k) for k, goal in enumerate(mdp.goals)]
        tally.add(float(d[np.ix_(points, points)].max()))
    return [can_wait.verdict(), slippery.verdict("walls help to hold some goals and not others")]


def _without_waiting(mdp: GCMDP) -> GCMDP:
    return GCMDP(mdp.P[:, 1:], mdp.goals, mdp.gamma)
