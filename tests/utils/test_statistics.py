import math

import numpy as np
import pytest

from gcb.errors import GCBError
from gcb.utils.statistics import Rate, bootstrap, paired_difference


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


def test_a_paired_difference_by_hand():
    # The differences are 1, 0, 0, -1, 1, 1, 0, 0: mean .25; the sum of squares 4 - 8 · .25² = 3.5, over 7 is .5.
    first = [True, True, False, False, True, True, False, True]
    second = [False, True, False, True, False, False, False, True]
    estimate = paired_difference(first, second)
    assert (estimate.value, estimate.samples) == (0.25, 8)
    # 1.96 · √(.5 / 8) = .49.
    assert estimate.interval == pytest.approx((-0.24, 0.74), abs=1e-4)
    reverse = paired_difference(second, first)
    assert reverse.value == -0.25
    assert reverse.interval == pytest.approx((-0.74, 0.24), abs=1e-4)


def test_the_episode_is_the_unit_of_a_paired_difference():
    # Per episode the first agent succeeds in 1, .5, .5, 0 of its two seeds, the second in 0, 1, 0, 0 of its one.
    first = [[True, True, False, False], [True, False, True, False]]
    second = [[False, True, False, False]]
    estimate = paired_difference(first, second)
    assert (estimate.value, estimate.samples) == (0.25, 4)  # the differences are 1, -.5, .5, 0
    # The sum of squares 1.5 - 4 · .25² = 1.25, over 3 is .41667; 1.96 · √(.41667 / 4) = .63257.
    assert estimate.interval == pytest.approx((0.25 - 0.63257, 0.25 + 0.63257), abs=1e-4)
    assert paired_difference(first * 3, second * 3) == estimate  # copies of seeds are no further evidence


def test_pairing_is_more_precise_than_two_separate_rates():
    successes = np.arange(100) < 50
    better = np.arange(100) < 55
    low, high = paired_difference(better, successes).interval
    assert 0 < low < 0.05 < high < 0.1
    (_, separate_high), (separate_low, _) = Rate(50, 100).interval, Rate(55, 100).interval
    assert separate_low < separate_high


def test_a_paired_difference_stays_between_minus_one_and_one():
    assert paired_difference([True, True, True], [False, False, True]).interval[1] == 1.0
    assert paired_difference([True, False], [True, False]).interval == (0.0, 0.0)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([True, False], [True, False, True], "the agents have 2 and 3 episodes"),
        ([[True, False]] * 2, [True], "the agents have 2 and 1 episodes"),
        ([True], [False], "there are 1 episodes; an interval needs at least 2"),
        ([], [], "there are 0 episodes"),
    ],
)
def test_a_paired_difference_needs_the_same_episodes(first, second, message):
    with pytest.raises(GCBError, match=message):
        paired_difference(first, second)
