"""The scripted expert: the order of its stages, and its success rate."""

import numpy as np
import pytest
from helpers.simple_scene import simple_scene

from gcb.envs import ENVS
from gcb.envs.expert import Expert
from gcb.envs.expert_media import measure_expert


def play(env, read):
    """Play the expert in the loaded scene; return its actions and the values of `read()` before each."""
    expert, actions, values = Expert(env), [], []
    for _ in range(40):
        values.append(read())
        actions.append(expert.action())
        env._advance(actions[-1])
    return np.array(actions), np.array(values)


@pytest.mark.parametrize("env_id", list(ENVS))
def test_success_with_and_without_noise(env_id):
    """The paper has about 80 % with noise. These are few episodes with fixed seeds; `gcb expert` measures more."""
    rates = measure_expert(env_id, episodes=24, noise=0.3, seed=0, image_size=8)
    assert rates.noise_free.value >= 0.9
    assert 0.6 <= rates.noisy.value <= 0.96
    assert set(rates.per_task) == set(ENVS[env_id].tasks)
    assert 10 < rates.mean_steps < 50


@pytest.mark.parametrize("yaw", [0.0, 0.6, 2.5])
def test_descends_only_at_the_handle_with_open_fingers_along_the_axis(env, yaw):
    env.load_scene(simple_scene(cabinet_xy=(0.67, 0.0), cabinet_yaw=yaw))

    def read():
        position, turned = env.arm.pose()[0], env.arm.yaw()
        return np.linalg.norm(position[:2] - env.cabinet.handle()[:2]), position[2] - env.layout.travel_z, turned

    actions, values = play(env, read)
    distance, above, turned = values.T
    start = int((actions[:, 2] < -0.3).argmax())  # first step of the descent
    assert np.all(above[:start] > -0.03)
    assert distance[start] <= 0.035
    assert abs(np.degrees(np.arctan(np.tan(turned[start] - yaw)))) < 6  # half turns are equivalent
    assert np.all(actions[:, 4] == -1)
    assert actions.dtype == np.float32
    assert np.abs(actions).max() <= 1


def test_presses_the_button_from_above_with_closed_fingers(button_drawer):
    env = button_drawer
    env.load_scene(simple_scene(task="button"))
    actions, values = play(env, lambda: [*env.arm.pose()[0], env.cabinet.button()[2], env.cabinet.bottom_arrived()])
    start = int((actions[:, 2] < -0.3).argmax())
    assert np.linalg.norm(values[start, :2] - [0.68, 0.12]) <= 0.02
    assert np.all(actions[:, 4] == 1)
    assert values[start, 3] == pytest.approx(-0.14, abs=1e-4)
    assert values[:, 3].min() < -0.15
    assert values[-1, 4]
    np.testing.assert_allclose(values[-1, :2], [0.68, 0.12], atol=0.01)  # does not slide off
    assert env.cabinet.button()[2] > env.layout.button_z - 0.0145  # does not push against the stop


def test_stops_pushing_at_the_target(drawer):
    drawer.load_scene(simple_scene(cabinet_xy=(0.6, 0.12), target=0.11))
    actions, values = play(drawer, drawer.cabinet.opening)
    assert values[-1] == pytest.approx(0.11, abs=0.01)
    assert np.abs(actions[-1, :2]).max() < 0.1
