"""Hypothesis strategies: whole GCMDPs with whole-number odds, and policies for them."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gcb.theory import GCMDP
from gcb.theory.gcmdp import Floats


@st.composite
def mdps(draw: st.DrawFn, *, deterministic: bool = False, all_goals: bool = False) -> GCMDP:
    """Two to four states, one to three actions, any goals."""
    states, actions = draw(st.integers(2, 4)), draw(st.integers(1, 3))
    if deterministic:
        after = draw(arrays.arrays(np.int64, (states, actions), elements=st.integers(0, states - 1)))
        P = np.eye(states)[after]
    else:
        odds = draw(arrays.arrays(np.int64, (states, actions, states), elements=st.integers(0, 3)))
        odds = np.where(odds.sum(axis=2, keepdims=True) == 0, 1, odds)
        P = odds / odds.sum(axis=2, keepdims=True)
    numbers = st.integers(0, states - 1)
    goals = list(range(states)) if all_goals else draw(st.lists(numbers, min_size=1, max_size=3, unique=True))
    return GCMDP(P, np.asarray(goals), draw(st.sampled_from([0.3, 0.7, 0.9])))


@st.composite
def mdps_and_policies(draw: st.DrawFn, *, deterministic: bool = False) -> tuple[GCMDP, Floats]:
    """A MDP and a policy π[s, g, a] with whole-number odds; a deterministic one where the MDP is."""
    mdp = draw(mdps(deterministic=deterministic))
    shape = (mdp.states, len(mdp.goals))
    if deterministic:
        action = draw(arrays.arrays(np.int64, shape, elements=st.integers(0, mdp.actions - 1)))
        return mdp, np.eye(mdp.actions)[action]
    odds = draw(arrays.arrays(np.int64, (*shape, mdp.actions), elements=st.integers(1, 3)))
    return mdp, odds / odds.sum(axis=2, keepdims=True)
