"""Sampled batches: indices, rewards and terminals worked out by hand on the two episodes of gcb/data/store.py."""

import json

import numpy as np
import pytest
from helpers.by_hand import two_episodes

from gcb.data import Batch, Dataset, GoalKind, GoalSampling, Indices, Sampler, write_dataset
from gcb.data.sampler import describe_failures
from gcb.errors import GCBError

STATE_OF = {0: 0, 1: 1, 2: 2, 3: 5, 4: 6}
"""The frame that each transition starts from."""
FUTURE_OF = {0: {1, 2, 3}, 1: {2, 3}, 2: {3}, 3: {6, 7}, 4: {7}}
ORIGINAL_OF = {0: 4, 1: 4, 2: 4, 3: 8, 4: 8}
ONLY = {
    "original": GoalSampling(1, 0, 0, 0),
    "future": GoalSampling(0, 1, 0, 0),
    "next_frame": GoalSampling(0, 0, 1, 0),
    "random": GoalSampling(0, 0, 0, 1),
}
EPISODE_OF = np.array([0, 0, 0, 1, 1])
ALL_KINDS = GoalSampling(0.4, 0.3, 0.2, 0.1)


def sampler(goals: GoalSampling | None = None, seed: int = 0, data: Dataset | None = None, **options) -> Sampler:
    data = two_episodes() if data is None else data
    return Sampler(data, goals or GoalSampling(), np.random.default_rng(seed), **options)


def sampled(goals: GoalSampling, name: str) -> dict[int, set[int]]:
    """Return every value that one of a batch's indices takes, by transition."""
    indices = sampler(goals).sample_indices(2000)
    values: dict[int, set[int]] = {transition: set() for transition in STATE_OF}
    for transition, value in zip(indices.transition.flat, getattr(indices, name).flat, strict=True):
        values[int(transition)].add(int(value))
    return values


def indices_of(batch: Batch) -> Indices:
    assert batch.indices is not None
    return batch.indices


def first_transition(batch: Batch) -> np.ndarray:
    """Return the first transition of each group."""
    return indices_of(batch).transition[:, 0]


def as_sets(values: dict[int, int]) -> dict[int, set[int]]:
    return {key: {value} for key, value in values.items()}


def test_states_are_consecutive_frames_of_an_episode() -> None:
    assert sampled(GoalSampling(), "state") == as_sets(STATE_OF)
    assert sampled(GoalSampling(), "next_state") == as_sets({key: state + 1 for key, state in STATE_OF.items()})
    assert sampled(GoalSampling(), "initial_state") == {0: {0}, 1: {0}, 2: {0}, 3: {5}, 4: {5}}


def test_each_kind_of_goal_covers_exactly_its_frames() -> None:
    assert sampled(ONLY["original"], "goal") == as_sets(ORIGINAL_OF)
    assert sampled(ONLY["future"], "goal") == FUTURE_OF
    assert sampled(ONLY["next_frame"], "goal") == as_sets({key: state + 1 for key, state in STATE_OF.items()})
    assert sampled(ONLY["random"], "goal") == {transition: set(range(9)) for transition in STATE_OF}


def test_goals_at_the_end_of_an_episode_are_its_own_last_frame() -> None:
    """Without goal frames in between, the next episode's first frame follows directly; it must never be a goal."""
    data = Dataset.from_arrays(np.arange(7), np.zeros((5, 1)), [3, 2])
    batch = sampler(GoalSampling(0, 0.5, 0.5, 0), data=data).sample(500)
    last = first_transition(batch) == 2
    assert last.any()
    assert set(batch.next_state[last]) == set(batch.goal[last]) == {3}
    assert batch.reward[last].all()
    assert batch.terminal[last].all()


@pytest.mark.parametrize("group_size", [1, 2])
def test_original_goals_have_the_rewards_of_the_dataset(group_size: int) -> None:
    batch = sampler(ONLY["original"], group_size=group_size).sample(500)
    at_success = first_transition(batch) == 2
    np.testing.assert_array_equal(batch.reward, at_success)
    np.testing.assert_array_equal(batch.terminal, at_success)  # episode 1 ended by a time-out


@pytest.mark.parametrize("group_size", [1, 2])
@pytest.mark.parametrize("kind", ["future", "next_frame", "random"])
def test_relabelled_goals_are_rewarded_if_they_are_the_next_frame(kind: str, group_size: int) -> None:
    batch = sampler(ONLY[kind], group_size=group_size).sample(500)
    reached = indices_of(batch).goal == indices_of(batch).next_state
    assert reached.any()
    assert reached.all() == (kind == "next_frame")
    np.testing.assert_array_equal(batch.reward, reached)
    np.testing.assert_array_equal(batch.terminal, reached)
    assert batch.reward.dtype == np.float32
    assert batch.terminal.dtype == bool


@pytest.mark.parametrize("group_size", [1, 2])
def test_mixed_batches_reward_each_group_by_its_kind_of_goal(group_size: int) -> None:
    batch = sampler(ALL_KINDS, group_size=group_size).sample(2000)
    for group, (transition, kind) in enumerate(zip(first_transition(batch), indices_of(batch).goal_kind, strict=True)):
        if kind == GoalKind.ORIGINAL:
            expected = transition == 2
        else:
            expected = indices_of(batch).goal[group] == STATE_OF[int(transition)] + 1
        assert batch.reward[group] == batch.terminal[group] == expected


@pytest.mark.parametrize("group_size", [1, 4])
def test_frames_and_actions_match_the_indices(group_size: int) -> None:
    batch = sampler(group_size=group_size).sample(64, extra_frames=["initial_state"])
    assert len(batch.state) == 64
    assert len(batch.next_state) == len(batch.goal) == len(batch.reward) == 64 // group_size
    for name, frames in batch.frames().items():
        index = getattr(indices_of(batch), name).reshape(-1)
        assert frames.shape == (len(index), 2, 2, 3)
        assert frames.dtype == np.uint8
        assert (frames == index[:, None, None, None]).all()  # all pixels of frame f are f
    np.testing.assert_array_equal(batch.action[:, 0], indices_of(batch).transition.reshape(-1))


# ---- groups ---------------------------------------------------------------------------------------------------------


def test_transitions_of_a_group_are_of_one_episode() -> None:
    indices = sampler(ALL_KINDS, group_size=3).sample_indices(6000)
    assert indices.transition.shape == indices.state.shape == (2000, 3)
    episodes = EPISODE_OF[indices.transition]
    assert (episodes == episodes[:, :1]).all()
    assert set(episodes[:, 0]) == {0, 1}
    np.testing.assert_array_equal(indices.state, np.vectorize(STATE_OF.get)(indices.transition))
    np.testing.assert_array_equal(indices.next_state, indices.state[:, 0] + 1)
    np.testing.assert_array_equal(indices.initial_state, np.where(episodes[:, 0], 5, 0))


@pytest.mark.parametrize("kind", ["original", "random"])
def test_groups_with_goals_beyond_the_episode_cover_it_uniformly(kind: str) -> None:
    """Any two transitions of a group are independent: each of the 3 × 3 pairs of episode 0 is equally likely."""
    transition = sampler(ONLY[kind], group_size=3).sample_indices(60_000).transition
    long = transition[transition[:, 0] < 3]
    assert len(long) / len(transition) == pytest.approx(3 / 5, abs=0.02)
    for first, second in ((0, 1), (0, 2), (1, 2)):
        pairs = np.bincount(3 * long[:, first] + long[:, second], minlength=9) / len(long)
        np.testing.assert_allclose(pairs, 1 / 9, atol=0.012)  # 4 standard deviations


@pytest.mark.parametrize("discount", [None, 0.5])
@pytest.mark.parametrize("kind", ["future", "next_frame"])
def test_groups_with_hindsight_goals_precede_their_goal(kind: str, discount: float | None) -> None:
    indices = sampler(ONLY[kind], group_size=3, future_discount=discount).sample_indices(6000)
    assert (indices.state < indices.goal[:, None]).all()
    assert (indices.goal <= np.where(indices.initial_state, 7, 3)).all()
    for goal, states in ((1, {0}), (2, {0, 1}), (3, {0, 1, 2}), (6, {5}), (7, {5, 6})):
        assert set(indices.state[indices.goal == goal][:, 1:].flat) == states


def final_sampler(goals: GoalSampling, p_final_state: float, **changes) -> Sampler:
    """Sample groups of three transitions; the first episode reached its goal, the second one did not."""
    data = two_episodes(**{"episode_success": [True, False], **changes})
    return sampler(goals, data=data, group_size=3, p_final_state=p_final_state)


def test_final_states_are_the_last_of_an_episode_that_reached_its_own_goal_or_that_goal() -> None:
    batch = final_sampler(ALL_KINDS, 0.5).sample(30_000, extra_frames=["initial_state"])
    indices, final = indices_of(batch), indices_of(batch).final
    np.testing.assert_array_equal(batch.final, final.reshape(-1))
    assert not final[:, 0].any()  # what needs the next state is computed for the first transition
    possible = (indices.goal_kind == GoalKind.ORIGINAL) & (indices.initial_state == 0)
    assert not final[~possible].any()
    assert final[possible, 1:].mean() == pytest.approx(0.5, abs=0.02)
    assert set(indices.state[final]) == {3, 4}
    assert (indices.state[final] == 4).mean() == pytest.approx(0.5, abs=0.02)
    assert set(indices.transition[final]) == {2}  # it stands in: there is no action
    assert (batch.state[batch.final] == indices.state[final][:, None, None, None]).all()
    assert set(indices.goal[final.any(1)]) == {4}
    others = indices.state[~final & (indices.initial_state == 0)[:, None]]
    assert set(others) == {0, 1, 2}


def test_final_states_do_not_change_the_other_transitions() -> None:
    without, some = (final_sampler(ALL_KINDS, p).sample_indices(3000) for p in (0.0, 0.5))
    assert not without.final.any()
    for name in ("transition", "state"):
        np.testing.assert_array_equal(getattr(some, name)[~some.final], getattr(without, name)[~some.final])
    for name in ("next_state", "goal", "goal_kind", "initial_state"):
        np.testing.assert_array_equal(getattr(some, name), getattr(without, name))


@pytest.mark.parametrize(
    "changes",
    [
        {"episode_success": None},
        {"episode_success": [False, False]},
        {"terminated": [False] * 5},
        {"terminated": None, "rewards": None, "goals": "future"},
    ],
)
def test_without_recorded_success_no_state_is_final(changes: dict) -> None:
    goals = ONLY[changes.pop("goals", "original")]
    assert not final_sampler(goals, 1.0, **changes).sample_indices(300).final.any()


@pytest.mark.parametrize("group_size", [1, 2, 4])
def test_some_rows_equal_the_same_part_of_the_whole_batch(group_size: int) -> None:
    settings = {"group_size": group_size, "p_final_state": 0.5, "data": two_episodes(episode_success=[True, False])}
    whole = sampler(ALL_KINDS, **settings).sample(32, extra_frames=["initial_state"])
    parts = [
        sampler(ALL_KINDS, **settings).sample(32, rows, ["initial_state"])
        for rows in (slice(0, 8), slice(8, 24), slice(24, None))
    ]
    assert [len(part.state) for part in parts] == [8, 16, 8]
    for name in ("state", "next_state", "goal", "initial_state", "action", "final", "reward", "terminal"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, name), name)
    joined = np.concatenate([indices_of(part).transition for part in parts])
    np.testing.assert_array_equal(joined, indices_of(whole).transition)


def test_extra_frames_are_read_on_request() -> None:
    assert sampler().sample(32).initial_state is None
    batch = sampler().sample(32, extra_frames=["initial_state"])
    assert batch.initial_state is not None
    assert (batch.initial_state[:, 0, 0, 0] == indices_of(batch).initial_state).all()
    assert list(batch.frames()) == ["state", "next_state", "goal", "initial_state"]
    with pytest.raises(GCBError, match="no frame -1"):
        sampler().gather(np.array([3, -1]))


def test_goal_probabilities_are_respected() -> None:
    kinds = np.bincount(sampler(ALL_KINDS).sample_indices(40_000).goal_kind, minlength=4) / 40_000
    np.testing.assert_allclose(kinds, [0.4, 0.3, 0.2, 0.1], atol=0.01)  # 4 standard deviations


def test_future_goals_are_uniform_or_geometric() -> None:
    data = Dataset.from_arrays(np.arange(4), np.zeros((3, 1)), [3])
    for discount, expected in ((None, [1 / 3, 1 / 3, 1 / 3]), (0.5, [4 / 7, 2 / 7, 1 / 7])):
        indices = sampler(ONLY["future"], data=data, future_discount=discount).sample_indices(90_000)
        goals = indices.goal[indices.transition[:, 0] == 0]
        np.testing.assert_allclose(np.bincount(goals, minlength=4)[1:] / len(goals), expected, atol=0.012)


@pytest.mark.parametrize("discount", [1e-9, 0.5, 1 - 1e-9])
def test_geometric_goals_stay_in_the_episode(discount: float) -> None:
    indices = sampler(ONLY["future"], future_discount=discount).sample_indices(500)
    for transition, goal in zip(indices.transition.flat, indices.goal, strict=True):
        assert goal in FUTURE_OF[int(transition)]


def test_the_same_seed_gives_the_same_batches() -> None:
    first, same, other = sampler(seed=1).sample(64), sampler(seed=1).sample(64), sampler(seed=2).sample(64)
    for name in ("state", "goal", "action", "reward"):
        np.testing.assert_array_equal(getattr(first, name), getattr(same, name))
    assert not np.array_equal(indices_of(first).transition, indices_of(other).transition)


def test_a_restored_sampler_continues_with_the_same_batches() -> None:
    original = sampler(seed=1, group_size=3)
    original.sample(33)
    saved = json.loads(json.dumps(original.state_dict()))
    expected = [original.sample_indices(18) for _ in range(3)]
    restored = sampler(seed=99, group_size=3)
    restored.load_state_dict(saved)
    for indices in expected:
        again = restored.sample_indices(18)
        for name in ("transition", "goal_kind", "goal", "initial_state"):
            np.testing.assert_array_equal(getattr(again, name), getattr(indices, name))


@pytest.mark.parametrize("state", [{}, {"rng": 3}, {"rng": {"bit_generator": "MT19937"}}])
def test_an_invalid_state_is_refused(state: dict) -> None:
    with pytest.raises(GCBError, match="not the state of a sampler on a PCG64 generator"):
        sampler().load_state_dict(state)


def test_memory_maps_give_the_same_batches_as_arrays(tmp_path) -> None:
    data = two_episodes()
    on_disk = sampler(data=write_dataset(data, tmp_path / "data")).sample(64)
    in_memory = sampler(data=data).sample(64)
    np.testing.assert_array_equal(on_disk.goal, in_memory.goal)
    assert type(on_disk.goal) is type(on_disk.action) is np.ndarray


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ((0.5, 0.4, 0.2, 0), "add up to 1.1"),
        ((1.5, -0.5, 0, 0), "p_original is 1.5"),
        ((0.5, 0.6, -0.1, 0), "p_next_frame is -0.1"),
        ((float("nan"), 1, 0, 0), "p_original is nan"),
    ],
)
def test_invalid_probabilities_are_refused(probabilities: tuple, message: str) -> None:
    with pytest.raises(GCBError, match=message):
        GoalSampling(*probabilities)


def test_missing_original_goals_are_an_error() -> None:
    for changes, message in (
        ({"episode_goal_frame": [-1, 8]}, "1 of the 2 episodes of the dataset have no goal"),
        ({"rewards": None}, "has no rewards"),
    ):
        data = two_episodes(**changes)
        with pytest.raises(GCBError, match=message):
            sampler(data=data)
        without = GoalSampling().without_original()
        assert (without.p_original, without.p_future) == (0, 0.9)
        assert (sampler(without, data=data).sample_indices(100).goal_kind != GoalKind.ORIGINAL).all()


def test_invalid_settings_are_refused() -> None:
    with pytest.raises(GCBError, match="future_discount is 1"):
        sampler(future_discount=1)
    with pytest.raises(GCBError, match="batch_size is 0"):
        sampler().sample(0)
    with pytest.raises(GCBError, match="batch_size is 8; it must be a positive multiple of 3"):
        sampler(group_size=3).sample(8)
    with pytest.raises(GCBError, match="group_size is 0; it must be at least 1"):
        sampler(group_size=0)
    with pytest.raises(GCBError, match=r"p_final_state is 1\.5; it must lie between 0 and 1"):
        sampler(p_final_state=1.5)


@pytest.mark.parametrize("group_size", [1, 2])
def test_only_successful_leaves_out_failed_episodes(group_size: int) -> None:
    data = two_episodes(episode_success=[True, False])
    chosen = sampler(data=data, only_successful=True, group_size=group_size)
    assert set(chosen.sample_indices(500).transition.flat) == {0, 1, 2}
    assert chosen.episodes.tolist() == [0]
    everything = sampler(data=data, group_size=group_size)
    assert set(everything.sample_indices(500).transition.flat) == {0, 1, 2, 3, 4}
    assert everything.episodes.tolist() == [0, 1]


def test_failures_are_described() -> None:
    description = describe_failures(two_episodes(episode_success=[True, False]))
    assert description == "1 of 2 episodes (40% of the transitions) did not reach their goal"
    assert describe_failures(two_episodes(episode_success=[True, True])) is None
    assert describe_failures(two_episodes(episode_success=None)) is None


def test_only_successful_needs_a_successful_episode() -> None:
    with pytest.raises(GCBError, match="only_successful"):
        sampler(data=two_episodes(episode_success=[False, False]), only_successful=True)


def test_only_successful_has_no_effect_without_recorded_success() -> None:
    data = two_episodes(episode_success=None)
    chosen, all_of_them = (
        sampler(data=data, only_successful=True).sample_indices(50),
        sampler(data=data).sample_indices(50),
    )
    assert (chosen.transition == all_of_them.transition).all()
