"""Values by hand, and what optimal means."""

import numpy as np
import pytest
from helpers.generated import worlds
from hypothesis import given, settings

from gcb.errors import GCBError
from gcb.theory import evaluate, grid_world, optimal_policy, stay_or_switch_world, uniform_policy
from gcb.theory.policies import one_policy_for_all_goals, optimal_q


def test_the_value_of_a_corridor_is_a_power_of_gamma():
    world = grid_world(("....",), gamma=0.5)
    V = evaluate(world, optimal_policy(world))
    # reward 1 at each step from the arrival on: 1 / (1 - γ) = 2 at the goal and one step before it
    np.testing.assert_allclose(V[:, 3], [0.5, 1.0, 2.0, 2.0])


def test_ties_fall_to_the_first_action_or_are_shared():
    world = grid_world(("..", ".."), gamma=0.5)
    names = list(world.action_names)
    corner = optimal_policy(world, ties="uniform")[0, 3]
    assert {names[a] for a in np.flatnonzero(corner)} == {"right", "down"}
    assert names[int(optimal_policy(world)[0, 3].argmax())] == "right"
    with pytest.raises(GCBError, match="'first' or 'uniform'"):
        optimal_policy(world, ties="last")


def test_staying_earns_all_or_nothing():
    world = stay_or_switch_world(gamma=0.9)
    stay = one_policy_for_all_goals(world, np.tile([1.0, 0.0], (2, 1)))
    np.testing.assert_allclose(evaluate(world, stay), [[10.0, 0.0], [0.0, 10.0]], atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(worlds())
def test_the_optimal_policy_reaches_the_optimal_values_and_none_is_better(world):
    best = np.moveaxis(optimal_q(world.P, world.R, world.gamma), 1, 2).max(axis=-1)
    np.testing.assert_allclose(evaluate(world, optimal_policy(world)), best, atol=1e-6)
    assert (evaluate(world, uniform_policy(world)) <= best + 1e-9).all()
