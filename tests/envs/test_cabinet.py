"""Contact physics of the cabinet: parts move only when they are pushed or driven."""

import numpy as np
import pytest
from helpers.simple_scene import simple_scene

from gcb.envs.cabinet import BOTTOM_JOINT, BOTTOM_SPEED, BUTTON_JOINT, DRAWER_JOINT, HANDLE_LINK
from gcb.envs.expert import Expert
from gcb.envs.layout import SUBSTEP_SECONDS, TRAVEL

HOLD = np.array([0, 0, 0, 0, -1.0])


def record(env, read):
    """Return a list that collects the value of `read()` after every substep from now on."""
    values = []
    original = env.cabinet.after_substep

    def after_substep():
        original()
        values.append(read())

    env.cabinet.after_substep = after_substep
    return values


def set_button(env, depth):
    env._client.resetJointState(env.cabinet.body, BUTTON_JOINT, -depth)
    env.cabinet.after_substep()


def toggled(env):
    """Wait, and return whether the bottom drawer, closed at the start, is open."""
    for _ in range(15):
        env._advance(HOLD)
    return env.cabinet._joint(BOTTOM_JOINT) == pytest.approx(TRAVEL, abs=0.001)


def test_handle_position_matches_the_formula(env):
    yaw = 0.7
    for opening, distance in ((0.0, 0.1375), (TRAVEL, 0.2939)):
        env.load_scene(simple_scene(cabinet_yaw=yaw, opening=opening))
        expected = [0.68 + distance * np.sin(yaw), 0.12 - distance * np.cos(yaw), env.layout.handle_z]
        np.testing.assert_allclose(env.cabinet.handle(), expected, atol=1e-6)
        simulated = env._client.getLinkState(env.cabinet.body, HANDLE_LINK, computeForwardKinematics=True)[4]
        np.testing.assert_allclose(simulated, expected, atol=1e-6)


def test_positions_of_bottom_drawer_and_button(button_drawer):
    button_drawer.load_scene(simple_scene(bottom_open=True))
    np.testing.assert_allclose(button_drawer.cabinet.bottom(), [0.68, 0.12 - 0.08125 - TRAVEL, -0.34], atol=1e-6)
    np.testing.assert_allclose(button_drawer.cabinet.button(), [0.68, 0.12, -0.14], atol=1e-6)


@pytest.mark.parametrize("opening", [0.0, 0.07, TRAVEL])
def test_nothing_moves_for_three_seconds_without_contact(env, opening):
    env.load_scene(simple_scene(opening=opening, bottom_open=True))
    before = env.state()
    for _ in range(72):
        env._advance(HOLD)
    assert env.cabinet.opening() == pytest.approx(opening, abs=1e-6)
    np.testing.assert_allclose(env.state(), before, atol=5e-4)


@pytest.mark.parametrize(("opening", "target"), [(0.02, TRAVEL), (0.14, 0.0)])
def test_drawer_moves_only_when_fingers_push_it(env, opening, target):
    """Opening and closing: no motion before the first contact, and never faster than the fingers push."""
    env.reset(options={"scene": simple_scene(cabinet_xy=(0.6, 0.12), opening=opening, target=target)})
    cabinet, arm, client = env.cabinet, env.arm, env._client

    def read():
        touched = {contact[4] for contact in client.getContactPoints(arm.body, cabinet.body)}
        return cabinet.opening(), bool(touched & {DRAWER_JOINT, HANDLE_LINK})

    values, expert, done = record(env, read), Expert(env), False
    while not done:
        _, _, terminated, truncated, info = env.step(expert.action())
        done = terminated or truncated
    openings, touching = map(np.array, zip(*values, strict=True))
    first = int(touching.argmax())
    assert info["success"]
    assert touching.any()
    np.testing.assert_allclose(openings[: first - 1], opening, atol=1e-9)
    assert np.abs(np.diff(openings, prepend=opening)).max() < 0.015  # a jump by a whole action would be 50 mm
    assert np.ptp(openings) > 0.05


def test_moving_drawer_comes_to_rest(env):
    """At 0.3 m/s, 0.35 kg against 4 N stop after v² m / 2 F = 4 mm."""
    env.load_scene(simple_scene())
    env._client.resetJointState(env.cabinet.body, DRAWER_JOINT, 0.05, targetVelocity=0.3)
    for _ in range(24):
        env._advance(HOLD)
    assert 0.052 < env.cabinet.opening() < 0.06
    assert abs(env._client.getJointState(env.cabinet.body, DRAWER_JOINT)[1]) < 1e-3


def test_push_beside_the_handle_does_not_move_the_drawer(drawer):
    drawer.load_scene(simple_scene())
    for _ in range(20):
        drawer._advance(np.array([0, 0, -1.0, 0, -1.0]))  # down to the table, 8 cm beside the handle
    for _ in range(20):
        drawer._advance(np.array([-1.0, -1.0, 0, 0, -1.0]))
    assert drawer.cabinet.opening() == pytest.approx(0.05, abs=1e-6)


def test_drawers_stop_at_their_ends(drawer):
    """Under a constant force, the drawer opens by its travel and no further."""
    drawer.load_scene(simple_scene(opening=0.12))
    body = drawer.cabinet.body
    for force in (30.0, -30.0):
        for _ in range(240):
            position = drawer.cabinet.handle().tolist()
            drawer._client.applyExternalForce(body, HANDLE_LINK, [0, -force, 0], position, 2)  # in world coordinates
            drawer._client.stepSimulation()
        assert drawer.cabinet.opening() == pytest.approx(TRAVEL if force > 0 else 0.0, abs=0.002)


def test_button_has_a_spring(button_drawer):
    """It yields to the force of a finger and returns by itself."""
    env = button_drawer
    env.load_scene(simple_scene())
    rest = env.cabinet.button()[2]
    for _ in range(120):
        position = env.cabinet.button().tolist()
        env._client.applyExternalForce(env.cabinet.body, BUTTON_JOINT, [0, 0, -15.0], position, 2)
        env._client.stepSimulation()
    assert rest - env.cabinet.button()[2] == pytest.approx(0.015, abs=0.001)
    for _ in range(120):
        env._client.stepSimulation()
    assert env.cabinet.button()[2] == pytest.approx(rest, abs=2e-4)


@pytest.mark.parametrize(("depth", "toggles"), [(0.005, False), (0.0099, False), (0.0101, True), (0.015, True)])
def test_press_deeper_than_a_centimetre_toggles(button_drawer, depth, toggles):
    button_drawer.load_scene(simple_scene())
    set_button(button_drawer, depth)
    assert toggled(button_drawer) == toggles
    assert button_drawer.cabinet.button()[2] == pytest.approx(-0.14, abs=5e-4)


def test_toggles_once_per_episode(button_drawer):
    button_drawer.load_scene(simple_scene())
    for _ in range(2):  # the second press must not close it again
        set_button(button_drawer, 0.012)
        assert toggled(button_drawer)
    button_drawer.load_scene(simple_scene())  # a new episode allows another press
    assert not toggled(button_drawer)
    set_button(button_drawer, 0.012)
    assert toggled(button_drawer)


@pytest.mark.parametrize("bottom_open", [False, True])
def test_bottom_drawer_slides_gradually(button_drawer, bottom_open):
    """It moves to its other end at half a metre per second, so that frames show it on the way."""
    env = button_drawer
    env.load_scene(simple_scene(bottom_open=bottom_open))
    positions = record(env, lambda: env.cabinet._joint(BOTTOM_JOINT))
    set_button(env, 0.012)
    assert not env.cabinet.bottom_arrived()
    while not env.cabinet.bottom_arrived() and env.steps < 30:
        env._advance(HOLD)
    steps = np.abs(np.diff(positions))
    assert steps.max() < 1.05 * BOTTOM_SPEED * SUBSTEP_SECONDS
    assert positions[-1] == pytest.approx(0.0 if bottom_open else TRAVEL, abs=0.005)
    assert env.steps >= 7


def test_button_is_pressed_by_contact(button_drawer):
    """When the expert presses, the bottom drawer stays until the button has been pushed down by contact."""
    env = button_drawer
    env.reset(options={"scene": simple_scene(task="button")})
    cabinet, arm, client = env.cabinet, env.arm, env._client

    def read():
        contacts = client.getContactPoints(arm.body, cabinet.body)
        return cabinet._joint(BUTTON_JOINT), cabinet._joint(BOTTOM_JOINT), any(c[4] == BUTTON_JOINT for c in contacts)

    values, expert, done = record(env, read), Expert(env), False
    while not done:
        _, _, terminated, truncated, _ = env.step(expert.action())
        done = terminated or truncated
    button, bottom, touching = map(np.array, zip(*values, strict=True))
    pressed = int((button < -0.01).argmax())
    assert terminated
    assert touching[:pressed].any()
    assert np.abs(bottom[:pressed]).max() < 1e-4
    assert bottom[-1] > 0.1
