"""Definition 4.1 by partition refinement, on MDPs whose classes can be listed."""

import numpy as np
import pytest
from helpers.generated import mdps_and_policies
from hypothesis import given, settings

from gcb.errors import GCBError
from gcb.theory import (
    GCMDP,
    all_actions,
    bisimulation_classes,
    grid_world,
    improve_plans,
    on_policy,
    optimal_policy,
    random_mdp,
    state_classes,
)
from gcb.theory.metric import Operator


def test_on_policy_only_the_steps_to_the_goal_count():
    mdp = grid_world(("....",))
    classes = bisimulation_classes(on_policy(mdp, optimal_policy(mdp))).reshape(4, 4)
    steps = np.abs(np.arange(4)[:, None] - np.arange(4))
    # at the goal and one step before it the rewards are the same: 1, 1, 1, …
    expected = np.maximum(steps, 1)
    assert ((classes[..., None, None] == classes) == (expected[..., None, None] == expected)).all()


def test_with_all_actions_a_corridor_has_no_two_equal_tasks_but_in_colour():
    plain, coloured = grid_world(("...",)), grid_world(("...",), colours=2)
    assert bisimulation_classes(all_actions(plain)).max() + 1 == 9
    classes = bisimulation_classes(all_actions(coloured)).reshape(3, 2, 3, 2)
    np.testing.assert_array_equal(classes[:, 0, :, 0], classes[:, 1, :, 1])  # all red as all blue
    assert len(np.unique(classes)) == 10  # and one class for goals of the other colour, which nothing reaches


def test_equal_odds_in_another_order_are_equal():
    # 0 and 1 go to the twins 2 and 3 with odds 1:3 and 3:1; 2 and 3 go to the goal 4
    P = np.zeros((5, 1, 5))
    P[0, 0, [2, 3]], P[1, 0, [2, 3]] = [0.25, 0.75], [0.75, 0.25]
    P[[2, 3, 4], 0, 4] = 1.0
    classes = bisimulation_classes(all_actions(GCMDP(P, np.array([4]), 0.9)))
    assert classes[0] == classes[1] != classes[2] == classes[3]


def test_with_policy_also_the_actions_must_agree():
    mdp = grid_world(("...",))
    process = on_policy(mdp, optimal_policy(mdp))
    there, back = mdp.task(0, 2), mdp.task(2, 0)
    reward_only, acting = bisimulation_classes(process), bisimulation_classes(process, with_policy=True)
    assert reward_only[there] == reward_only[back]
    assert acting[there] != acting[back]
    with pytest.raises(GCBError, match="with_policy"):
        bisimulation_classes(all_actions(mdp), with_policy=True)


def test_psi_merges_twins_and_nothing_else():
    mdp = random_mdp(np.random.default_rng(1), states=6, actions=3, support=3, twins=2)
    classes = state_classes(mdp, bisimulation_classes(all_actions(mdp)))
    assert classes[4] == classes[0]
    assert classes[5] == classes[1]
    assert classes.max() + 1 == 4


@settings(max_examples=40, deadline=None)
@given(mdps_and_policies())
def test_related_tasks_are_exactly_those_at_distance_0(drawn):
    mdp, policy = drawn
    for process in (on_policy(mdp, policy), all_actions(mdp)):
        classes = bisimulation_classes(process)
        d = improve_plans(Operator(process, 0.8, scaled=False), tolerance=1e-11).distances
        np.testing.assert_array_equal(d < 1e-8, classes[:, None] == classes)
