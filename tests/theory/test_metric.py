"""The metric: by hand, and Proposition 1's properties on generated MDPs."""

import numpy as np
import pytest
from helpers.generated import mdps, mdps_and_policies
from hypothesis import given, settings
from hypothesis import strategies as st

from gcb.errors import GCBError
from gcb.theory import (
    GCMDP,
    Operator,
    all_actions,
    evaluate,
    grid_world,
    improve_plans,
    iterate,
    metric,
    on_policy,
    optimal_policy,
    sampled_metric,
    stay_or_switch_mdp,
)
from gcb.theory.builders import random_pseudometric
from gcb.theory.check_fixed_point import triangle_violation
from gcb.theory.gcmdp import goal_agnostic_policy


@pytest.fixture
def odds():
    """Goal 0 and trap 1 keep what enters; 2 reaches the goal with chance 1/2, 3 with chance 1/4."""
    P = np.zeros((4, 1, 4))
    P[0, 0, 0] = P[1, 0, 1] = 1.0
    P[2, 0, :2], P[3, 0, :2] = [0.5, 0.5], [0.25, 0.75]
    mdp = GCMDP(P, np.array([0]), 0.5)
    return mdp, on_policy(mdp, np.ones((4, 1, 1)))


def test_the_odds_by_hand(odds):
    # c = 1/2: d(0, 1) = 1 / (1 - c) = 2; a quarter of the mass must travel: d(2, 3) = 1/4 + 1/2 · 1/4 · 2 = 1/2
    expected = [[0, 2, 1, 1.5], [2, 0, 1, 0.5], [1, 1, 0, 0.5], [1.5, 0.5, 0.5, 0]]
    np.testing.assert_allclose(metric(odds[1], 0.5, scaled=False), expected, atol=1e-9)
    np.testing.assert_allclose(metric(odds[1], 0.5, scaled=True), np.array(expected) / 2, atol=1e-9)
    np.testing.assert_allclose(evaluate(odds[0], np.ones((4, 1, 1)))[:, 0], [2, 0, 1, 0.5], atol=1e-12)


def test_the_second_wasserstein_distance_by_hand(odds):
    # W₂(2, 3) = √(1/4 · 2²) = 1, so d(2, 3) = 1/4 + 1/2
    d = iterate(Operator(odds[1], 0.5, scaled=False, order=2)).distances
    assert d[2, 3] == pytest.approx(0.75)
    assert d[0, 1] == pytest.approx(2.0)
    with pytest.raises(GCBError, match="order is 3"):
        Operator(odds[1], 0.5, scaled=False, order=3)
    with pytest.raises(GCBError, match="needs order 1"):
        improve_plans(Operator(odds[1], 0.5, scaled=False, order=2))


def test_sampling_puts_a_task_at_a_distance_from_itself(odds):
    # two draws of task 2 differ in reward with chance 1/2, and are then 2 apart: 1/2 + 1/2 · 1/2 · 2 = 1
    d = sampled_metric(odds[1], 0.5, scaled=False)
    assert d[2, 2] == pytest.approx(1.0)
    assert d[0, 0] == 0.0
    assert d[0, 1] == pytest.approx(2.0)


def test_a_corridor_by_hand():
    mdp = grid_world(("....",))
    process = on_policy(mdp, optimal_policy(mdp))
    at, near, two, three = (mdp.task(state, 3) for state in (3, 2, 1, 0))
    d = metric(process, 0.5, scaled=False)
    # rewards from the goal: 1 1 1 …, from two steps: 0 1 1 …, from three: 0 0 1 …
    assert d[at, near] == 0.0
    assert d[at, two] == pytest.approx(1.0)
    assert d[two, three] == pytest.approx(0.5)
    assert d[at, three] == pytest.approx(1.5)


def test_actions_in_the_metric_by_hand():
    mdp = grid_world(("...",))
    process = on_policy(mdp, optimal_policy(mdp))
    there, back, near = mdp.task(0, 2), mdp.task(2, 0), mdp.task(1, 2)
    d = metric(process, 0.5, scaled=False, action_weight=1.0)
    # right, right, stay … against left, left, stay …: 1 + 1/2; against right, stay, stay: 0 + 1/2 and the reward's 1
    assert d[there, back] == pytest.approx(1.5)
    assert d[there, near] == pytest.approx(1.5)
    assert metric(process, 0.5, scaled=False)[there, back] == 0.0
    with pytest.raises(GCBError, match="action_weight"):
        Operator(all_actions(mdp), 0.5, scaled=False, action_weight=1.0)


def test_all_actions_take_the_worst_one():
    mdp = stay_or_switch_mdp()
    d = metric(all_actions(mdp), 0.5, scaled=True)
    # at the goal "stay" is rewarded, in the other state "switch" is: 1/2 for the reward, and for ever after
    assert d[mdp.task(0, 0), mdp.task(1, 0)] == pytest.approx(1.0)
    assert d[mdp.task(0, 0), mdp.task(1, 1)] == 0.0


@settings(max_examples=40, deadline=None)
@given(
    mdps_and_policies(),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.3, 0.8]),
    st.booleans(),
    st.sampled_from([1, 2]),
)
def test_f_contracts(drawn, seed, c, scaled, order):
    mdp, policy = drawn
    rng = np.random.default_rng(seed)
    operator = Operator(on_policy(mdp, policy), c, scaled=scaled, order=order)
    d, other = (random_pseudometric(rng, mdp.tasks) for _ in range(2))
    assert np.abs(operator(d) - operator(other)).max() <= c * np.abs(d - other).max() + 1e-9
    assert triangle_violation(operator(d)) < 1e-9


@settings(max_examples=30, deadline=None)
@given(mdps_and_policies(), st.integers(0, 2**32 - 1))
def test_every_start_and_method_ends_at_one_pseudometric(drawn, seed):
    mdp, policy = drawn
    process = on_policy(mdp, policy)
    operator = Operator(process, 0.7, scaled=False)
    d = np.asarray(improve_plans(operator).distances, dtype=np.float64)
    start = random_pseudometric(np.random.default_rng(seed), mdp.tasks)
    np.testing.assert_allclose(iterate(operator, start=start).distances, d, atol=1e-7)
    np.testing.assert_allclose(metric(process, 0.7, scaled=False), d, atol=1e-7)
    assert triangle_violation(d) < 1e-7


@settings(max_examples=40, deadline=None)
@given(mdps_and_policies())
def test_values_differ_by_no_more_than_the_metric(drawn):
    mdp, policy = drawn
    V = evaluate(mdp, policy).reshape(-1)
    d = metric(on_policy(mdp, policy), mdp.gamma, scaled=False)
    assert (np.abs(V[:, None] - V) <= d + 1e-7).all()


@settings(max_examples=30, deadline=None)
@given(mdps(all_goals=True), st.integers(0, 2**32 - 1))
def test_any_reward_differs_by_no_more_than_the_weighted_metric(mdp, seed):
    rng = np.random.default_rng(seed)
    behaviour, alpha = rng.dirichlet(np.ones(mdp.actions), size=mdp.states), rng.normal(size=mdp.states)
    policy = goal_agnostic_policy(mdp, behaviour)
    V = evaluate(mdp, policy) @ alpha
    d = metric(on_policy(mdp, policy), mdp.gamma, scaled=False).reshape((mdp.states,) * 4)
    bound = np.einsum("ikjk,k->ij", d, np.abs(alpha))
    assert (np.abs(V[:, None] - V) <= bound + 1e-7).all()


def test_a_start_of_the_wrong_size_is_refused(odds):
    with pytest.raises(GCBError, match=r"shape \(2, 2\); accepted: \(4, 4\)"):
        iterate(Operator(odds[1], 0.5, scaled=True), start=np.zeros((2, 2)))
