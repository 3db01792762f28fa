"""Worlds: what is refused, and what small ones look like by hand."""

import numpy as np
import pytest

from gcb.errors import GCBError
from gcb.theory import GCMDP, drawer_button_mdp, grid_world, metric, on_policy, optimal_policy, random_mdp
from gcb.theory.builders import TABLE_ACTIONS

STAY = np.eye(2)[:, None]  # two states, one action that does nothing


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"P": np.ones((2, 2))}, r"shape \(2, 2\)"),
        ({"P": np.zeros((0, 1, 0))}, "none of them empty"),
        ({"P": STAY * 0.5}, r"P\[0, 0\] sums to 0.5"),
        ({"P": np.array([[[1.5, -0.5]], [[0.0, 1.0]]])}, r"P\[0, 0, 1\] is -0.5"),
        ({"P": STAY * np.nan}, "not finite"),
        ({"goals": [2]}, "Goal 2 does not exist; states are numbered 0 to 1"),
        ({"goals": [-1]}, "Goal -1 does not exist"),
        ({"goals": []}, "non-empty list of state numbers"),
        ({"goals": [0.5]}, "non-empty list of state numbers"),
        ({"gamma": 1.0}, "gamma is 1.0; it must lie strictly between 0 and 1"),
        ({"gamma": 0.0}, "gamma is 0.0"),
        ({"achieved": np.ones((2, 3))}, r"achieved has shape \(2, 3\)"),
        ({"achieved": np.full((2, 1), 0.5)}, "only 0 and 1"),
        ({"action_names": ["a", "b"]}, "action_names has 2 entries; accepted: 1"),
    ],
)
def test_an_mdp_that_makes_no_sense_is_refused(change, message):
    fields = {"P": STAY, "goals": [1], "gamma": 0.9} | change
    with pytest.raises(GCBError, match=message):
        GCMDP(**fields)


@pytest.mark.parametrize("c", [0.0, 1.0, -0.5, 1.5])
def test_a_metric_discount_outside_0_and_1_is_refused(c):
    mdp = GCMDP(STAY, np.array([1]), 0.9)
    with pytest.raises(GCBError, match=r"c is .*strictly between 0 and 1"):
        metric(on_policy(mdp, optimal_policy(mdp)), c, scaled=True)


@pytest.mark.parametrize(
    ("policy", "message"),
    [(np.ones((2, 1)), "shape"), (np.full((2, 1, 1), 0.5), "sums to 0.5"), (np.full((2, 1, 1), -1.0), "negative")],
)
def test_a_policy_that_does_not_fit_is_refused(policy, message):
    with pytest.raises(GCBError, match=message):
        on_policy(GCMDP(STAY, np.array([1]), 0.9), policy)


def test_a_task_that_does_not_exist_is_named():
    with pytest.raises(GCBError, match=r"Task \(5, 0\) does not exist: 2 states, 1 goals"):
        GCMDP(STAY, np.array([1]), 0.9).task(5, 0)


def test_the_reward_is_the_chance_to_arrive():
    mdp = GCMDP(np.array([[[0.25, 0.75]], [[0.0, 1.0]]]), np.array([1, 0]), 0.9)
    np.testing.assert_array_equal(mdp.R[:, 0], [[0.75, 0.25], [1.0, 0.0]])


def test_a_slippery_move_by_hand():
    mdp = grid_world(("..", ".#"), slip=0.2)  # cells: 0 and 1 on top, 2 below 0
    right = list(mdp.action_names).index("right")
    # from 0: 0.8 to the right, 0.1 up into the edge, 0.1 down; from 2: a wall on the right, 0.1 up, the rest stays
    np.testing.assert_allclose(mdp.P[0, right], [0.1, 0.8, 0.1])
    np.testing.assert_allclose(mdp.P[2, right], [0.1, 0.0, 0.9])
    np.testing.assert_array_equal(mdp.P[:, list(mdp.action_names).index("stay")], np.eye(3))


def test_colours_last_or_are_redrawn_and_count_or_do_not():
    lasting = grid_world(("..",), colours=2)
    right = list(lasting.action_names).index("right")
    np.testing.assert_array_equal(lasting.P[1, right], [0, 0, 0, 1])  # cell 0, colour 1 to cell 1, colour 1
    redrawn = grid_world(("..",), colours=2, colour_change=1.0)
    np.testing.assert_array_equal(redrawn.P[1, right], [0, 0, 0.5, 0.5])
    assert redrawn.R[0, right, 2] == 0.5
    assert grid_world(("..",), colours=2, colour_change=1.0, colour_matters=False).R[0, right, 2] == 1.0


@pytest.mark.parametrize("plan", [[], ["..", "."], ["ab"], ["##"]])
def test_a_plan_that_is_no_plan_is_refused(plan):
    with pytest.raises(GCBError, match="plan"):
        grid_world(plan)


@pytest.mark.parametrize("options", [{"slip": 1.5}, {"colours": 0}, {"colour_change": -0.1}])
def test_grid_options_out_of_range_are_refused(options):
    with pytest.raises(GCBError, match="two probabilities and a count"):
        grid_world(("..",), **options)


def test_the_same_seed_gives_the_same_random_mdp_and_twins_are_equal():
    first, second = (random_mdp(np.random.default_rng(3), states=5, twins=2, support=3) for _ in range(2))
    np.testing.assert_array_equal(first.P, second.P)
    np.testing.assert_array_equal(first.P[-2:], first.P[:2])
    with pytest.raises(GCBError, match="twins 3"):
        random_mdp(np.random.default_rng(3), states=5, twins=3)


def test_the_table_by_hand():
    mdp = drawer_button_mdp()
    names = list(mdp.state_names)

    def after(state, *actions):
        number = names.index(state)
        for action in actions:
            number = int(mdp.P[number, TABLE_ACTIONS.index(action)].argmax())
        return names[number]

    start = "layout0/colour1/middle/top0/bottom0"
    assert mdp.deterministic
    assert after(start, "left", "pull") == "layout0/colour1/left/top1/bottom0"
    assert after(start, "left", "pull", "push") == "layout0/colour1/left/top0/bottom0"
    assert after(start, "right", "push") == "layout0/colour1/right/top0/bottom1"
    assert after(start, "right", "push", "push") == "layout0/colour1/right/top0/bottom0"
    assert after(start, "pull", "push", "wait") == start
    assert after("layout1/colour0/middle/top0/bottom0", "right", "pull") == "layout1/colour0/right/top1/bottom0"
