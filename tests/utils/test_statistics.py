import math

import numpy as np
import pytest

from gcb.errors import GCBError
from gcb.utils.statistics import Rate, bootstrap


def test_wilson_interval_by_hand():
    # 8 of 10 with z = 1.96: centre (0.8 + 0.19207) / 1.38415 = 0.71675, half width 0.22654.
    low, high = Rate(8, 10).interval
    assert low == pytest.approx(0.4902, abs=1e-4)
    assert high == pytest.approx(0.9433, abs=1e-4)


def test_interval_stays_inside_zero_and_one_and_is_open_at_the_ends():
    low, high = Rate(0, 20).interval
    assert low == 0.0
    assert 0.1 < high < 0.2
    low, high = Rate(20, 20).interval
    assert 0.8 < low < 0.9
    assert high == 1.0


def test_no_trials_give_the_whole_interval():
    assert Rate(0, 0).interval == (0.0, 1.0)
    assert math.isnan(Rate(0, 0).value)


def test_more_successes_than_trials_are_refused():
    with pytest.raises(GCBError, match=r"successes is 4; it must be in \[0, 3\]"):
        Rate(4, 3)


def test_a_rate_as_text():
    assert str(Rate(8, 10)) == "0.800 [0.490, 0.943] (8/10)"


def test_an_estimate_has_the_statistic_of_all_rows_and_an_interval_around_it():
    values = np.array([1.0, 2.0, 3.0, 10.0])
    estimate = bootstrap(np.mean, values, resamples=200)
    assert estimate.value == 4.0
    assert estimate.samples == 4
    low, high = estimate.interval
    assert 1.0 <= low < 4.0 < high <= 10.0
    assert bootstrap(np.mean, values, resamples=200) == estimate
    assert str(estimate).startswith("4.000 [")


def test_rows_are_resampled_together():
    left = np.arange(20.0)
    estimate = bootstrap(lambda a, b: float(np.abs(a - b).max()), left, left.copy(), resamples=50)
    assert (estimate.value, estimate.interval) == (0.0, (0.0, 0.0))


def test_constants_and_nothing_have_a_number_or_none():
    assert bootstrap(np.mean, np.full(5, 3.0), resamples=20).interval == (3.0, 3.0)
    assert math.isnan(bootstrap(np.mean, np.array([])).value)
