"""Proposition 1 on hundreds of random MDPs: F contracts, has one fixed point, and that is a pseudometric."""

from dataclasses import dataclass

import numpy as np

from gcb.theory.builders import grid_world, mdps_and_policies, random_pseudometric
from gcb.theory.gcmdp import GCMDP, Floats, optimal_policy, optimal_q
from gcb.theory.metric import Operator, improve_plans, iterate, metric, sampled_metric
from gcb.theory.process import TaskProcess, all_actions, bisimulation_classes, on_policy
from gcb.theory.verdicts import Tally, Verdict

EXACT = 1e-10
CLOSE = 1e-7
PROPOSITION = "Proposition 1"


def triangle_violation(d: Floats) -> float:
    """The most by which d(i, k) exceeds d(i, j) + d(j, k), together with asymmetry and a non-zero diagonal."""
    detour = (d[:, :, None] + d[None, :, :]).min(axis=1)
    return float(max((d - detour).max(), np.abs(d - d.T).max(), np.abs(np.diagonal(d)).max(), -d.min()))


def check_contraction(rng: np.random.Generator, count: int) -> list[Verdict]:
    """||F(d) - F(d')|| ≤ c ||d - d'||, with the Wasserstein-1 distance and with the W₂ of Eq. (gcbm)."""
    verdicts = []
    for order, name in ((1, PROPOSITION), (2, "Eq. (gcbm), W₂")):
        tally = Tally(name, "F shrinks the distance of any two pseudometrics by c")
        for mdp, policy in mdps_and_policies(rng, count):
            c, process = float(rng.uniform(0.3, 0.95)), on_policy(mdp, policy)
            operator = Operator(process, c, scaled=bool(rng.integers(2)), order=order)
            d, other = (random_pseudometric(rng, process.tasks) for _ in range(2))
            before, after = np.abs(d - other).max(), np.abs(operator(d) - operator(other)).max()
            tally.add(after - c * before)
        verdicts.append(tally.verdict())
    return verdicts


def check_fixed_point(rng: np.random.Generator, count: int) -> list[Verdict]:
    """One fixed point from any start; it is a pseudometric; error after n steps at most c^n of the first."""
    unique = Tally(PROPOSITION, "one fixed point, from zero, from random and from large starts")
    pseudometric = Tally(PROPOSITION, "the fixed point is a pseudometric")
    rate = Tally(PROPOSITION, "after n steps the error is at most cⁿ of the first one")
    for mdp, policy in mdps_and_policies(rng, count):
        process, c = on_policy(mdp, policy), float(rng.choice([0.5, 0.8]))
        operator = Operator(process, c, scaled=bool(rng.integers(2)))
        d = improve_plans(operator, tolerance=EXACT).distances
        pseudometric.add(triangle_violation(np.asarray(d, dtype=np.float64)))
        far = 100.0 * (1.0 - np.eye(process.tasks))
        starts = (np.zeros_like(far), random_pseudometric(rng, process.tasks), far)
        for start in starts:
            unique.add(np.abs(iterate(operator, start=start, tolerance=CLOSE / 4).distances - d).max())
        errors = _errors(operator, starts[1], np.asarray(d, dtype=np.float64), 10)
        rate.add(float((errors - errors[0] * c ** np.arange(len(errors))).max()))
    return [unique.verdict("three starts for each MDP"), pseudometric.verdict(), rate.verdict()]


def _errors(operator: Operator, start: Floats, fixed_point: Floats, steps: int) -> Floats:
    d, errors = start, []
    for _ in range(steps + 1):
        errors.append(np.abs(d - fixed_point).max())
        d = operator(d)
    return np.asarray(errors)


def check_relation(rng: np.random.Generator, count: int) -> list[Verdict]:
    """d = 0 exactly for the pairs of the relation: on-policy, and with all actions (Definition 4.1)."""
    verdicts = []
    for name, source in (("on-policy", "Def. 4.1, on-policy"), ("all actions", "Definition 4.1")):
        tally = Tally(source, "distance 0 exactly where the relation holds", tolerance=CLOSE)
        related, nearest = 0, np.inf
        for mdp, policy in mdps_and_policies(rng, count):
            process = on_policy(mdp, policy) if name == "on-policy" else all_actions(mdp)
            d = np.asarray(improve_plans(Operator(process, 0.9, scaled=False), tolerance=EXACT).distances)
            classes = bisimulation_classes(process)
            same = classes[:, None] == classes
            related += (int(same.sum()) - len(d)) // 2
            apart = float(d[~same].min(initial=np.inf))
            nearest = min(nearest, apart)
            tally.add(max(float(d[same].max()), 2 * CLOSE if apart <= CLOSE else 0.0))
        verdicts.append(tally.verdict(f"{related} related pairs; the nearest unrelated ones are {nearest:.2g} apart"))
    return verdicts


def check_improving_policy(rng: np.random.Generator, count: int) -> Verdict:
    """Proposition 1's π improves while F is applied: the distances end at those of the final policy."""
    tally = Tally(PROPOSITION, "with π improving at every step, d goes to the metric of the final π")
    for mdp, _ in mdps_and_policies(rng, count):
        c, Q = 0.6, np.zeros_like(mdp.R)
        d = random_pseudometric(rng, mdp.tasks)
        for _ in range(60):
            Q = mdp.R + mdp.gamma * np.einsum("sax,xk->sak", mdp.P, Q.max(axis=1))
            d = Operator(_greedy(mdp, Q), c, scaled=True)(d)
        final = _greedy(mdp, optimal_q(mdp.P, mdp.R, mdp.gamma))
        tally.add(float(np.abs(d - metric(final, c, scaled=True)).max()))
    return tally.verdict()


def _greedy(mdp: GCMDP, Q: Floats) -> TaskProcess:
    """The process of the greedy policy; values are rounded so that ties fall to the first action."""
    first = np.round(np.moveaxis(Q, 1, 2), 6).argmax(axis=-1)
    return on_policy(mdp, np.eye(mdp.actions)[first])


def check_sampling(rng: np.random.Generator, count: int) -> list[Verdict]:
    """Eq. (phi_loss) compares sampled successors: its own fixed point against d."""
    source = "Eq. (phi_loss)"
    same = Tally(source, "sampled successors lead to d, deterministic MDPs")
    differs = Tally(source, "sampled successors lead to d, stochastic MDPs", expected=False)
    above = Tally(source, "sampled successors never lead below d")
    self_distance = 0.0
    for mdp, policy in mdps_and_policies(rng, count):
        process = on_policy(mdp, policy)
        d, sampled = metric(process, 0.8, scaled=False), sampled_metric(process, 0.8, scaled=False)
        (same if process.deterministic else differs).add(float(np.abs(sampled - d).max()))
        above.add(float((d - sampled).max()))
        self_distance = max(self_distance, float(np.diagonal(sampled).max()))
    note = f"a task is up to {self_distance:.2f} away from itself (c = 0.8, unscaled)"
    return [same.verdict(), differs.verdict(note), above.verdict()]


@dataclass(frozen=True)
class Convergence:
    """Error after each application of F, for one c and scaling: {start: errors}."""

    c: float
    scaled: bool
    errors: dict[str, Floats]


def convergence(rng: np.random.Generator, steps: int = 40) -> list[Convergence]:
    """How the error falls on a slippery grid of 81 tasks, from three starts."""
    mdp = grid_world(("...", "...", "..."), slip=0.2)
    process = on_policy(mdp, optimal_policy(mdp))
    curves = []
    for c, scaled in ((0.5, True), (0.9, True), (0.9, False)):
        operator = Operator(process, c, scaled=scaled)
        d = np.asarray(improve_plans(operator, tolerance=1e-13).distances, dtype=np.float64)
        far = 20.0 * (1.0 - np.eye(process.tasks))
        starts = {"d = 0": np.zeros_like(d), "random d": random_pseudometric(rng, process.tasks), "all 20 apart": far}
        errors = {name: _errors(operator, start, d, steps) for name, start in starts.items()}
        curves.append(Convergence(c, scaled, errors))
    return curves


def check_all(rng: np.random.Generator, count: int) -> list[Verdict]:
    """Return all verdicts of this module; the most expensive check uses fewer MDPs."""
    return [
        *check_contraction(rng, count),
        *check_fixed_point(rng, count),
        check_improving_policy(rng, max(1, count // 3)),
        *check_relation(rng, count),
        *check_sampling(rng, count),
    ]
