"""The environment: the Gymnasium API, the paper's reward, determinism, options, and error messages."""

import hashlib
import pickle
import subprocess
import sys
import warnings
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from helpers.simple_scene import simple_scene

from gcb.envs import ENVS, make_env
from gcb.envs.adapters import ADAPTERS
from gcb.envs.distractors import SHAPES
from gcb.envs.expert import Expert
from gcb.envs.layout import BUTTON, HANDLE, SETTLED, TABLE_Z, goal_reached
from gcb.envs.scene import ANALOGIES, Distractor, sample_analogy
from gcb.envs.tabletop import TabletopEnv
from gcb.errors import GCBError

KEYS = ["observation", "achieved_goal", "desired_goal"]


def rollout(env: TabletopEnv, seed: int, steps: int = 75, **options):
    """Play an episode of random actions that depend on the seed; return everything the environment returned."""
    rng = np.random.default_rng(seed)
    returned: list[tuple[Any, ...]] = [env.reset(seed=seed, **options)]
    while len(returned) <= steps:
        returned.append(env.step(rng.uniform(-1, 1, 5).astype(np.float32)))
        if returned[-1][2] or returned[-1][3]:
            break
    return returned


def digest(returned) -> str:
    """Return a hash of every frame and hidden state of a rollout."""
    sha = hashlib.sha256()
    for step in returned:
        for key in KEYS:
            sha.update(step[0][key].tobytes())
        sha.update(step[-1]["state"].tobytes() + step[-1]["goal_state"].tobytes())
    return sha.hexdigest()


def solve(env: TabletopEnv):
    """Play the noise-free expert to the end of the episode; return what each step returned."""
    expert, returned = Expert(env), []
    while not returned or not (returned[-1][2] or returned[-1][3]):
        returned.append(env.step(expert.action()))
    return returned


# ---- Gymnasium -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", list(ENVS))
def test_passes_the_gymnasium_checker(env_id):
    env = gym.make(env_id, render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
    env.close()


def test_observations_are_exactly_three_images(env):
    observation, info = env.reset(seed=0)
    stepped, reward, terminated, truncated, _ = env.step(env.action_space.sample())
    for images in (observation, stepped):
        assert list(images) == KEYS  # without the hidden state
        assert images in env.observation_space
        assert all(image.shape == (16, 16, 3) and image.dtype == np.uint8 for image in images.values())
        assert (images["achieved_goal"] == images["observation"]).all()
    assert (stepped["desired_goal"] == observation["desired_goal"]).all()
    assert info["state"].shape == info["goal_state"].shape == (env.layout.state_size,)
    assert env.layout.state_size == (15 if env.layout.has_button else 11)
    assert [type(value) for value in (reward, terminated, truncated)] == [float, bool, bool]


def test_hidden_state_has_the_named_components(button_drawer):
    button_drawer.load_scene(simple_scene())
    state = dict(zip(button_drawer.layout.state_names, button_drawer.state().tolist(), strict=True))
    expected = dict(
        gripper_x=0.6, gripper_y=-0.15, gripper_z=-0.1, gripper_qx=1, gripper_qy=0, gripper_qz=0, gripper_qw=0,
        tip_distance=0.0416, handle_x=0.68, handle_y=0.12 - 0.1375 - 0.05, handle_z=-0.22,
        bottom_x=0.68, bottom_y=0.12 - 0.08125, bottom_z=-0.34, button_z=-0.14,
    )  # fmt: skip
    assert state == pytest.approx(expected, abs=1e-4)


def test_images_of_any_size():
    env = make_env("gcb/Drawer-v0", image_size=40, render_mode="rgb_array", render_size=300)
    observation, _ = env.reset(seed=0)
    assert observation["observation"].shape == observation["desired_goal"].shape == (40, 40, 3)
    large = env.render()
    assert large is not None
    assert large.shape == (300, 300, 3)
    assert large.dtype == np.uint8
    shrunk = env.image(320).reshape(40, 8, 40, 8, 3).mean(axis=(1, 3))
    assert np.abs(shrunk - observation["observation"]).mean() < 8  # the same view
    env.close()


def test_no_rendering_without_a_render_mode(drawer):
    drawer.reset(seed=0)
    assert drawer.render() is None


# ---- reward and termination ------------------------------------------------------------------------------------------


def test_success_of_the_drawer_task_by_hand():
    """Table 2: the handle within 0.05 of its goal; nothing else counts."""
    goal = np.zeros(11)
    states = np.tile(goal, (5, 1))
    states[1, HANDLE] = (0.03, 0.039, 0)  # 0.0492
    states[2, HANDLE] = (0.03, 0.041, 0)  # 0.0508
    states[3, HANDLE] = (0, 0, -0.051)
    states[4, :8] = 1  # the gripper elsewhere
    assert goal_reached(states, goal, False).tolist() == [True, True, False, False, True]


def test_success_of_the_button_task_by_hand(button_drawer):
    """Table 3: the drawer task as before; in the button task, bottom drawer and button must be at their goals."""
    goal = np.zeros(15)
    goal[BUTTON] = -0.15
    states = np.tile(goal, (5, 1))
    states[1, HANDLE] = (0.06, 0, 0)
    states[2, 11:14] = (0, 0.06, 0)
    states[3, BUTTON] = -0.14  # at rest: 0.01 above its goal
    states[4, BUTTON] = -0.1425  # 0.0075 above it
    goals = np.tile(goal, (5, 1))
    for task, expected in (("drawer", [1, 0, 1, 1, 1]), ("button", [1, 1, 0, 0, 1])):
        rewards = button_drawer.compute_reward(states, goals, {"task": task})
        assert rewards.dtype == np.float32
        assert rewards.tolist() == expected
        assert button_drawer.compute_reward(states[1], goal, {"task": task}) == expected[1]
    mixed = [{"task": task} for task in ("drawer", "drawer", "button", "button", "button")]
    assert button_drawer.compute_reward(states, goals, mixed).tolist() == [1, 0, 0, 0, 1]
    names = {"task": ["button", "button", "drawer", "drawer", "drawer"]}
    assert button_drawer.compute_reward(states, goals, names).tolist() == [1, 1, 1, 1, 1]


@pytest.mark.parametrize("seed", [1, 2])
def test_reward_matches_compute_reward(env, seed):
    env.reset(seed=seed)
    returned = solve(env)
    rewards, infos = [step[1] for step in returned], [step[4] for step in returned]
    achieved, desired = (np.array([info[key] for info in infos]) for key in ("state", "goal_state"))
    for reward, info in zip(rewards, infos, strict=True):
        assert env.compute_reward(info["state"], info["goal_state"], info) == reward == info["success"]
    np.testing.assert_array_equal(env.compute_reward(achieved, desired, infos), rewards)
    np.testing.assert_array_equal(env.compute_reward(achieved, desired, {"task": infos[0]["task"]}), rewards)
    assert rewards == [0.0] * (len(rewards) - 1) + [1.0]


def test_success_terminates_and_the_time_limit_truncates(env):
    env.reset(seed=1)
    *before, last = [step[2:4] for step in solve(env)]
    assert set(before) == {(False, False)}
    assert last == (True, False)
    _, info = env.reset(seed=1)
    hold = np.array([0, 0, 0, 0, -1])
    ends = [env.step(hold)[2:4] for _ in range(75)]
    assert not info["success"]
    assert ends == [(False, False)] * 74 + [(False, True)]


def test_episode_can_continue_after_success():
    env = make_env("gcb/ButtonDrawer-v0", image_size=16, terminate_at_success=False, task="button")
    env.reset(seed=0)
    returned = solve(env)
    rewards = [step[1] for step in returned]
    assert len(returned) == 75
    assert not any(step[2] for step in returned)
    assert returned[-1][3]
    assert rewards[rewards.index(1.0) :] == [1.0] * (75 - rewards.index(1.0))  # the expert holds the button
    for _ in range(10):  # when released, the button rises and success is lost
        *_, info = env.step(np.array([0, 0, 1.0, 0, 0]))
    assert not info["success"]
    env.close()


@pytest.mark.parametrize("max_steps", [1, 5, np.int64(12), 40])
def test_the_length_of_an_episode_does_not_change_its_goal(drawer, max_steps):
    env = make_env("gcb/Drawer-v0", image_size=16, max_steps=max_steps)
    short, full = rollout(env, seed=1), rollout(drawer, seed=1, steps=max_steps)
    assert len(short) - 1 == max_steps
    assert short[-1][3]
    assert digest(short) == digest(full)
    env.close()


# ---- determinism ---------------------------------------------------------------------------------------------


def test_same_seed_gives_the_same_bytes_after_any_history(env):
    other = make_env(env.spec.id, image_size=16)
    rollout(env, seed=5, steps=10)
    rollout(env, seed=6, steps=3)
    assert digest(rollout(env, seed=7)) == digest(rollout(other, seed=7))
    unseeded = [env.reset()[0]["observation"], other.reset()[0]["observation"]]  # the generators are in the same state
    np.testing.assert_array_equal(*unseeded)
    assert digest(rollout(env, seed=8, steps=5)) != digest(rollout(env, seed=9, steps=5))
    other.close()


def test_another_process_gives_the_same_bytes():
    program = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from test_tabletop import digest, rollout\n"
        "from gcb.envs import make_env\n"
        "env = make_env('gcb/ButtonDrawer-v0', video='builtin', analogy='strict')\n"
        "print(digest(rollout(env, seed=7, steps=20)))"
    )
    here = Path(__file__).parent
    command = [sys.executable, "-c", program, str(here), str(here.parent)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    env = make_env("gcb/ButtonDrawer-v0", video="builtin", analogy="strict")
    assert answer.stdout.strip() == digest(rollout(env, seed=7, steps=20))
    env.close()


@pytest.mark.parametrize(("env_id", "task"), [("gcb/Drawer-v0", "drawer"), ("gcb/ButtonDrawer-v0", "button")])
def test_goal_is_where_the_noise_free_expert_ends(env_id, task):
    """The goal image is a frame of the expert's episode, replayed from the restored initial state."""
    env = make_env(env_id, image_size=16, task=task, terminate_at_success=False)
    observation, info = env.reset(seed=3)
    expert = Expert(env)
    for _ in range(75):
        stepped, _, _, _, now = env.step(expert.action())
        if np.array_equal(stepped["observation"], observation["desired_goal"]):
            break
    assert now["success"]
    np.testing.assert_array_equal(stepped["observation"], observation["desired_goal"])
    np.testing.assert_allclose(now["state"][:BUTTON], info["goal_state"][:BUTTON], atol=1e-6)
    if task == "button":
        assert info["goal_state"][BUTTON] == pytest.approx(-0.14 - 0.01)
        assert abs(now["state"][BUTTON] - info["goal_state"][BUTTON]) < 0.008
    else:
        assert abs(env.cabinet.opening() - env.scene.target) < SETTLED
    env.close()


def test_initial_state_is_restored_exactly(env):
    """After the rollout for the goal, the episode equals that of a scene that was only loaded."""
    observation, info = env.reset(seed=4)
    fresh = make_env(env.spec.id, image_size=16)
    fresh.load_scene(env.scene)
    np.testing.assert_array_equal(fresh.image(16), observation["observation"])
    np.testing.assert_array_equal(fresh.state(), info["state"])
    for action in np.random.default_rng(0).uniform(-1, 1, (20, 5)):
        fresh._advance(action)
        np.testing.assert_array_equal(env.step(action)[4]["state"], fresh.state())
    np.testing.assert_array_equal(fresh.image(16), env.image(16))
    fresh.close()


@pytest.mark.parametrize("duplicate", [deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_has_a_simulation_of_its_own_in_the_same_state(duplicate):
    env = make_env("gcb/ButtonDrawer-v0", image_size=16, video="builtin", analogy="strict")
    copies = [duplicate(env)]  # before the first reset
    env.reset(seed=7)
    actions = np.random.default_rng(0).uniform(-1, 1, (12, 5))
    for action in actions[:6]:
        env.step(action)
    copies.append(duplicate(env))
    expected = [env.step(action) for action in actions[6:]]
    copies.append(duplicate(env))
    env.close()
    assert digest([copies[1].step(action) for action in actions[6:]]) == digest(expected)
    np.testing.assert_array_equal(copies[2].state(), expected[-1][4]["state"])
    assert len({digest([duplicated.reset(), duplicated.step(actions[0])]) for duplicated in copies[1:]}) == 1
    assert copies[0].reset(seed=7)[0]["desired_goal"].tolist() == expected[0][0]["desired_goal"].tolist()
    for duplicated in copies:
        duplicated.close()


# ---- options -------------------------------------------------------------------------------------------------


def test_task_is_fixed_by_argument_or_option(button_drawer):
    env = make_env("gcb/ButtonDrawer-v0", image_size=16, task="button")
    assert {env.reset(seed=seed)[1]["task"] for seed in range(4)} == {"button"}
    assert env.reset(seed=0, options={"task": "drawer"})[1]["task"] == "drawer"
    assert {button_drawer.reset(seed=seed)[1]["task"] for seed in range(5)} == {"drawer", "button"}
    env.close()


def test_scene_can_be_replayed(env):
    first, info = env.reset(seed=2)
    scene = env.scene
    env.reset(seed=3)
    again, _ = env.reset(options={"scene": scene})
    assert env.scene == scene
    assert info["scene"] == scene.to_dict()
    for key in KEYS:
        np.testing.assert_array_equal(first[key], again[key])


@pytest.mark.parametrize("mode", ANALOGIES)
def test_example_has_its_hidden_states(env, mode):
    observation, info = env.reset(seed=1, options={"analogy": mode})
    example = info["example"]
    assert example.scene.task == info["task"]
    assert (example.scene.target == env.scene.target) == (mode != "loose")
    assert env.compute_reward(example.state, example.goal_state, info) == 0
    assert example.state_image.shape == example.goal_image.shape == (16, 16, 3)
    assert not np.array_equal(example.state_image, observation["observation"])
    fresh = make_env(env.spec.id, image_size=16)
    observation, info = fresh.reset(options={"scene": example.scene})
    np.testing.assert_array_equal(observation["observation"], example.state_image)
    np.testing.assert_array_equal(observation["desired_goal"], example.goal_image)
    np.testing.assert_array_equal(info["state"], example.state)
    np.testing.assert_array_equal(info["goal_state"], example.goal_state)
    fresh.close()


def test_the_expert_solves_free_analogies(env):
    """It solves most of them at the first attempt, and the drawer ends where it does in the original scene."""
    solved = 0
    for seed in range(8):
        env.reset(seed=seed)
        scene = env.scene
        env.load_scene(sample_analogy(scene, "free", env.layout, np.random.default_rng(seed)))
        if env._play_to_goal():
            solved += 1
            assert env.scene.task != "drawer" or abs(env.cabinet.opening() - scene.target) < SETTLED
    assert solved >= 7  # it solves 96 % of all scenes


def test_example_does_not_change_the_episode():
    env = make_env("gcb/Drawer-v0", image_size=16, analogy="strict")
    without_analogy = make_env("gcb/Drawer-v0", image_size=16)
    with_example, without = env.reset(seed=2), without_analogy.reset(seed=2)
    assert "example" in with_example[1]
    assert "example" not in without[1]
    for key in KEYS:
        np.testing.assert_array_equal(with_example[0][key], without[0][key])
    env.close()
    without_analogy.close()


def test_distractors_are_at_rest_and_below_the_gripper(env):
    tallest = max(shape.height for shape in SHAPES)
    assert TABLE_Z + tallest < env.layout.gripper_start[2] - 0.05
    items = [Distractor(shape, (0.48 + 0.08 * index, -0.25), 0.3, (1, 0, 0)) for index, shape in enumerate((3, 30, 60))]
    env.load_scene(simple_scene(distractors=tuple(items)))
    bodies = range(3, 6)  # after the table, the arm and the cabinet
    before = [env._client.getBasePositionAndOrientation(body)[0] for body in bodies]
    for _ in range(72):
        env._advance(np.array([0, 0, 0, 0, -1.0]))
    after = [env._client.getBasePositionAndOrientation(body)[0] for body in bodies]
    np.testing.assert_allclose(after, before, atol=0.001)


# ---- errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "button"}, r"task is 'button'; accepted: None, 'drawer'"),
        ({"analogy": "wild"}, r"analogy is 'wild'; accepted: None, 'strict', 'loose', 'free'"),
        ({"video": "builtin", "video_split": "test"}, r"split is 'test'; accepted: train, eval"),
        ({"video": "/nowhere/clips"}, r"'/nowhere/clips' does not exist"),
        ({"video": 3}, r"video is 3; accepted: None, 'builtin', or a directory"),
        ({"video": "x" * 300}, r"too long for a path"),
        ({"layout": "kitchen"}, r"There is no layout 'kitchen'; accepted: gcb/Drawer-v0"),
        ({"image_size": 4}, r"image_size is 4; .* from 8 to 2048"),
        ({"image_size": 64.0}, r"image_size is 64\.0; it must be an integer"),
        ({"render_size": 0}, r"render_size is 0"),
        ({"render_mode": "human"}, r"render_mode is 'human'; accepted: None, 'rgb_array'"),
        ({"max_steps": 0}, r"max_steps is 0"),
        ({"max_steps": 2.5}, r"max_steps is 2\.5; it must be an integer of at least 1"),
        ({"max_steps": "5"}, r"max_steps is '5'; it must be an integer"),
        ({"goal_memory": -1}, r"goal_memory is -1"),
        ({"colour": "red"}, r"unexpected keyword argument 'colour'"),
    ],
)
def test_invalid_arguments_are_reported(options, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Gymnasium warns about render modes
        with pytest.raises(GCBError, match=message):
            make_env("gcb/Drawer-v0", **options)


def test_directory_without_clips_is_reported(tmp_path):
    (tmp_path / "notes.txt").write_text("no video")
    with pytest.raises(GCBError, match=rf"No readable video clip in '{tmp_path}'"):
        make_env("gcb/Drawer-v0", video=str(tmp_path))


def test_unknown_environment_is_reported():
    with pytest.raises(GCBError, match=r"no environment 'gcb/Kitchen-v0'; gcb has gcb/Drawer-v0, gcb/ButtonDrawer-v0"):
        make_env("gcb/Kitchen-v0")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"colour": 1}, r"reset option 'colour'; accepted: scene, task, analogy"),
        ({"task": "button"}, r"task is 'button'; accepted: None, 'drawer'"),
        ({"analogy": "wild"}, r"analogy is 'wild'; accepted: strict, loose, free"),
        ({"scene": {"task": "drawer"}}, r"type dict; it must be a gcb\.envs\.scene\.Scene"),
        ({"scene": simple_scene(task="button")}, r"scene's task is 'button'; accepted: 'drawer'"),
        ({"scene": simple_scene(cabinet_xy=(2.0, 0.0))}, r"expert cannot solve the task"),
    ],
)
def test_invalid_reset_options_are_reported(drawer, options, message):
    with pytest.raises(GCBError, match=message):
        drawer.reset(seed=0, options=options)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.zeros(4), r"shape \(4,\); it must be \(5,\): x, y, z, yaw, grip"),
        (np.zeros((1, 5)), r"shape \(1, 5\)"),
        (np.array([0, 0, np.nan, 0, 0]), r"nan.* must be finite"),
        (np.array([0, 0, 0, np.inf, 0]), r"inf.* must be finite"),
    ],
)
def test_invalid_actions_are_reported_and_change_nothing(drawer, action, message):
    drawer.reset(seed=0)
    before = drawer.state()
    with pytest.raises(GCBError, match=message):
        drawer.step(action)
    assert drawer.steps == 0
    np.testing.assert_array_equal(drawer.state(), before)


def test_actions_out_of_range_are_clipped(drawer):
    drawer.reset(seed=0)
    clipped = drawer.step(np.array([9.0, -7, 0, 0, 3]))[4]["state"]
    drawer.reset(seed=0)
    np.testing.assert_array_equal(drawer.step(np.array([1.0, -1, 0, 0, 1]))[4]["state"], clipped)


def test_step_needs_a_successful_reset():
    env = make_env("gcb/Drawer-v0", image_size=16)
    with pytest.raises(GCBError, match="step was called before reset"):
        env.step(np.zeros(5))
    with pytest.raises(GCBError, match="no scene before the first reset"):
        _ = env.scene
    with pytest.raises(GCBError, match="cannot solve the task"):
        env.reset(options={"scene": simple_scene(cabinet_xy=(2.0, 0.0))})
    with pytest.raises(GCBError, match="step was called before reset"):
        env.step(np.zeros(5))
    env.close()
    env.close()  # closing twice is allowed


def test_mirroring_a_scene_mirrors_its_image_and_flips_y_and_yaw() -> None:
    """This is what `TabletopAdapter.flipped_actions` relies on. The arm itself is not mirrored."""
    env, scene = make_env("gcb/Drawer-v0"), simple_scene(cabinet_xy=(0.65, 0.1), cabinet_yaw=np.radians(25))
    mirrored = replace(scene, cabinet_xy=(0.65, -0.1), cabinet_yaw=np.pi - scene.cabinet_yaw)
    images, handles, turns = [], [], []
    for variant in (scene, mirrored):
        env.load_scene(variant)
        expert = Expert(env)
        images.append(env.image(64)[24:].astype(int))  # below the arm
        handles.append(env.cabinet.handle() * [1, 1, 0])
        turns.append(expert._turn())
    env.close()
    assert np.allclose(handles[0] * [1, -1, 1], handles[1], atol=1e-6)
    assert turns[0] == pytest.approx(-turns[1], abs=1e-3)
    assert abs(turns[0]) > np.radians(20)
    difference, mirrored_difference = (np.abs(image - images[1]).mean() for image in (images[0], images[0][:, ::-1]))
    assert mirrored_difference < difference / 2
    assert ADAPTERS["gcb"].flipped_actions == (1, 3)
