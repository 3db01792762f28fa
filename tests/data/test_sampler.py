"""Batches: every index, reward and end worked out by hand on the two episodes drawn in gcb/data/store.py."""

import json

import numpy as np
import pytest
from helpers.by_hand import two_episodes

from gcb.data import Dataset, GoalKind, GoalSampling, Sampler, write_dataset
from gcb.data.sampler import failures
from gcb.errors import GCBError

STATE_OF = {0: 0, 1: 1, 2: 2, 3: 5, 4: 6}
"""The frame that each transition starts from."""
FUTURE_OF = {0: {1, 2, 3}, 1: {2, 3}, 2: {3}, 3: {6, 7}, 4: {7}}
EARLIER_OF = {0: {0}, 1: {0, 1}, 2: {0, 1, 2}, 3: {5}, 4: {5, 6}}
ORIGINAL_OF = {0: 4, 1: 4, 2: 4, 3: 8, 4: 8}
ONLY = {
    "original": GoalSampling(1, 0, 0, 0),
    "future": GoalSampling(0, 1, 0, 0),
    "next_frame": GoalSampling(0, 0, 1, 0),
    "random": GoalSampling(0, 0, 0, 1),
}


def sampler(shares: GoalSampling | None = None, seed: int = 0, data: Dataset | None = None, **options) -> Sampler:
    data = two_episodes() if data is None else data
    return Sampler(data, shares or GoalSampling(), np.random.default_rng(seed), **options)


def drawn(shares: GoalSampling, values: str) -> dict[int, set[int]]:
    """For each transition, every value that one of the batch's indices took."""
    indices = sampler(shares).draw(2000)
    found: dict[int, set[int]] = {transition: set() for transition in STATE_OF}
    for transition, value in zip(indices.transition, getattr(indices, values), strict=True):
        found[int(transition)].add(int(value))
    return found


def as_sets(values: dict[int, int]) -> dict[int, set[int]]:
    return {key: {value} for key, value in values.items()}


def test_states_follow_each_other_within_an_episode() -> None:
    assert drawn(GoalSampling(), "state") == as_sets(STATE_OF)
    assert drawn(GoalSampling(), "next_state") == as_sets({key: state + 1 for key, state in STATE_OF.items()})
    assert drawn(GoalSampling(), "initial_state") == {0: {0}, 1: {0}, 2: {0}, 3: {5}, 4: {5}}
    assert drawn(GoalSampling(), "earlier") == EARLIER_OF


def test_each_kind_of_goal_reaches_every_frame_it_may_and_no_other() -> None:
    assert drawn(ONLY["original"], "goal") == as_sets(ORIGINAL_OF)
    assert drawn(ONLY["future"], "goal") == FUTURE_OF
    assert drawn(ONLY["next_frame"], "goal") == as_sets({key: state + 1 for key, state in STATE_OF.items()})
    assert drawn(ONLY["random"], "goal") == {transition: set(range(9)) for transition in STATE_OF}


def test_at_an_episodes_end_the_goal_is_its_own_last_frame() -> None:
    """Without goals between them the next episode's first frame follows at once; it must never be taken."""
    data = Dataset.from_arrays(np.arange(7), np.zeros((5, 1)), [3, 2])
    batch = sampler(GoalSampling(0, 0.5, 0.5, 0), data=data).sample(500)
    last = batch.indices.transition == 2
    assert last.any()
    assert set(batch.next_state[last]) == set(batch.goal[last]) == {3}
    assert batch.reward[last].all()
    assert batch.terminal[last].all()


def test_rewards_of_original_goals_are_the_datasets() -> None:
    batch = sampler(ONLY["original"]).sample(500)
    at_success = batch.indices.transition == 2
    np.testing.assert_array_equal(batch.reward, at_success)
    np.testing.assert_array_equal(batch.terminal, at_success)  # episode 1 ran out of time: its end is no end


@pytest.mark.parametrize("kind", ["future", "next_frame", "random"])
def test_rewards_of_relabelled_goals_mean_the_next_frame(kind: str) -> None:
    batch = sampler(ONLY[kind]).sample(500)
    reached = batch.indices.goal == batch.indices.next_state
    assert reached.any()
    assert reached.all() == (kind == "next_frame")
    np.testing.assert_array_equal(batch.reward, reached)
    np.testing.assert_array_equal(batch.terminal, reached)
    assert batch.reward.dtype == np.float32
    assert batch.terminal.dtype == bool


def test_mixed_batches_reward_each_sample_by_its_own_kind() -> None:
    batch = sampler(GoalSampling(0.4, 0.3, 0.2, 0.1)).sample(2000)
    for sample in range(2000):
        transition, kind = batch.indices.transition[sample], batch.goal_kind[sample]
        if kind == GoalKind.ORIGINAL:
            expected = transition == 2
        else:
            expected = batch.indices.goal[sample] == STATE_OF[int(transition)] + 1
        assert batch.reward[sample] == batch.terminal[sample] == expected


def test_frames_and_actions_are_those_of_the_indices() -> None:
    batch = sampler().sample(64)
    for frames, index in (
        (batch.state, batch.indices.state),
        (batch.next_state, batch.indices.next_state),
        (batch.goal, batch.indices.goal),
    ):
        assert frames.shape == (64, 2, 2, 3)
        assert frames.dtype == np.uint8
        assert (frames == index[:, None, None, None]).all()  # frame f is full of f
    np.testing.assert_array_equal(batch.action[:, 0], batch.indices.transition)


def test_gathering_fetches_first_and_earlier_frames() -> None:
    one = sampler()
    indices = one.draw(32)
    assert (one.gather(indices.earlier)[:, 0, 0, 0] == indices.earlier).all()
    with pytest.raises(GCBError, match="no frame -1"):
        one.gather(np.array([3, -1]))


def test_shares_are_kept() -> None:
    shares = GoalSampling(0.4, 0.3, 0.2, 0.1)
    kinds = np.bincount(sampler(shares).draw(40_000).goal_kind, minlength=4) / 40_000
    np.testing.assert_allclose(kinds, [0.4, 0.3, 0.2, 0.1], atol=0.01)  # 4 standard deviations


def test_future_goals_are_uniform_or_geometric() -> None:
    data = Dataset.from_arrays(np.arange(4), np.zeros((3, 1)), [3])
    for discount, expected in ((None, [1 / 3, 1 / 3, 1 / 3]), (0.5, [4 / 7, 2 / 7, 1 / 7])):
        indices = sampler(ONLY["future"], data=data, future_discount=discount).draw(90_000)
        goals = indices.goal[indices.transition == 0]
        np.testing.assert_allclose(np.bincount(goals, minlength=4)[1:] / len(goals), expected, atol=0.012)


@pytest.mark.parametrize("discount", [1e-9, 0.5, 1 - 1e-9])
def test_geometric_goals_stay_in_the_episode(discount: float) -> None:
    indices = sampler(ONLY["future"], future_discount=discount).draw(500)
    for transition, goal in zip(indices.transition, indices.goal, strict=True):
        assert goal in FUTURE_OF[transition]


def test_the_seed_decides_every_batch() -> None:
    first, same, other = sampler(seed=1).sample(64), sampler(seed=1).sample(64), sampler(seed=2).sample(64)
    for name in ("state", "goal", "action", "reward", "goal_kind"):
        np.testing.assert_array_equal(getattr(first, name), getattr(same, name))
    assert not np.array_equal(first.indices.transition, other.indices.transition)


def test_a_saved_sampler_goes_on_with_the_same_batches() -> None:
    one = sampler(seed=1)
    one.sample(33)
    saved = json.loads(json.dumps(one.state_dict()))
    expected = [one.draw(17) for _ in range(3)]
    other = sampler(seed=99)
    other.load_state_dict(saved)
    for indices in expected:
        again = other.draw(17)
        for name in ("transition", "goal_kind", "goal", "earlier"):
            np.testing.assert_array_equal(getattr(again, name), getattr(indices, name))


@pytest.mark.parametrize("state", [{}, {"rng": 3}, {"rng": {"bit_generator": "MT19937"}}])
def test_a_foreign_state_is_refused(state: dict) -> None:
    with pytest.raises(GCBError, match="not the state of a sampler on a PCG64 generator"):
        sampler().load_state_dict(state)


def test_memory_maps_give_the_same_batches_as_memory(tmp_path) -> None:
    data = two_episodes()
    on_disk = sampler(data=write_dataset(data, tmp_path / "data")).sample(64)
    in_memory = sampler(data=data).sample(64)
    np.testing.assert_array_equal(on_disk.goal, in_memory.goal)
    assert type(on_disk.goal) is type(on_disk.action) is np.ndarray


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ((0.5, 0.4, 0.2, 0), "add up to 1.1; they must add up to 1"),
        ((1.5, -0.5, 0, 0), "p_original is 1.5"),
        ((0.5, 0.6, -0.1, 0), "p_next_frame is -0.1"),
        ((float("nan"), 1, 0, 0), "p_original is nan"),
    ],
)
def test_impossible_shares_are_named(shares: tuple, message: str) -> None:
    with pytest.raises(GCBError, match=message):
        GoalSampling(*shares)


def test_original_goals_must_be_there() -> None:
    for changes, message in (
        ({"episode_goal_frame": [-1, 8]}, "1 of the 2 episodes of the dataset have no goal"),
        ({"rewards": None}, "has no rewards"),
    ):
        data = two_episodes(**changes)
        with pytest.raises(GCBError, match=message):
            sampler(data=data)
        without = GoalSampling().without_original()
        assert (without.p_original, without.p_future) == (0, 0.9)
        assert (sampler(without, data=data).draw(100).goal_kind != GoalKind.ORIGINAL).all()


def test_impossible_settings_are_named() -> None:
    with pytest.raises(GCBError, match="future_discount is 1"):
        sampler(future_discount=1)
    with pytest.raises(GCBError, match="batch_size is 0"):
        sampler().sample(0)


def test_only_successful_leaves_out_the_episodes_that_failed() -> None:
    data = two_episodes(episode_success=[True, False])
    assert set(sampler(data=data, only_successful=True).draw(500).transition) == {0, 1, 2}
    assert set(sampler(data=data).draw(500).transition) == {0, 1, 2, 3, 4}


def test_what_only_successful_leaves_out_in_words() -> None:
    said = failures(two_episodes(episode_success=[True, False]))
    assert said == "1 of 2 episodes (40% of the transitions) did not reach their goal"
    assert failures(two_episodes(episode_success=[True, True])) is None
    assert failures(two_episodes(episode_success=None)) is None


def test_only_successful_needs_a_success() -> None:
    with pytest.raises(GCBError, match="only_successful"):
        sampler(data=two_episodes(episode_success=[False, False]), only_successful=True)


def test_only_successful_changes_nothing_where_success_is_not_known() -> None:
    data = two_episodes(episode_success=None)
    chosen, all_of_them = sampler(data=data, only_successful=True).draw(50), sampler(data=data).draw(50)
    assert (chosen.transition == all_of_them.transition).all()


def test_staying_is_the_last_frame_of_a_reached_goal_without_action() -> None:
    data = two_episodes(episode_success=[True, False], terminated=[False, False, True, False, False])
    batch = sampler(data=data, p_absorbing=0.5).sample(1000)
    indices, stays = batch.indices, batch.indices.stays
    assert 400 < stays.sum() < 600
    assert set(indices.state[stays]) == set(indices.next_state[stays]) == {3}
    assert set(indices.goal[stays]) == {4}
    assert set(indices.initial_state[stays]) == {0}
    assert set(indices.earlier[stays]) == {0, 1, 2, 3}
    assert not batch.action[stays].any()
    assert batch.terminal[stays].all()
    assert (indices.next_state[~stays] == indices.state[~stays] + 1).all()
    assert (batch.action[~stays] == np.asarray(data.actions)[indices.transition[~stays]]).all()


def test_staying_needs_reached_goals() -> None:
    unknown = two_episodes(episode_success=None)
    assert not sampler(data=unknown, p_absorbing=0.5).draw(100).stays.any()
    assert not sampler(ONLY["future"], p_absorbing=0.5).draw(100).stays.any()
    with pytest.raises(GCBError, match="p_absorbing is 1"):
        sampler(p_absorbing=1)
