"""Propositions 2 and 4: what the metric says about values, with the constants it needs, and where the text fails.

Why: let d be the unscaled metric with c ≥ γ. By induction over value iteration
|V_i - V_j| ≤ |R_i - R_j| + γ W(d)(P_i, P_j) ≤ d(i, j).
Scaling the reward by (1 - c) scales the whole fixed point, hence d / (1 - c).
"""

from dataclasses import dataclass

import numpy as np

from gcb.theory.builders import stay_or_switch_world
from gcb.theory.gcmdp import GCMDP, Floats
from gcb.theory.instances import worlds_and_policies
from gcb.theory.metric import Operator, iterate, metric
from gcb.theory.policies import evaluate, evaluate_rewards, one_policy_for_all_goals, optimal_policy, optimal_q
from gcb.theory.process import on_policy
from gcb.theory.verdicts import Tally, Verdict

BOUND = "Proposition 2"
ANY_REWARD = "Proposition 4"
SEARCH_LIMIT = 5000


def value_gaps(world: GCMDP, policy: Floats) -> Floats:
    """|V^π(s_i, g_i) - V^π(s_j, g_j)| as [i, j]."""
    values = evaluate(world, policy).reshape(-1)
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
    for world, policy in worlds_and_policies(rng, count):
        process, gaps, gamma = on_policy(world, policy), value_gaps(world, policy), world.gamma
        d = metric(process, gamma, scaled=False)
        unscaled.add(float((gaps - d).max()))
        tight += int((np.abs(gaps - d) < 1e-7)[d > 1e-7].sum())
        total += int((d > 1e-7).sum())
        d_scaled = metric(process, gamma, scaled=True)
        scaled.add(float((gaps - d_scaled / (1 - gamma)).max()))
        printed.add(float((gaps - d_scaled).max()))
        larger.add(float((gaps - metric(process, (1 + gamma) / 2, scaled=False)).max()))
        smaller.add(float((gaps - metric(process, gamma / 2, scaled=False)).max()))
        if gamma < 0.9:  # W₂ has no short cut over plans; skip the slowest third
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


def any_reward_gap(world: GCMDP, behaviour: Floats, alpha: Floats) -> Floats:
    """|V_R(s_i) - V_R(s_j)| as [i, j], for a policy [s, a] and reward α_k on arriving at goal k."""
    assert world.achieved is not None
    values = evaluate_rewards(world.P, behaviour, world.P @ (world.achieved @ alpha), world.gamma)
    return np.abs(values[:, None] - values)


def any_reward_bound(world: GCMDP, distances: Floats, alpha: Floats) -> Floats:
    """Σ_k α_k d(s_i, g_k; s_j, g_k) as [i, j]: the right-hand side of Proposition 4 for the α given."""
    shape = (world.states, len(world.goals))
    same_goal = np.einsum("ikjk->ijk", distances.reshape(*shape, *shape))
    return same_goal @ alpha


def _one_hot_policy(world: GCMDP, Q: Floats) -> Floats:
    return np.eye(world.actions)[np.round(Q, 9).argmax(axis=1)]


def check_any_reward(rng: np.random.Generator, count: int) -> list[Verdict]:
    """Proposition 4 with one policy for all goals, G = S, and random α of both signs."""
    corrected = Tally(ANY_REWARD, "|ΔV_R| ≤ Σ|α| d, unscaled, one policy for all goals")
    signed = Tally(ANY_REWARD, "|ΔV_R| ≤ Σ α d as printed, α of both signs", expected=False)
    scaled = Tally(ANY_REWARD, "|ΔV_R| ≤ Σ|α| d / (1 - c), scaled", expected=True)
    printed = Tally(ANY_REWARD, "|ΔV_R| ≤ Σ|α| d, scaled, without 1 / (1 - c)", expected=False)
    for world, _ in worlds_and_policies(rng, count, every_state_a_goal=True):
        behaviour = rng.dirichlet(np.ones(world.actions), size=world.states)
        process = on_policy(world, one_policy_for_all_goals(world, behaviour))
        alpha = rng.normal(size=world.states)
        gap = any_reward_gap(world, behaviour, alpha)
        d, d_scaled = (metric(process, world.gamma, scaled=flag) for flag in (False, True))
        corrected.add(float((gap - any_reward_bound(world, d, np.abs(alpha))).max()))
        signed.add(float((gap - any_reward_bound(world, d, alpha)).max()))
        scaled_bound = any_reward_bound(world, d_scaled, np.abs(alpha))
        scaled.add(float((gap - scaled_bound / (1 - world.gamma)).max()))
        printed.add(float((gap - scaled_bound).max()))
    note = "a negative α makes the right-hand side smaller, even negative"
    return [corrected.verdict(), signed.verdict(note), scaled.verdict(), printed.verdict()]


def check_goal_conditioned_policy(rng: np.random.Generator, count: int) -> list[Verdict]:
    """Proposition 4 when d is measured under the goal-conditioned π* and V_R under a policy for R: α ≥ 0, unscaled.

    Counter-examples are rare here, so the search goes on until both readings have met one.
    """
    source = ANY_REWARD
    best = Tally(source, "|ΔV_R| ≤ Σ|α| d of π*(s, g), V_R of the best policy for R", expected=False)
    borrowed = Tally(source, "|ΔV_R| ≤ Σ|α| d of π*(s, g), V_R of π*(·, g) for one goal", expected=False)
    for world, _ in worlds_and_policies(rng, SEARCH_LIMIT, every_state_a_goal=True):
        if len(best.gaps) >= count and best.found and borrowed.found:
            break
        policy = optimal_policy(world)
        d = metric(on_policy(world, policy), world.gamma, scaled=False)
        alpha = rng.exponential(size=world.states)
        bound = any_reward_bound(world, d, alpha)
        for_reward = _one_hot_policy(world, optimal_q(world.P, world.P @ alpha, world.gamma))
        best.add(float((any_reward_gap(world, for_reward, alpha) - bound).max()))
        borrowed.add(float((any_reward_gap(world, policy[:, int(alpha.argmax())], alpha) - bound).max()))
    note = "V_R is a sum of V(s, g_k) only when one policy serves all goals"
    return [best.verdict(note), borrowed.verdict()]


def stay_or_switch_example() -> Verdict:
    """The smallest counter-example by hand: two states, "stay" and "switch", R = 1 on arriving in state 0.

    Under π* either goal is one step away from either state, so every distance is 0. The policy "stay" earns
    1 / (1 - γ) = 10 in state 0 and nothing in state 1.
    """
    claim = "the same, by hand: two states, stay or switch, V_R of the policy that stays"
    tally = Tally(ANY_REWARD, claim, expected=False)
    world, alpha = stay_or_switch_world(), np.array([1.0, 0.0])
    d = metric(on_policy(world, optimal_policy(world)), world.gamma, scaled=False)
    stay = np.tile([1.0, 0.0], (2, 1))
    tally.add(float((any_reward_gap(world, stay, alpha) - any_reward_bound(world, d, alpha)).max()))
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
    for world, policy in worlds_and_policies(rng, count, every_state_a_goal=True):
        behaviour = rng.dirichlet(np.ones(world.actions), size=world.states)
        alpha = rng.normal(size=world.states)
        process, single = on_policy(world, policy), on_policy(world, one_policy_for_all_goals(world, behaviour))
        gaps, any_gaps = value_gaps(world, policy), any_reward_gap(world, behaviour, alpha)
        d = metric(single, world.gamma, scaled=False)
        sides = (
            (gaps, metric(process, world.gamma, scaled=False)),
            (gaps, metric(process, world.gamma, scaled=True)),
            (any_gaps, any_reward_bound(world, d, np.abs(alpha))),
            (any_gaps, any_reward_bound(world, d, alpha)),
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
