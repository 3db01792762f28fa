"""The goal-conditioned bisimulation metric: the operator F of Proposition 1 and its fixed point.

The Wasserstein distances are solved by POT's network simplex (`ot.emd`). F is applied many times with the same
marginals and slightly different costs, so a plan is kept until some cycle of re-routing becomes cheaper. This is
checked for all problems at once, and only those that fail are solved again.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gcb.errors import GCBError
from gcb.theory.gcmdp import Floats, check_unit_interval
from gcb.theory.process import TaskProcess, bisimulation_classes, quotient

ROUNDING = 1e-12  # smaller savings of a cycle are rounding errors
NO_MASS = 1e-14  # smaller entries of a plan are rounding errors of the solver


def _solver():
    try:
        import ot
    except ImportError as error:
        raise GCBError("Optimal transport needs the package POT: pip install 'gcb[theory]'.") from error
    return ot.emd


def cheapest_cycle(plans: Floats, costs: Floats) -> Floats:
    """0 where a plan is optimal, below 0 where some cycle of re-routing is cheaper (not by how much), [n].

    Moving a unit from row a' to row a costs min over the columns b that a' serves of C[a, b] - C[a', b]. A plan is
    optimal when no cycle of such moves has negative cost (cyclical monotonicity); Floyd and Warshall find it.
    """
    served = np.where(plans > 0, 0.0, np.inf)
    rows = costs.shape[1]
    moves = np.empty((len(costs), rows, rows))
    for giver in range(rows):
        moves[:, :, giver] = (costs - costs[:, giver : giver + 1] + served[:, giver : giver + 1]).min(axis=2)
    for middle in range(rows):
        np.minimum(moves, moves[:, :, middle : middle + 1] + moves[:, middle : middle + 1, :], out=moves)
    return np.diagonal(moves, axis1=1, axis2=2).min(axis=1)


class Transport:
    """n transport problems between marginals mu [n, b] and nu [n, b], padded with zero weights."""

    def __init__(self, mu: Floats, nu: Floats):
        self.mu, self.nu = mu, nu
        self.plans = mu[:, :, None] * nu[:, None, :]
        """The current plan of each problem, [n, b, b]; at first the independent coupling."""
        self.open = ((mu > 0).sum(axis=1) > 1) & ((nu > 0).sum(axis=1) > 1)
        """Problems with more than one plan: from or to a point mass there is only the independent coupling."""
        self.solved = 0
        """Number of problems solved so far."""

    def __call__(self, costs: Floats) -> Floats:
        """The Wasserstein distances [n] for costs [n, b, b]; `plans` then holds optimal plans."""
        choices = np.flatnonzero(self.open)
        if choices.size:
            stale = choices[cheapest_cycle(self.plans[choices], costs[choices]) < -ROUNDING]
            self._solve(stale, costs)
        return np.einsum("nab,nab->n", self.plans, costs)

    def _solve(self, problems: np.ndarray, costs: Floats) -> None:
        if not len(problems):
            return
        emd = _solver()
        for n in problems:
            rows, columns = np.flatnonzero(self.mu[n]), np.flatnonzero(self.nu[n])
            block = np.ascontiguousarray(costs[n][np.ix_(rows, columns)])
            plan = emd(self.mu[n][rows], self.nu[n][columns], block, center_dual=False, check_marginals=False)
            self.plans[n] = 0.0
            self.plans[n][np.ix_(rows, columns)] = np.where(plan > NO_MASS, plan, 0.0)
        self.solved += len(problems)


def wasserstein(mu: Floats, nu: Floats, cost: Floats) -> float:
    """W(d)(mu, nu) for one pair of distributions [b] and one cost matrix [b, b]."""
    return float(Transport(np.asarray(mu)[None], np.asarray(nu)[None])(np.asarray(cost)[None])[0])


ITERATION_LIMIT = 100_000


def reward_weight(c: float, scaled: bool) -> float:
    """(1 - c) as Proposition 1 has it, or 1 as Eq. (gcbm) has it."""
    return 1.0 - c if scaled else 1.0


@dataclass(frozen=True)
class Metric:
    """A fixed point of F, with a bound of its error and the number of iterations."""

    distances: NDArray[np.floating]
    """d(s_i, g_i; s_j, g_j) as [i, j]."""
    error_bound: float
    """No entry is further than this from the true fixed point: ||F(d) - d|| / (1 - c)."""
    iterations: int


class Operator:
    """F(d)(i, j) = weight · |R_i - R_j| + c · W(d)(P_i, P_j), Proposition 1, for one process and one c.

    With all actions it is the largest of these values over the actions, as in bisimulation metrics without a policy.
    `order=2` takes the 2-Wasserstein distance that Eq. (gcbm) writes. `action_weight` adds action_weight times the
    total-variation distance of the two policies' actions, as policy-similarity metrics do; it is scaled like
    the reward.
    """

    def __init__(
        self, process: TaskProcess, c: float, *, scaled: bool, order: int = 1, action_weight: float = 0.0
    ) -> None:
        self.process, self.c, self.order = process, check_unit_interval("c", c), order
        if order not in (1, 2):
            raise GCBError(f"order is {order}; accepted: 1 or 2, for the 1- or the 2-Wasserstein distance.")
        self.first, self.second = np.triu_indices(process.tasks, 1)
        base = np.abs(process.rewards[:, self.first] - process.rewards[:, self.second])
        if action_weight:
            if process.policy is None:
                raise GCBError("action_weight compares policies; this process takes all actions and has none.")
            gap = np.abs(process.policy[self.first] - process.policy[self.second]).sum(axis=1) / 2
            base = base + action_weight * gap
        self.base = reward_weight(c, scaled) * base
        self.transports = [Transport(weights[self.first], weights[self.second]) for weights in process.weights]

    def __call__(self, distances: Floats) -> Floats:
        """F(d) for a symmetric d [i, j] with a zero diagonal."""
        branches = []
        powered = distances**self.order if self.order > 1 else distances
        for base, successors, transport in zip(self.base, self.process.successors, self.transports, strict=True):
            costs = powered[successors[self.first][:, :, None], successors[self.second][:, None, :]]
            branches.append(base + self.c * transport(costs) ** (1.0 / self.order))
        return self._square(np.max(branches, axis=0))

    def _square(self, values: Floats) -> Floats:
        distances = np.zeros((self.process.tasks, self.process.tasks))
        distances[self.first, self.second] = values
        distances[self.second, self.first] = values
        return distances

    def fixed_point_of_plans(self, tolerance: float) -> Floats:
        """Return the fixed point of F with the current transport plans held fixed (order 1 only)."""
        number = np.full((self.process.tasks,) * 2, -1)
        number[self.first, self.second] = number[self.second, self.first] = np.arange(len(self.first))
        matrices = []
        for successors, transport in zip(self.process.successors, self.transports, strict=True):
            problem, row, column = np.nonzero(transport.plans)
            entry = number[successors[self.first[problem], row], successors[self.second[problem], column]]
            away = entry >= 0
            values = transport.plans[problem, row, column][away]
            shape = (len(self.first), len(self.first))
            matrices.append(sparse.csr_matrix((values, (problem[away], entry[away])), shape=shape))
        values = np.zeros(len(self.first))
        while True:
            branches = [base + self.c * (matrix @ values) for base, matrix in zip(self.base, matrices, strict=True)]
            updated = np.max(branches, axis=0)
            change = float(np.abs(updated - values).max(initial=0.0))
            values = updated
            if change * self.c <= tolerance * (1.0 - self.c):
                return self._square(values)


def iterate(operator: Operator, *, start: Floats | None = None, tolerance: float = 1e-9) -> Metric:
    """Apply F until no entry can be further than `tolerance` from the fixed point (Proposition 1's own procedure)."""
    tasks = operator.process.tasks
    distances = np.zeros((tasks, tasks)) if start is None else np.asarray(start, dtype=np.float64)
    if distances.shape != (tasks, tasks):
        raise GCBError(f"the start has shape {distances.shape}; accepted: {(tasks, tasks)}.")
    for iteration in range(1, ITERATION_LIMIT + 1):
        updated = operator(distances)
        change = float(np.abs(updated - distances).max())
        distances = updated
        bound = change * operator.c / (1.0 - operator.c)
        if bound <= tolerance:
            return Metric(distances, bound, iteration)
    raise GCBError(f"No fixed point within {ITERATION_LIMIT} iterations; tolerance {tolerance:g} is below rounding.")


def improve_plans(operator: Operator, *, tolerance: float = 1e-9) -> Metric:
    """The same fixed point in a few rounds: policy iteration over transport plans.

    Each round solves the linear fixed point for the current plans, then F chooses better plans. The distances can only
    decrease, and there are finitely many plans; the result is accepted by the residual of F.
    """
    if operator.order != 1:
        raise GCBError("Policy iteration over plans needs order 1; use iterate() for the 2-Wasserstein distance.")
    for iteration in range(1, ITERATION_LIMIT + 1):
        distances = operator.fixed_point_of_plans(tolerance / 4)
        bound = float(np.abs(operator(distances) - distances).max()) / (1.0 - operator.c)
        if bound <= tolerance:
            return Metric(distances, bound, iteration)
    raise GCBError(f"No fixed point within {ITERATION_LIMIT} rounds; tolerance {tolerance:g} is below rounding.")


def metric(
    process: TaskProcess, c: float, *, scaled: bool, action_weight: float = 0.0, tolerance: float = 1e-9
) -> Floats:
    """Return the metric d as [i, j], exact to `tolerance`.

    It is computed between the classes of the relation, then expanded to all tasks.
    """
    classes = bisimulation_classes(process, with_policy=action_weight > 0)
    operator = Operator(quotient(process, classes), c, scaled=scaled, action_weight=action_weight)
    distances = np.asarray(improve_plans(operator, tolerance=tolerance).distances, dtype=np.float64)
    return distances[np.ix_(classes, classes)]


def sampled_metric(process: TaskProcess, c: float, *, scaled: bool, tolerance: float = 1e-9) -> Floats:
    """Return the fixed point of Eq. (phi_loss) if each pair of tasks samples its successors and rewards independently.

    The expectation over independent samples replaces the cheapest coupling, and E|r_i - r_j| of two Bernoulli
    rewards replaces |R_i - R_j|. In stochastic MDPs a task is then at a positive distance from itself.
    """
    check_unit_interval("c", c)
    chain, reward = process.chain(), process.rewards[0]
    differ = reward[:, None] * (1.0 - reward) + (1.0 - reward[:, None]) * reward
    base = reward_weight(c, scaled) * differ
    distances = np.zeros_like(base)
    while True:
        updated = base + c * chain @ distances @ chain.T
        change = float(np.abs(updated - distances).max())
        distances = updated
        if change * c <= tolerance * (1.0 - c):
            return distances
