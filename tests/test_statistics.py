import math

import pytest

from gcb.statistics import Rate


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


def test_no_trials_is_no_knowledge():
    assert Rate(0, 0).interval == (0.0, 1.0)
    assert math.isnan(Rate(0, 0).value)


def test_reads_well():
    assert str(Rate(8, 10)) == "0.800 [0.490, 0.943] (8/10)"
