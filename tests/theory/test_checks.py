"""The checks behind the verdicts, on examples small enough to see through."""

import numpy as np
import pytest

from gcb.errors import GCBError
from gcb.theory import GCMDP, grid_world, metric, on_policy, optimal_policy, random_mdp, stay_or_switch_mdp
from gcb.theory.check_arithmetic import analogy_accuracy, best_psi, grounded, unrolled_phi
from gcb.theory.check_functions import compare
from gcb.theory.check_sufficiency import (
    aggregated_q,
    limit_error,
    merge,
    on_policy_psi_classes,
    psi_classes,
    q_learning,
)
from gcb.theory.check_values import any_reward_bound, any_reward_gap, stay_or_switch_example
from gcb.theory.verdicts import Tally, as_markdown


def test_two_states_refute_proposition_4_for_goal_conditioned_policies():
    verdict = stay_or_switch_example()
    assert not verdict.holds
    assert verdict.as_expected
    assert verdict.largest_violation == pytest.approx(10.0)


def test_a_negative_alpha_refutes_proposition_4_as_printed():
    # state 0 stays, state 1 stays; reward -1 in state 0 only: V differs by 10, the printed bound is -10
    mdp, alpha = GCMDP(np.eye(2)[:, None], np.arange(2), 0.9), np.array([-1.0, 0.0])
    d = metric(on_policy(mdp, np.ones((2, 2, 1))), 0.9, scaled=False)
    assert any_reward_gap(mdp, np.ones((2, 1)), alpha)[0, 1] == pytest.approx(10.0)
    assert any_reward_bound(mdp, d, alpha)[0, 1] == pytest.approx(-10.0)
    assert any_reward_bound(mdp, d, np.abs(alpha))[0, 1] == pytest.approx(10.0)


def test_the_on_policy_abstraction_forgets_what_actions_do():
    mdp = stay_or_switch_mdp()
    assert on_policy_psi_classes(mdp).tolist() == [0, 0]
    assert len(set(psi_classes(mdp))) == 2
    R = mdp.P @ np.array([1.0, 0.0])
    # merged, either action arrives at the reward half of the time: Q = 1/2 + 0.9 Q = 5, against Q*(0, stay) = 10
    np.testing.assert_allclose(aggregated_q(mdp.P, R, 0.9, np.array([0, 0])), 5.0)
    assert limit_error(mdp, R, np.array([0, 0])) == pytest.approx(5.0)
    assert limit_error(mdp, R, np.array([0, 1])) == pytest.approx(0.0, abs=1e-9)


def test_twins_may_be_merged_and_others_not():
    mdp = random_mdp(np.random.default_rng(2), states=4, support=2, twins=1)
    R = mdp.P @ np.array([1.0, -2.0, 3.0, 0.5])
    classes = psi_classes(mdp)
    assert classes[0] == classes[3]
    assert limit_error(mdp, R, classes) < 1e-9
    assert limit_error(mdp, R, merge(classes, 0, 1)) > 0.1


def test_merging_keeps_numbers_without_gaps():
    assert merge(np.array([0, 1, 2, 1]), 0, 1).tolist() == [0, 0, 1, 0]


def test_q_learning_on_samples_nears_its_limit():
    mdp = grid_world(("..",), gamma=0.5, slip=0.2)
    curve = q_learning(np.random.default_rng(0), mdp, np.array([0.0, 1.0]), np.arange(2), 3000, "every state")
    assert curve.limit < 1e-9
    assert curve.error[-1] < 0.02 < curve.error[0]


def test_the_unrolled_phi_is_an_isometry():
    mdp = grid_world(("...", ".#."))
    process = on_policy(mdp, optimal_policy(mdp))
    for weight in (0.0, 2.0):
        phi = unrolled_phi(process, 0.8, scaled=True, action_weight=weight)
        distances = np.abs(phi[:, None] - phi).sum(axis=-1)
        np.testing.assert_allclose(distances, metric(process, 0.8, scaled=True, action_weight=weight), atol=1e-5)
    slippery = grid_world(("...",), slip=0.2)
    with pytest.raises(GCBError, match="deterministic"):
        unrolled_phi(on_policy(slippery, optimal_policy(slippery)), 0.8, scaled=True)


def test_the_arithmetic_cannot_hold_in_a_corridor():
    mdp = grid_world(("...",))
    phi = unrolled_phi(on_policy(mdp, optimal_policy(mdp)), 0.5, scaled=False)
    offsets = grounded(mdp, phi)
    assert np.abs(offsets[0, 1]).sum() == 0.0  # one step before the goal is as good as at it
    assert np.abs(offsets[0, 2]).sum() == pytest.approx(1.0)
    psi, unexplained = best_psi(mdp, phi)
    assert unexplained == pytest.approx(1.0)
    np.testing.assert_allclose(psi - psi[0], 0.0, atol=1e-12)


def test_displacement_as_phi_makes_the_arithmetic_perfect():
    mdp = grid_world(("....",))
    cells = np.argwhere(np.ones((1, 4)))
    phi = (cells[:, None, 1] - cells[None, :, 1]).reshape(-1, 1).astype(float) * -1.0
    psi, unexplained = best_psi(mdp, phi)
    assert unexplained == pytest.approx(0.0, abs=1e-12)
    assert analogy_accuracy(mdp, phi, psi, cells) == 1.0
    assert analogy_accuracy(mdp, 0 * phi, 0 * psi, cells) == pytest.approx(0.25)


def test_what_is_told_apart_on_the_table():
    reward_only, with_actions, every_action = compare(c=0.9)
    assert reward_only.distances.max() == 0.0
    # open: left, pull. close: left, push. press: right, push. scaled by 1 - c = 0.1
    assert with_actions.functions() == pytest.approx([0.1 * 0.9, 0.1 * (1 + 0.9), 0.1])
    assert with_actions.analogies(", other colour") == [0.0, 0.0, 0.0]
    assert with_actions.analogies(", mirrored") == pytest.approx([0.1] * 3)
    assert with_actions.between("close", "press, mirrored") == 0.0
    assert min(every_action.functions()) > 0.5
    assert every_action.analogies(", other colour") == [0.0, 0.0, 0.0]


def test_a_tally_counts_only_what_exceeds_its_tolerance():
    tally = Tally("somewhere", "1 ≤ 2 | 3", tolerance=0.1)
    for gap in (0.05, -1.0, 0.3):
        tally.add(gap)
    verdict = tally.verdict("a note")
    assert (verdict.violations, verdict.cases, verdict.largest_violation) == (1, 3, 0.3)
    assert verdict.word == "fails (!)"
    assert "| 1 ≤ 2 \\| 3 | **fails (!)** | 1 of 3 | 0.3 | a note |" in as_markdown([verdict])
