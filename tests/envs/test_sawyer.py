"""The arm: published kinematics, control by actions, and its workspace."""

import itertools

import numpy as np
import pytest
from helpers.simple_scene import simple_scene

from gcb.envs.bullet import BulletClient, connect, pybullet
from gcb.envs.layout import WORKSPACE_HIGH, WORKSPACE_LOW
from gcb.envs.sawyer import ARM_JOINTS, HAND_LINK, MAX_YAW, NEUTRAL, Sawyer

EMPTY_SCENE = simple_scene(cabinet_xy=(2.0, 0.0))  # the cabinet is out of reach

# The kinematics published in RethinkRobotics/sawyer_robot 5.3.0.
LIMITS = [(-3.0503, 3.0503), (-3.8095, 2.2736), (-3.0426, 3.0426), (-3.0439, 3.0439)]
LIMITS += [(-2.9761, 2.9761), (-2.9761, 2.9761), (-4.7124, 4.7124)]


@pytest.fixture
def client():
    client = connect()
    yield client
    client.disconnect()


@pytest.mark.parametrize(
    ("joints", "hand"),
    [
        ((0, -1.18, 0, 2.18, 0, 0.57, 3.3161), (0.4496, 0.1603, 0.2158)),
        ((0, 0, 0, 0, 0, 0, 0), (1.0155, 0.1603, 0.317)),
    ],
)
def test_forward_kinematics_match_the_published_ones(client: BulletClient, joints, hand):
    arm = Sawyer(client, np.array(joints, float))
    position = client.getLinkState(arm.body, HAND_LINK, computeForwardKinematics=True)[4]
    np.testing.assert_allclose(position, hand, atol=1e-4)


def test_joint_limits_match_the_published_ones(client: BulletClient):
    arm = Sawyer(client, np.array(NEUTRAL))
    assert [client.getJointInfo(arm.body, joint)[8:10] for joint in ARM_JOINTS] == LIMITS
    assert all(low < angle < high for angle, (low, high) in zip(NEUTRAL, LIMITS, strict=True))


def test_starts_at_the_start_position_pointing_down_with_open_fingers(env):
    env.load_scene(EMPTY_SCENE)
    position, quaternion = env.arm.pose()
    np.testing.assert_allclose(position, env.layout.gripper_start, atol=1e-4)
    assert pybullet.getMatrixFromQuaternion(quaternion.tolist())[8] == pytest.approx(-1, abs=1e-6)
    assert env.arm.yaw() == pytest.approx(0, abs=1e-4)
    assert env.arm.tip_distance() == pytest.approx(2 * 0.0208)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_an_action_moves_the_gripper_by_five_centimetres(drawer, axis):
    drawer.load_scene(EMPTY_SCENE)
    before = drawer.arm.pose()[0]
    action = np.zeros(5)
    action[axis] = -1 if axis == 2 else 1
    drawer._advance(action)
    np.testing.assert_allclose(drawer.arm.pose()[0] - before, 0.05 * action[:3], atol=0.004)
    drawer._advance(np.zeros(5))
    np.testing.assert_allclose(drawer.arm.pose()[0] - before, 0.05 * action[:3], atol=0.004)


def test_an_action_turns_by_five_degrees_and_closes_the_fingers(drawer):
    drawer.load_scene(EMPTY_SCENE)
    drawer._advance(np.array([0, 0, 0, 1.0, 1.0]))
    # PyBullet's solver only checks the position: turning on the spot may end a degree short.
    assert np.degrees(drawer.arm.yaw()) == pytest.approx(4.5, abs=0.7)
    assert drawer.arm.tip_distance() == pytest.approx(0, abs=0.002)
    drawer._advance(np.array([1.0, 0, 0, -1.0, 0.0]))
    assert np.degrees(drawer.arm.yaw()) == pytest.approx(-0.5, abs=0.7)
    assert drawer.arm.tip_distance() == pytest.approx(0.0208, abs=0.002)  # half open


@pytest.mark.parametrize("corner", list(itertools.product((-1, 1), (-1, 1), (-1, 1))))
def test_gripper_stays_in_its_workspace(drawer, corner):
    """Commanded towards a corner for many steps, it stops there."""
    drawer.load_scene(EMPTY_SCENE)
    for _ in range(25):
        drawer._advance(np.array([*corner, 1.0, -1.0]))
        position = drawer.arm.pose()[0]
        assert np.all(position > WORKSPACE_LOW - 0.01)
        assert np.all(position < WORKSPACE_HIGH + 0.01)
    np.testing.assert_allclose(position, np.where(np.array(corner) > 0, WORKSPACE_HIGH, WORKSPACE_LOW), atol=0.02)
    assert drawer.arm.yaw() < MAX_YAW + 0.01


def test_inverse_kinematics_reaches_the_whole_workspace(drawer):
    """From the start to points all over the workspace, in steps of the size of an action."""
    errors = []
    for target in itertools.product((0.5, 0.675, 0.85), (-0.2, 0.0, 0.2), (-0.36, -0.23, -0.1)):
        drawer.load_scene(EMPTY_SCENE)
        arm = drawer.arm
        for _ in range(30):
            position = arm.pose()[0]
            step = np.clip(np.array(target) - position, -0.05, 0.05)
            arm._set_joints(arm._inverse_kinematics(position + step, 0.0))
        errors.append(np.linalg.norm(arm.pose()[0] - target))
        assert abs(np.degrees(arm.yaw())) < 0.5
    assert np.median(errors) < 0.0005
    assert max(errors) < 0.02
