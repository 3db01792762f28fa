"""The scripted expert: a fixed sequence of stages with access to the hidden state.

It never returns to an earlier stage. Without noise this is not necessary; with noise it sometimes misses the handle and
does not correct that, so that noisy demonstrations reach the goal in most but not all episodes, as in the paper.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gcb.envs.layout import METRES_PER_ACTION, YAW_PER_ACTION

if TYPE_CHECKING:
    from gcb.envs.tabletop import TabletopEnv

OPEN, CLOSED = -1.0, 1.0
RAISED = 0.02
IN_LINE = np.radians(5.0)
ABOVE_HANDLE = 0.025
ABOVE_BUTTON = 0.02
AT_HANDLE = 0.0375
PUSH_GAIN = 6.0  # action per metre between the opening and its target
PRESS_DEPTH = 0.0125  # deep enough to toggle, but short of the mechanical stop
TIP_TO_PAD = 0.015
HALF_CAP = 0.01  # the height of the button is measured at the centre of its cap


class ExpertStep(NamedTuple):
    """One step of the expert: its action and what `env.step` returned for it."""

    action: np.ndarray
    observation: dict[str, np.ndarray]
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


def play_expert(
    env: "TabletopEnv", noise: float, rng: np.random.Generator, dtype: type[np.floating] = np.float64
) -> Iterator[ExpertStep]:
    """Play the expert in `env`, which must have been reset, until the episode ends.

    Each action gets Gaussian noise with standard deviation `noise`, is clipped to [-1, 1] and converted to `dtype`:
    datasets store float32, and the environment has to execute exactly the stored action.
    """
    expert, done = Expert(env), False
    while not done:
        action = expert.action()
        action = np.clip(action + noise * rng.standard_normal(action.shape), -1.0, 1.0).astype(dtype)
        step = ExpertStep(action, *env.step(action))
        done = step.terminated or step.truncated
        yield step


class Expert:
    """Noise-free actions for the current episode of `env`. Create a new one for each episode."""

    def __init__(self, env: "TabletopEnv"):
        self._env = env
        self._stages = iter(self._press_button() if env.scene.task == "button" else self._set_drawer())

    def action(self) -> np.ndarray:
        """Return the action for the current state of `env`. Call it once before each step."""
        return np.clip(next(self._stages), -1.0, 1.0).astype(np.float32)

    def _set_drawer(self):
        """Rise, turn, move above the handle, go down around it, and push along the axis."""
        cabinet = self._env.cabinet
        handle = cabinet.handle
        while self._rise() > RAISED / METRES_PER_ACTION:
            yield _action(z=self._rise(), turn=self._turn(), grip=OPEN)
        while abs(self._turn()) > IN_LINE:
            yield _action(z=self._rise(), turn=self._turn(), grip=OPEN)
        while np.linalg.norm(self._offset(handle())[:2]) > ABOVE_HANDLE / METRES_PER_ACTION:
            x, y, _ = self._offset(handle())
            yield _action(x, y, self._rise(), self._turn(), OPEN)
        while -self._offset(handle())[2] > AT_HANDLE / METRES_PER_ACTION:
            yield _action(z=self._offset(handle())[2], turn=self._turn(), grip=OPEN)
        while True:
            x, y = PUSH_GAIN * (self._env.scene.target - cabinet.opening()) * cabinet.axis
            yield _action(x, y, self._offset(handle())[2], self._turn(), OPEN)

    def _press_button(self):
        """Move above the button with closed fingers and press it down."""
        x, y, _ = self._env.cabinet.button()
        pressed = np.array([x, y, self._env.layout.button_z - PRESS_DEPTH + HALF_CAP + TIP_TO_PAD])
        while np.linalg.norm(self._offset(pressed)[:2]) > ABOVE_BUTTON / METRES_PER_ACTION:
            x, y, _ = self._offset(pressed)
            yield _action(x, y, self._rise(), 0.0, CLOSED)
        while True:
            yield _action(z=self._offset(pressed)[2], grip=CLOSED)

    def _offset(self, point: np.ndarray) -> np.ndarray:
        """Return the vector from the gripper to a point, in units of actions."""
        return (point - self._env.arm.pose()[0]) / METRES_PER_ACTION

    def _rise(self) -> float:
        """Return the way up to `layout.travel_z`, in units of actions; never negative."""
        return max(0.0, (self._env.layout.travel_z - self._env.arm.pose()[0][2]) / METRES_PER_ACTION)

    def _turn(self) -> float:
        """Return the turn that aligns the fingers with the slide axis; half turns are equivalent."""
        nearest = (self._env.cabinet.yaw + np.pi / 2) % np.pi - np.pi / 2
        return nearest - self._env.arm.yaw()


def _action(x: float = 0.0, y: float = 0.0, z: float = 0.0, turn: float = 0.0, grip: float = OPEN) -> np.ndarray:
    return np.array([x, y, z, turn / YAW_PER_ACTION, grip])
