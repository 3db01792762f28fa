"""Many small Wasserstein distances with the same marginals and costs that change a little from call to call.

POT's network simplex (`ot.emd`) solves each problem once. A plan found earlier stays optimal until some cycle of
re-routing becomes cheaper; that is checked for all problems at once, and only those that fail are solved again.
"""

import numpy as np

from gcb.errors import GCBError
from gcb.theory.gcmdp import Floats

ROUNDING = 1e-12  # a cycle must save more than this to count
NO_MASS = 1e-14  # the solver's rounding, not a route


def _solver():
    try:
        import ot
    except ImportError as error:
        raise GCBError("Optimal transport needs the package POT: pip install 'gcb[theory]'.") from error
    return ot.emd


def cheapest_cycle(plans: Floats, costs: Floats) -> Floats:
    """0 where a plan is optimal, below 0 where some cycle of re-routing is cheaper (by how much is not told), [n].

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
        """Problems with a choice: from or to a point mass there is one plan only, already held."""
        self.solved = 0
        """How many problems were given to the solver so far."""

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
