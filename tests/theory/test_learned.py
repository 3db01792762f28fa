"""Learned against exact: a few steps on a very small grid."""

import numpy as np
import pytest

from gcb.theory.learned import MIXED, ONE_NORM_EMA, check_learned, train

PLAN = ("....",)


def test_the_one_norm_on_both_sides_learns_the_metric():
    one_norm = train(ONE_NORM_EMA, steps=300, every=100, plan=PLAN)
    assert one_norm.correlation[-1] > 0.98
    assert one_norm.error[-1] < 0.2 < one_norm.error[0]
    assert one_norm.effective_discount == pytest.approx(0.9)
    assert check_learned(one_norm).as_expected
    assert one_norm.best_unexplained <= one_norm.unexplained[-1] + 1e-6  # no ψ is better than the best one


def test_mixed_norms_learn_the_metric_of_a_smaller_discount():
    curve = train(MIXED, steps=300, every=100, plan=PLAN)
    assert curve.effective_discount < 0.3
    assert curve.effective_correlation > 0.98 > curve.correlation[-1]
    assert curve.error[-1] > 0.2
    assert check_learned(curve).as_expected


def test_a_seed_repeats():
    first, second = (train(ONE_NORM_EMA, steps=5, every=5, plan=PLAN, seed=7) for _ in range(2))
    np.testing.assert_array_equal(first.learned, second.learned)
    other = train(ONE_NORM_EMA, steps=5, every=5, plan=PLAN, seed=8)
    assert not np.array_equal(first.learned, other.learned)
