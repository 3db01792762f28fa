"""The cabinet: drawers that slide when pushed, and a spring-loaded button that moves the bottom drawer."""

import numpy as np

from gcb.envs.bullet import BulletClient, pybullet
from gcb.envs.layout import BOTTOM_CLOSED, BUTTON_TOGGLES, HANDLE_CLOSED, TABLE_Z, TRAVEL, Layout, slide_axis
from gcb.envs.scene import Scene

FRAME_LINK, DRAWER_JOINT, HANDLE_LINK, BOTTOM_JOINT, BUTTON_JOINT = -1, 0, 1, 2, 3

DRAWER_FRICTION = 4.0  # newtons: holds the drawer in place, and yields to the fingers
SPRING_FORCE = 6.0
SPRING_GAIN = 0.05
BOTTOM_FORCE = 30.0
ARRIVED = 0.005  # metres from its end at which the bottom drawer counts as arrived
BOTTOM_SPEED = 0.5  # metres per second: the bottom drawer opens in about seven actions


class Cabinet:
    """The cabinet of one scene. Call `after_substep` after each simulation step: it handles the button."""

    def __init__(self, client: BulletClient, layout: Layout, scene: Scene):
        self._client = client
        self._layout = layout
        self._xy = np.array(scene.cabinet_xy)
        self.yaw = scene.cabinet_yaw
        self.axis = slide_axis(self.yaw)
        self.body = client.loadURDF(
            str(layout.urdf),
            basePosition=[*scene.cabinet_xy, TABLE_Z],
            baseOrientation=pybullet.getQuaternionFromEuler([0.0, 0.0, self.yaw]),
            useFixedBase=True,
        )
        client.resetJointState(self.body, DRAWER_JOINT, scene.opening)
        client.setJointMotorControl2(
            self.body, DRAWER_JOINT, pybullet.VELOCITY_CONTROL, targetVelocity=0.0, force=DRAWER_FRICTION
        )
        self._toggled = False
        self._bottom_target = TRAVEL if scene.bottom_open else 0.0
        if layout.has_button:
            client.resetJointState(self.body, BOTTOM_JOINT, self._bottom_target)
            self._drive_bottom()
            client.setJointMotorControl2(
                self.body,
                BUTTON_JOINT,
                pybullet.POSITION_CONTROL,
                targetPosition=0.0,
                positionGain=SPRING_GAIN,
                force=SPRING_FORCE,
            )
        self._paint(scene)

    def after_substep(self) -> None:
        """Toggle the bottom drawer when the button is pressed past the threshold, once per episode."""
        if self._layout.has_button and not self._toggled and -self._joint(BUTTON_JOINT) > BUTTON_TOGGLES:
            self._toggled = True
            self._bottom_target = TRAVEL - self._bottom_target
            self._drive_bottom()

    def opening(self) -> float:
        """Return how far the (top) drawer is open, in metres."""
        return self._joint(DRAWER_JOINT)

    def handle(self, opening: float | None = None) -> np.ndarray:
        """Return the position of the handle, now or at a given opening."""
        distance = HANDLE_CLOSED + (self.opening() if opening is None else opening)
        return np.array([*(self._xy + distance * self.axis), self._layout.handle_z])

    def bottom(self) -> np.ndarray:
        """Return the centre of the bottom drawer's front."""
        distance = BOTTOM_CLOSED + self._joint(BOTTOM_JOINT)
        return np.array([*(self._xy + distance * self.axis), self._layout.bottom_z])

    def bottom_arrived(self) -> bool:
        """Return whether the button was pressed and the bottom drawer has reached its new position."""
        return self._toggled and abs(self._joint(BOTTOM_JOINT) - self._bottom_target) < ARRIVED

    def button(self) -> np.ndarray:
        """Return the position of the button's cap."""
        return np.array([*self._xy, self._layout.button_z + self._joint(BUTTON_JOINT)])

    def _joint(self, index: int) -> float:
        return self._client.getJointState(self.body, index)[0]

    def _drive_bottom(self) -> None:
        self._client.setJointMotorControl2(
            self.body,
            BOTTOM_JOINT,
            pybullet.POSITION_CONTROL,
            targetPosition=self._bottom_target,
            force=BOTTOM_FORCE,
            maxVelocity=BOTTOM_SPEED,
        )

    def _paint(self, scene: Scene) -> None:
        parts = [(FRAME_LINK, "frame"), (DRAWER_JOINT, "drawer"), (HANDLE_LINK, "handle")]
        if self._layout.has_button:
            parts += [(BOTTOM_JOINT, "bottom"), (BUTTON_JOINT, "button")]
        for link, part in parts:
            self._client.changeVisualShape(self.body, link, rgbaColor=[*scene.colors[part], 1.0])
