"""`compute_reward` on images, as hindsight relabelling calls it, and Stable-Baselines3 on both environments."""

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gcb.envs import ENVS, make_env
from gcb.envs.expert import Expert
from gcb.envs.goal_reward import GOAL, OBSERVATION, ImageMemory, image_memory
from gcb.envs.layout import goal_reached
from gcb.envs.tabletop import TabletopEnv
from gcb.errors import GCBError


def play(env: TabletopEnv, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
    """Play the expert; return achieved and desired goals, rewards and infos of every step."""
    env.reset(seed=seed)
    expert, steps = Expert(env), []
    while not steps or not (steps[-1][2] or steps[-1][3]):
        steps.append(env.step(expert.action()))
    achieved, desired = (np.stack([step[0][key] for step in steps]) for key in ("achieved_goal", "desired_goal"))
    return achieved, desired, np.array([step[1] for step in steps]), [step[4] for step in steps]


@pytest.fixture(scope="module", params=list(ENVS))
def episode(request: pytest.FixtureRequest):
    """An environment of each kind with an episode of the expert."""
    env = make_env(request.param, image_size=64)
    yield env, *play(env, seed=1)
    env.close()


def test_the_reward_of_images_is_the_reward_of_the_step(episode) -> None:
    env, achieved, desired, rewards, infos = episode
    assert rewards.tolist() == [0.0] * (len(rewards) - 1) + [1.0]
    for number, reward in enumerate(rewards):
        single = env.compute_reward(achieved[number], desired[number], infos[number])
        assert type(single) is float
        assert single == reward
    batches = (infos, np.array(infos), [{}] * len(infos), {"task": infos[0]["task"]}, infos[0], None)
    for info in batches:
        computed = env.compute_reward(achieved, desired, info)
        assert computed.dtype == np.float32
        np.testing.assert_array_equal(computed, rewards)
    first = achieved.transpose(0, 3, 1, 2), desired.transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(env.compute_reward(*first, infos), rewards)


def test_relabelled_goals_are_judged_by_their_hidden_states(episode) -> None:
    env, achieved, _, _, infos = episode
    states, button_task = np.array([info["state"] for info in infos]), infos[0]["task"] == "button"
    for goal in (0, len(infos) // 2, len(infos) - 1):
        expected = goal_reached(states, states[goal], button_task)
        rewards = env.compute_reward(achieved, np.stack([achieved[goal]] * len(achieved)), [{}] * len(achieved))
        np.testing.assert_array_equal(rewards, expected)
        assert rewards[goal] == 1
    assert 0 < env.compute_reward(achieved, achieved[-1], infos).mean() < 1


def test_all_environments_of_a_process_share_what_they_have_seen(episode) -> None:
    env, achieved, desired, rewards, _ = episode
    other = make_env(env.spec.id, image_size=64)
    np.testing.assert_array_equal(other.compute_reward(achieved, desired, [{}] * len(achieved)), rewards)
    other.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda goal: np.bitwise_xor(goal, 1), r"desired_goal \(number 0\) is an image that no environment .* 20,000"),
        (lambda goal: goal / 255, r"desired_goal has shape \(64, 64, 3\) and type float64; accepted: uint8 images"),
        (lambda goal: goal[::2, ::2], r"shape \(32, 32, 3\)"),
        (lambda goal: goal[..., 0], r"shape \(64, 64\)"),
        (lambda goal: np.stack([goal] * 2), r"1 achieved goals, but 2 desired ones"),
    ],
)
def test_what_cannot_be_computed_is_refused(episode, change, message: str) -> None:
    env, achieved, desired, _, infos = episode
    with pytest.raises(GCBError, match=message):
        env.compute_reward(achieved[0], change(desired[0]), infos[0])


def test_infos_are_checked(episode) -> None:
    env, achieved, desired, _, infos = episode
    with pytest.raises(GCBError, match=f"{len(achieved)} goals, but 1 infos"):
        env.compute_reward(achieved, desired, infos[:1])
    state = infos[0]["state"]
    if env.layout.has_button:
        with pytest.raises(GCBError, match=r"info has the task None; .* accepted: 'drawer' or 'button'"):
            env.compute_reward(state, state, {})
    else:
        assert env.compute_reward(state, state, {}) == 1  # there is only one task


def test_the_oldest_images_are_forgotten() -> None:
    memory, images = ImageMemory(), [np.full((2, 2, 3), value, np.uint8) for value in range(4)]
    memory.limit = 2
    for number in (0, 1, 0, 2):
        memory.add(OBSERVATION, images[number], np.array([number]), "drawer")
    assert [memory.find(image, OBSERVATION) is None for image in images] == [False, True, False, True]
    memory.add(GOAL, images[2], np.array([7]), "drawer")
    found = [memory.find(images[2], *kinds) for kinds in ((GOAL, OBSERVATION), (OBSERVATION,))]
    assert [entry and entry.state.item() for entry in found] == [7, 2]
    env = make_env("gcb/Drawer-v0", image_size=16, goal_memory=30_000)
    assert image_memory(env.layout, 1).limit == 30_000
    env.close()


@pytest.mark.parametrize("env_id", list(ENVS))
def test_stable_baselines_trains_with_hindsight(env_id: str) -> None:
    """Its checker has no complaints, and HER relabels goals, in several environments whose images it transposes."""
    pytest.importorskip("stable_baselines3", reason="pip install 'gcb[sb3]'")
    from stable_baselines3 import SAC, HerReplayBuffer
    from stable_baselines3.common.env_checker import check_env
    from stable_baselines3.common.env_util import make_vec_env

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gym.make(env_id, render_mode="rgb_array")
        check_env(env.unwrapped)
    env.close()
    envs = make_vec_env(env_id, n_envs=2, env_kwargs={"max_steps": 6, "image_size": 36})
    settings: dict[str, Any] = {"buffer_size": 100, "learning_starts": 12, "batch_size": 8, "train_freq": 6}
    model = SAC("MultiInputPolicy", envs, replay_buffer_class=HerReplayBuffer, seed=0, **settings)
    model.learn(24)
    batch = model.replay_buffer.sample(64)  # pyright: ignore[reportOptionalMemberAccess]
    envs.close()
    assert model.num_timesteps == 24
    # Four of five goals are relabelled with what was achieved later, from which a few random actions do not lead away.
    assert 0.6 < float(batch.rewards.mean()) <= 0.8 + 1e-6
