"""Wasserstein distances: against scipy's linear programming, and by hand."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from gcb.errors import GCBError
from gcb.theory.metric import Transport, cheapest_cycle, wasserstein


def by_linear_programming(mu, nu, cost):
    rows, columns = cost.shape
    marginals = np.concatenate([np.kron(np.eye(rows), np.ones(columns)), np.kron(np.ones(rows), np.eye(columns))])
    return linprog(cost.reshape(-1), A_eq=marginals, b_eq=np.concatenate([mu, nu])).fun


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_any_problem_agrees_with_linear_programming(seed, size):
    rng = np.random.default_rng(seed)
    mu, nu = rng.multinomial(4, np.full(size, 1 / size), size=2) / 4  # with empty places and ties
    cost = rng.integers(0, 4, size=(size, size)).astype(float)
    assert wasserstein(mu, nu, cost) == pytest.approx(by_linear_programming(mu, nu, cost), abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_warm_start_gives_what_a_cold_one_gives(seed):
    rng = np.random.default_rng(seed)
    mu, nu = rng.dirichlet(np.ones(3), size=(2, 20))
    warm = Transport(mu, nu)
    costs = rng.random((20, 3, 3))
    for _ in range(4):
        np.testing.assert_allclose(warm(costs), Transport(mu, nu)(costs), atol=1e-9)
        costs = np.abs(costs + 0.05 * rng.normal(size=costs.shape))
    assert warm.solved < 4 * 20  # some plans stayed optimal and were not solved again


def test_a_plan_is_optimal_until_swapping_pays():
    straight, costs = np.eye(2)[None] / 2, np.array([[[0.0, 1.0], [1.0, 0.5]]])
    assert cheapest_cycle(straight, costs)[0] == 0.0
    costs[0, 1, 1] = 3.0  # crossing costs 1 + 1, going straight 0 + 3
    assert cheapest_cycle(straight, costs)[0] < 0.0


def test_point_masses_need_no_solver():
    problems = Transport(np.array([[1.0, 0.0]]), np.array([[0.25, 0.75]]))
    assert problems(np.array([[[1.0, 2.0], [9.0, 9.0]]]))[0] == 1.75
    assert problems.solved == 0


def test_without_pot_the_package_to_install_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(GCBError, match=r"gcb\[theory\]"):
        wasserstein(np.array([0.5, 0.5]), np.array([0.5, 0.5]), 1.0 - np.eye(2))
