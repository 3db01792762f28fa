"""Propositions 2 and 4: what the metric says about values, with the constants it needs, and where the text fails.

Why: let d be the unscaled metric with c ≥ γ. By induction over value iteration
|V_i - V_j| ≤ |R_i - R_j| + γ W(d)(P_i, P_j) ≤ d(i, j).
Scaling the reward by (1 - c) scales the whole fixed point, hence d / (1 - c).
"""

from dataclasses import dataclass

import numpy as np

from gcb.theory.builders import mdps_and_policies, stay_or_switch_mdp
from gcb.theory.gcmdp import GCMDP, Floats, evaluate, evaluate_rewards, goal_agnostic_policy, optimal_policy, optimal_q
from gcb.theory.metric import Operator, iterate, metric
from gcb.theory.process import on_policy
from gcb.theory.verdicts import Tally, Verdict

BOUND = "Proposition 2"
ANY_REWARD = "Proposition 4"
SEARCH_LIMIT = 5000


def value_gaps(mdp: GCMDP, policy: Floats) -> Floats:
    """|V^π(s_i, g_i) - V^π(s_j, g_j)| as [i, j]."""
    values = evaluate(mdp, policy).reshape(-1)
    return np.abs(values[:, None] - values)


def check_value_bound(rng: np.random.Generator, count: int) -> list[Verdict]:
    """Proposition 2 in both scalings, with c = γ, with another c, and with W₂."""
    unscaled = Tally(BOUND, "|ΔV| ≤ d, unscaled, c = γ")
    scaled = Tally(BOUND, "|ΔV| ≤ d / (1 - c), scaled as in Proposition 1, c = γ")
    printed = Tally(BOUND, "|ΔV| ≤ d as printed, scaled as in Proposition 1, c = γ", expected=False)
    larger = Tally(BOUND, "|ΔV| ≤ d, unscaled, c > γ")
    smaller = Tally(BOUND, "|ΔV| ≤ d, unscaled, c < γ", expected=False)
    second = Tally(BOUND, "|ΔV| ≤ d, unscaled, c = γ, with the W₂ of Eq. (gcbm)")
    tight = total = 0
    for mdp, policy in mdps_and_policies(rng, count):
        process, gaps, gamma = on_policy(mdp, policy), value_gaps(mdp, policy), mdp.gamma
        d = metric(process, gamma, scaled=False)
        unscaled.add(float((gaps - d).max()))
        tight += int((np.abs(gaps - d) < 1e-7)[d > 1e-7].sum())
        total += int((d > 1e-7).sum())
        d_scaled = metric(process, gamma, scaled=True)
        scaled.add(float((gaps - d_scaled / (1 - gamma)).max()))
        printed.add(float((gaps - d_scaled).max()))
        larger.add(float((gaps - metric(process, (1 + gamma) / 2, scaled=False)).max()))
        smaller.add(float((gaps - metric(process, gamma / 2, scaled=False)).max()))
        if gamma < 0.9:  # W₂ does not allow iteration over plans: skip the slowest third
            d_second = iterate(Operator(process, gamma, scaled=False, order=2)).distances
            second.add(float((gaps - d_second).max()))
    note = f"with equality for {100 * tight / max(total, 1):.0f} % of the pairs that are apart"
    return [
        unscaled.verdict(note),
        scaled.verdict(),
        printed.verdict("(1 - c) shrinks d but not V"),
        larger.verdict(),
        smaller.verdict("a metric that looks less far ahead than the value cannot bound it"),
        second.verdict(),
    ]


def any_reward_gap(mdp: GCMDP, behaviour: Floats, alpha: Floats) -> Floats:
    """|V_R(s_i) - V_R(s_j)| as [i, j], for a policy [s, a] and reward α_k on arriving at goal k."""
    assert mdp.achieved is not None
    values = evaluate_rewards(mdp.P, behaviour, mdp.P @ (mdp.achieved @ alpha), mdp.gamma)
    return np.abs(values[:, None] - values)


def any_reward_bound(mdp: GCMDP, distances: Floats, alpha: Floats) -> Floats:
    """Σ_k α_k d(s_i, g_k; s_j, g_k) as [i, j]: the right-hand side of Proposition 4 for the α given."""
    shape = (mdp.states, len(mdp.goals))
    same_goal = np.einsum("ikjk->ijk", distances.reshape(*shape, *shape))
    return same_goal @ alpha


def _one_hot_policy(mdp: GCMDP, Q: Floats) -> Floats:
    return np.eye(mdp.actions)[np.round(Q, 9).argmax(axis=1)]


def check_any_reward(rng: np.random.Generator, count: int) -> list[Verdict]:
    """Proposition 4 with one policy for all goals, G = S, and random α of both signs."""
    corrected = Tally(ANY_REWARD, "|ΔV_R| ≤ Σ|α| d, unscaled, one policy for all goals")
    signed = Tally(ANY_REWARD, "|ΔV_R| ≤ Σ α d as printed, α of both signs", expected=False)
    scaled = Tally(ANY_REWARD, "|ΔV_R| ≤ Σ|α| d / (1 - c), scaled", expected=True)
    printed = Tally(ANY_REWARD, "|ΔV_R| ≤ Σ|α| d, scaled, without 1 / (1 - c)", expected=False)
    for mdp, _ in mdps_and_policies(rng, count, every_state_a_goal=True):
        behaviour = rng.dirichlet(np.ones(mdp.actions), size=mdp.states)
        process = on_policy(mdp, goal_agnostic_policy(mdp, behaviour))
        alpha = rng.normal(size=mdp.states)
        gap = any_reward_gap(mdp, behaviour, alpha)
        d, d_scaled = (metric(process, mdp.gamma, scaled=flag) for flag in (False, True))
        corrected.add(float((gap - any_reward_bound(mdp, d, np.abs(alpha))).max()))
        signed.add(float((gap - any_reward_bound(mdp, d, alpha)).max()))
        scaled_bound = any_reward_bound(mdp, d_scaled, np.abs(alpha))
        scaled.add(float((gap - scaled_bound / (1 - mdp.gamma)).max()))
        printed.add(float((gap - scaled_bound).max()))
    note = "a negative α makes the right-hand side smaller, even negative"
    return [corrected.verdict(), signed.verdict(note), scaled.verdict(), printed.verdict()]


def check_goal_conditioned_policy(rng: np.random.Generator, count: int) -> list[Verdict]:
    """Proposition 4 when d is measured under the goal-conditioned π* and V_R under a policy for R: α ≥ 0, unscaled.

    Counter-examples are rare here, so the search continues until both readings have found one.
    """
    source = ANY_REWARD
    best = Tally(source, "|ΔV_R| ≤ Σ|α| d of π*(s, g), V_R of the best policy for R", expected=False)
    borrowed = Tally(source, "|ΔV_R| ≤ Σ|α| d of π*(s, g), V_R of π*(·, g) for one goal", expected=False)
    for mdp, _ in mdps_and_policies(rng, SEARCH_LIMIT, every_state_a_goal=True):
        if len(best.gaps) >= count and best.found and borrowed.found:
            break
        policy = optimal_policy(mdp)
        d = metric(on_policy(mdp, policy), mdp.gamma, scaled=False)
        alpha = rng.exponential(size=mdp.states)
        bound = any_reward_bound(mdp, d, alpha)
        for_reward = _one_hot_policy(mdp, optimal_q(mdp.P, mdp.P @ alpha, mdp.gamma))
        best.add(float((any_reward_gap(mdp, for_reward, alpha) - bound).max()))
        borrowed.add(float((any_reward_gap(mdp, policy[:, int(alpha.argmax())], alpha) - bound).max()))
    note = "V_R is a sum of V(s, g_k) only when one policy serves all goals"
    return [best.verdict(note), borrowed.verdict()]


def stay_or_switch_example() -> Verdict:
    """The smallest counter-example by hand: two states, "stay" and "switch", R = 1 on arriving in state 0.

    Under π* either goal is one step away from either state, so every distance is 0. The policy "stay" earns
    1 / (1 - γ) = 10 in state 0 and nothing in state 1.
    """
    claim = "the same, by hand: two states, stay or switch, V_R of the policy that stays"
    tally = Tally(ANY_REWARD, claim, expected=False)
    mdp, alpha = stay_or_switch_mdp(), np.array([1.0, 0.0])
    d = metric(on_policy(mdp, optimal_policy(mdp)), mdp.gamma, scaled=False)
    stay = np.tile([1.0, 0.0], (2, 1))
    tally.add(float((any_reward_gap(mdp, stay, alpha) - any_reward_bound(mdp, d, alpha)).max()))
    return tally.verdict(f"|ΔV_R| = 10 and every distance is {d.max():.0f}")


@dataclass(frozen=True)
class BoundPoints:
    """Left- and right-hand sides of a bound, one point for each pair that is apart."""

    name: str
    left: Floats
    right: Floats
    holds: bool


def bound_points(rng: np.random.Generator, count: int = 40) -> list[BoundPoints]:
    """The points behind the figure: Propositions 2 and 4 as they hold and as they are printed."""
    names = (
        ("|ΔV| against d, unscaled", True),
        ("|ΔV| against d, scaled by (1 - c)", False),
        ("|ΔV_R| against Σ|α|d, one policy", True),
        ("|ΔV_R| against Σ α d as printed", False),
    )
    points: list[tuple[list[Floats], list[Floats]]] = [([], []) for _ in names]
    for mdp, policy in mdps_and_policies(rng, count, every_state_a_goal=True):
        behaviour = rng.dirichlet(np.ones(mdp.actions), size=mdp.states)
        alpha = rng.normal(size=mdp.states)
        process, single = on_policy(mdp, policy), on_policy(mdp, goal_agnostic_policy(mdp, behaviour))
        gaps, any_gaps = value_gaps(mdp, policy), any_reward_gap(mdp, behaviour, alpha)
        d = metric(single, mdp.gamma, scaled=False)
        sides = (
            (gaps, metric(process, mdp.gamma, scaled=False)),
            (gaps, metric(process, mdp.gamma, scaled=True)),
            (any_gaps, any_reward_bound(mdp, d, np.abs(alpha))),
            (any_gaps, any_reward_bound(mdp, d, alpha)),
        )
        for (left, right), (gap, bound) in zip(points, sides, strict=True):
            apart = np.triu_indices(len(gap), 1)
            left.append(gap[apart])
            right.append(bound[apart])
    return [
        BoundPoints(name, np.concatenate(left), np.concatenate(right), holds)
        for (name, holds), (left, right) in zip(names, points, strict=True)
    ]


def check_all(rng: np.random.Generator, count: int) -> list[Verdict]:
    return [
        *check_value_bound(rng, count),
        *check_any_reward(rng, count),
        *check_goal_conditioned_policy(rng, count),
        stay_or_switch_example(),
    ]
