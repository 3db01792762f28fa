"""Partners on embeddings made by hand: who is linked, where walks lead, and what the sampler makes of the table."""

import numpy as np
import pytest
from helpers.tiny import tiny_dataset

from gcb.data import GoalSampling, Sampler
from gcb.data.partners import WALKS, PartnerConfig, Partners, find_partners, mutual_neighbors, random_partners, walk
from gcb.errors import GCBError

OWN_GOALS = GoalSampling(1, 0, 0, 0)


def two_chains(length: int = 30) -> np.ndarray:
    """Two tasks: chains of points one unit apart; their ends are much farther apart than the chains are."""
    along = np.arange(length, dtype=np.float32)
    return np.concatenate([np.stack([along, np.full(length, y, np.float32)], 1) for y in (0, 4)])


def links_of(embedding: list[float], neighbors: int) -> list[set[int]]:
    links, count = mutual_neighbors(np.array(embedding, np.float32)[:, None], neighbors)
    return [set(row[:number].tolist()) for row, number in zip(links, count, strict=True)]


def test_only_mutual_neighbours_are_linked() -> None:
    # 10 has 3 as one of its two nearest, but 3 has two nearer ones; 10 and 11 are linked, 30 has its nearest only.
    assert links_of([0, 1, 3, 10, 11], 2) == [{1, 2}, {0, 2}, {0, 1}, {4}, {3}]
    assert links_of([0, 1, 30], 1) == [{1}, {0}, {1}]


def test_links_use_the_l1_distance() -> None:
    points = np.array([[0, 0], [3, 3], [5, 0]], np.float32)  # ℓ1: 6 and 5; ℓ2: 4.2 and 5
    links, _ = mutual_neighbors(points, 1)
    assert links[0, 0] == 2


def test_walks_of_each_length_stay_on_their_chain_and_spread_with_length() -> None:
    links, count = mutual_neighbors(two_chains(), 2)
    hops = np.array([1, 1, 64, 1024])
    place = walk(links, count, hops, np.random.default_rng(0))
    assert ((place // 30) == (np.arange(60) // 30)[:, None]).all()
    distance = np.abs(place - np.arange(60)[:, None])
    assert (distance[:, :2] <= 2).all()
    assert (distance[:, 0] >= 1).all()
    assert distance[:, 2].mean() > 3
    assert distance[:, 3].mean() > distance[:, 2].mean()
    assert distance[:, 3].max() > 20


def test_partners_are_of_the_same_task_although_the_other_one_is_nearer() -> None:
    episodes = np.arange(100, 160)
    partners = find_partners(two_chains(), episodes, 2, 1024, np.random.default_rng(0))
    assert partners.table.shape == (60, WALKS)
    other_task = (partners.table >= 130) != (episodes >= 130)[:, None]
    assert not other_task.any()
    # Points beyond the distance of the other chain are reached: a ball of that radius would mix the tasks.
    assert (np.abs(partners.table - episodes[:, None]) > 8).mean() > 0.1


def test_sampled_partners_come_from_the_table() -> None:
    partners = Partners(np.array([2, 5, 7]), np.array([[5, 5], [7, 2], [2, 2]]))
    sampled = partners.sample(np.array([5] * 50 + [2, 7, 3, 9, 0]), np.random.default_rng(0))
    assert set(sampled[:50].tolist()) == {2, 7}
    assert sampled[50:].tolist() == [5, 2, -1, -1, -1]


def test_random_partners_are_any_other_episode() -> None:
    partners = random_partners(np.arange(4), np.random.default_rng(0))
    assert all(set(row.tolist()) == set(range(4)) - {episode} for episode, row in enumerate(partners.table))


def paired_sampler(group_size: int = 2, goals: GoalSampling = OWN_GOALS) -> Sampler:
    sampler = Sampler(tiny_dataset(episodes=6), goals, np.random.default_rng(0), group_size=group_size)
    episodes = sampler.episodes
    sampler.partners = Partners(episodes, np.roll(episodes, 1)[:, None])
    return sampler


def test_every_second_group_is_of_a_partner() -> None:
    sampler = paired_sampler()
    batch = sampler.sample(400)
    assert batch.indices is not None
    assert batch.has_partner is not None
    assert batch.has_partner.all()
    episode = sampler.dataset.episode_of_transition[batch.indices.transition[:, 0]]
    np.testing.assert_array_equal(episode[1::2], np.roll(sampler.episodes, 1)[episode[::2]])
    same = sampler.dataset.episode_of_transition[batch.indices.transition] == episode[:, None]
    assert same.all()


def test_hindsight_goals_have_no_partners() -> None:
    batch = paired_sampler(goals=GoalSampling(0.5, 0.5, 0, 0)).sample(400)
    assert batch.indices is not None
    assert batch.has_partner is not None
    original = batch.indices.goal_kind.reshape(-1, 2) == 0
    np.testing.assert_array_equal(batch.has_partner.reshape(-1, 2).all(1), original.all(1))
    assert 0 < batch.has_partner.mean() < 1


def test_without_a_table_no_group_has_a_partner() -> None:
    sampler = paired_sampler()
    sampler.partners = None
    assert sampler.sample(16).has_partner is None


@pytest.mark.parametrize(
    ("field", "value"), [("probability", 1.5), ("neighbors", 0), ("max_hops", 0), ("every", 0), ("start", -0.1)]
)
def test_settings_are_checked(field: str, value: float) -> None:
    with pytest.raises(GCBError, match=rf"method_config.partners.{field} is {value}"):
        PartnerConfig(**{field: value})  # pyright: ignore[reportArgumentType]
