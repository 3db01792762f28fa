"""The scripted expert: how it goes about its task, and how often it succeeds."""

import numpy as np
import pytest
from helpers.simple_scene import simple_scene

from gcb.envs import ENVS
from gcb.envs.expert import Expert
from gcb.envs.expert_media import measure_expert


def play(env, read):
    """Play the expert in the scene that stands there: its actions, and what `read()` saw before each."""
    expert, actions, seen = Expert(env), [], []
    for _ in range(40):
        seen.append(read())
        actions.append(expert.action())
        env._advance(actions[-1])
    return np.array(actions), np.array(seen)


@pytest.mark.parametrize("env_id", list(ENVS))
def test_success_with_and_without_noise(env_id):
    """The paper: about 80 % with noise. `gcb expert` measures more episodes; here seeds are fixed and few."""
    rates = measure_expert(env_id, episodes=24, noise=0.3, seed=0, image_size=8)
    assert rates.noise_free.value >= 0.9
    assert 0.6 <= rates.noisy.value <= 0.96
    assert set(rates.per_task) == set(ENVS[env_id].tasks)
    assert 10 < rates.mean_steps < 50


@pytest.mark.parametrize("yaw", [0.0, 0.6, 2.5])
def test_it_comes_down_only_at_the_handle_with_open_fingers_along_the_axis(env, yaw):
    env.load_scene(simple_scene(cabinet_xy=(0.67, 0.0), cabinet_yaw=yaw))

    def read():
        position, turned = env.arm.pose()[0], env.arm.yaw()
        return np.linalg.norm(position[:2] - env.cabinet.handle()[:2]), position[2] - env.layout.travel_z, turned

    actions, seen = play(env, read)
    distance, above, turned = seen.T
    began = int((actions[:, 2] < -0.3).argmax())  # the first step of the descent
    assert np.all(above[:began] > -0.03)
    assert distance[began] <= 0.035
    assert abs(np.degrees(np.arctan(np.tan(turned[began] - yaw)))) < 6  # half a turn changes nothing
    assert np.all(actions[:, 4] == -1)
    assert actions.dtype == np.float32
    assert np.abs(actions).max() <= 1


def test_it_presses_with_closed_fingers_from_above(button_drawer):
    env = button_drawer
    env.load_scene(simple_scene(task="button"))
    actions, seen = play(env, lambda: [*env.arm.pose()[0], env.cabinet.button()[2], env.cabinet.bottom_arrived()])
    began = int((actions[:, 2] < -0.3).argmax())
    assert np.linalg.norm(seen[began, :2] - [0.68, 0.12]) <= 0.02
    assert np.all(actions[:, 4] == 1)
    assert seen[began, 3] == pytest.approx(-0.14, abs=1e-4)
    assert seen[:, 3].min() < -0.15
    assert seen[-1, 4]
    np.testing.assert_allclose(seen[-1, :2], [0.68, 0.12], atol=0.01)  # it does not slide off
    assert env.cabinet.button()[2] > env.layout.button_z - 0.0145  # nor run against the stop


def test_it_stops_pushing_at_the_target(drawer):
    drawer.load_scene(simple_scene(cabinet_xy=(0.6, 0.12), target=0.11))
    actions, seen = play(drawer, drawer.cabinet.opening)
    assert seen[-1] == pytest.approx(0.11, abs=0.01)
    assert np.abs(actions[-1, :2]).max() < 0.1
