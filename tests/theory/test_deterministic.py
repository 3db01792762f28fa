"""The closed form for deterministic MDPs against the general operator."""

import numpy as np
import pytest
from helpers.generated import mdps_and_policies
from hypothesis import given, settings
from hypothesis import strategies as st

from gcb.errors import GCBError
from gcb.theory import all_actions, grid_world, metric, on_policy, optimal_policy, random_mdp, uniform_policy
from gcb.theory.deterministic import by_doubling, iterate_blocked


@settings(max_examples=30, deadline=None)
@given(mdps_and_policies(deterministic=True), st.booleans(), st.sampled_from([0.5, 0.9]))
def test_blocks_and_doubling_agree_with_the_operator(drawn, scaled, c):
    mdp, policy = drawn
    process = on_policy(mdp, policy)
    exact = metric(process, c, scaled=scaled)
    for solve in (iterate_blocked, by_doubling):
        found = solve(process, c, scaled=scaled)
        assert np.abs(found.distances - exact).max() <= found.error_bound + 1e-9 <= 1.2e-4


def test_more_rows_than_a_block_agree_too():
    mdp = random_mdp(np.random.default_rng(0), states=14, support=1)
    process = on_policy(mdp, optimal_policy(mdp))
    exact = metric(process, 0.9, scaled=False)
    blocked, doubled = (solve(process, 0.9, scaled=False) for solve in (iterate_blocked, by_doubling))
    np.testing.assert_allclose(blocked.distances, exact, atol=2e-4)
    np.testing.assert_allclose(doubled.distances, exact, atol=2e-4)
    assert doubled.iterations < blocked.iterations / 10


@pytest.mark.parametrize("solve", [iterate_blocked, by_doubling])
def test_what_has_no_closed_form_is_refused(solve):
    mdp = grid_world(("..",))
    for process in (all_actions(mdp), on_policy(mdp, uniform_policy(mdp))):
        with pytest.raises(GCBError, match="closed form"):
            solve(process, 0.9, scaled=True)
    with pytest.raises(GCBError, match=r"c is 1\.5"):
        solve(on_policy(mdp, optimal_policy(mdp)), 1.5, scaled=True)
