"""The arm: a 7-joint Sawyer with a two-finger gripper, controlled by 5-D actions through inverse kinematics."""

import numpy as np

from gcb.envs.bullet import BulletClient, pybullet
from gcb.envs.layout import METRES_PER_ACTION, URDF, WORKSPACE_HIGH, WORKSPACE_LOW, YAW_PER_ACTION

ARM_JOINTS = tuple(range(7))
HAND_LINK = 7
FINGER_JOINTS = (9, 10)
GRIP_LINK = 11
FINGER_TRAVEL = 0.0208
CLOSED_GAP = 0.0  # between the finger pads when the gripper is closed

# Gripper down, elbow up, wrist turned so that yaw 0 is in the middle of the last joint's range.
NEUTRAL = (0.0, -1.18, 0.0, 2.18, 0.0, 0.57, -1.3963)
MAX_YAW = np.radians(120.0)  # the fingers are symmetric: every direction is within 90 degrees
MAX_FORCE = 100.0
POSITION_GAIN = 0.3  # ten substeps cover all but 0.7**10 = 3 % of the way
IK_ITERATIONS = 100
# PyBullet stops as soon as the position alone is within this residual. With its default of 1e-4, turning on the spot
# ended after one iteration, a degree short and a centimetre off; this value makes it run all iterations.
IK_RESIDUAL = 1e-12


def _pointing_down(yaw: float) -> tuple[float, ...]:
    return pybullet.getQuaternionFromEuler([np.pi, 0.0, yaw])


class Sawyer:
    """The arm in one simulation. `start_joints` (from `Sawyer.solve`) puts the gripper into its start pose."""

    def __init__(self, client: BulletClient, start_joints: np.ndarray):
        self._client = client
        self.body = client.loadURDF(str(URDF / "sawyer.urdf"), useFixedBase=True)
        self._set_joints(start_joints)
        for finger in FINGER_JOINTS:
            client.resetJointState(self.body, finger, FINGER_TRAVEL)
        self._command(start_joints, FINGER_TRAVEL)

    @classmethod
    def solve(cls, client: BulletClient, position: tuple[float, float, float]) -> np.ndarray:
        """Return the joint angles that put the gripper at `position` with yaw 0. Clears the simulation."""
        client.resetSimulation()
        arm = cls(client, np.array(NEUTRAL))
        joints = np.array(NEUTRAL)
        for _ in range(30):
            joints = arm._inverse_kinematics(np.array(position), 0.0)
            arm._set_joints(joints)
        client.resetSimulation()
        return joints

    def pose(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the position of the point between the finger pads, and its quaternion (x, y, z, w)."""
        link = self._client.getLinkState(self.body, GRIP_LINK, computeForwardKinematics=True)
        return np.array(link[4]), np.array(link[5])

    def yaw(self) -> float:
        """Return the yaw of the gripper in radians."""
        return _yaw(self.pose()[1])

    def tip_distance(self) -> float:
        """Return the gap between the finger pads in metres."""
        fingers = self._client.getJointStates(self.body, FINGER_JOINTS)
        return CLOSED_GAP + sum(finger[0] for finger in fingers)

    def apply(self, action: np.ndarray) -> None:
        """Command [x, y, z, yaw, grip]: a motion relative to the current pose, and the grip (-1 open, 1 closed)."""
        position, quaternion = self.pose()
        target = np.clip(position + METRES_PER_ACTION * action[:3], WORKSPACE_LOW, WORKSPACE_HIGH)
        yaw = np.clip(_yaw(quaternion) + YAW_PER_ACTION * action[3], -MAX_YAW, MAX_YAW)
        self._command(self._inverse_kinematics(target, float(yaw)), FINGER_TRAVEL * (1 - float(action[4])) / 2)

    def _inverse_kinematics(self, position: np.ndarray, yaw: float) -> np.ndarray:
        solution = self._client.calculateInverseKinematics(
            self.body,
            GRIP_LINK,
            position.tolist(),
            _pointing_down(yaw),
            maxNumIterations=IK_ITERATIONS,
            residualThreshold=IK_RESIDUAL,
        )
        return np.array(solution[: len(ARM_JOINTS)])

    def _command(self, joints: np.ndarray, finger: float) -> None:
        indices = ARM_JOINTS + FINGER_JOINTS
        self._client.setJointMotorControlArray(
            self.body,
            indices,
            pybullet.POSITION_CONTROL,
            targetPositions=[*joints.tolist(), finger, finger],
            forces=[MAX_FORCE] * len(ARM_JOINTS) + [20.0] * len(FINGER_JOINTS),
            positionGains=[POSITION_GAIN] * len(indices),
        )

    def _set_joints(self, joints: np.ndarray) -> None:
        for index, angle in zip(ARM_JOINTS, joints.tolist(), strict=True):
            self._client.resetJointState(self.body, index, angle)


def _yaw(quaternion: np.ndarray) -> float:
    """Return the yaw of a gripper that points down: the direction of its x axis (a rotation by pi about x keeps x)."""
    x, y, z, w = quaternion
    return float(np.arctan2(2 * (x * y + z * w), 1 - 2 * (y * y + z * z)))
