"""Values by hand, and what optimal means."""

import numpy as np
import pytest
from helpers.generated import mdps
from hypothesis import given, settings

from gcb.errors import GCBError
from gcb.theory import evaluate, grid_world, optimal_policy, stay_or_switch_mdp, uniform_policy
from gcb.theory.gcmdp import goal_agnostic_policy, optimal_q


def test_the_value_of_a_corridor_is_a_power_of_gamma():
    mdp = grid_world(("....",), gamma=0.5)
    V = evaluate(mdp, optimal_policy(mdp))
    # reward 1 at each step from the arrival on: 1 / (1 - γ) = 2 at the goal and one step before it
    np.testing.assert_allclose(V[:, 3], [0.5, 1.0, 2.0, 2.0])


def test_ties_fall_to_the_first_action_or_are_shared():
    mdp = grid_world(("..", ".."), gamma=0.5)
    names = list(mdp.action_names)
    corner = optimal_policy(mdp, ties="uniform")[0, 3]
    assert {names[a] for a in np.flatnonzero(corner)} == {"right", "down"}
    assert names[int(optimal_policy(mdp)[0, 3].argmax())] == "right"
    with pytest.raises(GCBError, match="'first' or 'uniform'"):
        optimal_policy(mdp, ties="last")


def test_staying_earns_all_or_nothing():
    mdp = stay_or_switch_mdp(gamma=0.9)
    stay = goal_agnostic_policy(mdp, np.tile([1.0, 0.0], (2, 1)))
    np.testing.assert_allclose(evaluate(mdp, stay), [[10.0, 0.0], [0.0, 10.0]], atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(mdps())
def test_the_optimal_policy_reaches_the_optimal_values_and_none_is_better(mdp):
    best = np.moveaxis(optimal_q(mdp.P, mdp.R, mdp.gamma), 1, 2).max(axis=-1)
    np.testing.assert_allclose(evaluate(mdp, optimal_policy(mdp)), best, atol=1e-6)
    assert (evaluate(mdp, uniform_policy(mdp)) <= best + 1e-9).all()
