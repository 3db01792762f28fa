"""Constants of the two environments: shared ones, and a `Layout` for those that differ.

Lengths are in metres, times in seconds. docs/fidelity.md gives the source of every number.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

URDF = Path(__file__).parent / "urdf"

WORKSPACE_LOW = np.array([0.5, -0.2, -0.36])
WORKSPACE_HIGH = np.array([0.85, 0.2, -0.1])
CABINET_LOW = np.array([0.46, -0.19])
CABINET_HIGH = np.array([0.84, 0.19])
TABLE_Z = -0.3775

HANDLE_CLOSED = 0.1375  # distance of the handle from the centre of the frame, drawer closed
BOTTOM_CLOSED = 0.08125  # the same for the front of the bottom drawer, which has no handle
TRAVEL = 0.1564  # maximum opening of a drawer
HANDLE_RADIUS = 0.0125
FRAME_HALF = np.array([0.09375, 0.08125])

BUTTON_TOGGLES = 0.01  # pressing the button deeper than this toggles the bottom drawer
DRAWER_TOLERANCE = 0.05
BUTTON_TOLERANCE = 0.008
SETTLED = 0.01  # the rollout that makes a goal image ends when the drawer is this close to its target

SUBSTEPS = 10
SUBSTEP_SECONDS = 1 / 240
SOLVER_ITERATIONS = 150
GRAVITY = -10.0
HORIZON = 75
METRES_PER_ACTION = 0.05
YAW_PER_ACTION = np.radians(5.0)


@dataclass(frozen=True)
class Layout:
    """What differs between the environments: cabinet, camera, tasks and components of the hidden state."""

    name: str
    urdf: Path
    tasks: tuple[str, ...]
    gripper_start: tuple[float, float, float]
    camera_distance: float
    handle_z: float
    travel_z: float  # height at which the expert moves across the table
    state_names: tuple[str, ...]
    bottom_z: float = float("nan")
    button_z: float = float("nan")

    @property
    def has_button(self) -> bool:
        return "button" in self.tasks

    @property
    def state_size(self) -> int:
        return len(self.state_names)


_DRAWER_STATE = (
    *("gripper_x", "gripper_y", "gripper_z"),
    *("gripper_qx", "gripper_qy", "gripper_qz", "gripper_qw"),
    "tip_distance",
    *("handle_x", "handle_y", "handle_z"),
)

DRAWER = Layout(
    name="Drawer",
    urdf=URDF / "drawer.urdf",
    tasks=("drawer",),
    gripper_start=(0.6, -0.15, -0.2),
    camera_distance=0.425,
    handle_z=-0.34,
    travel_z=-0.24,
    state_names=_DRAWER_STATE,
)

BUTTON_DRAWER = Layout(
    name="ButtonDrawer",
    urdf=URDF / "button_drawer.urdf",
    tasks=("drawer", "button"),
    gripper_start=(0.6, -0.15, -0.1),
    camera_distance=0.55,
    handle_z=-0.22,
    travel_z=-0.105,
    state_names=(*_DRAWER_STATE, "bottom_x", "bottom_y", "bottom_z", "button_z"),
    bottom_z=-0.34,
    button_z=-0.14,
)

# Indices into the hidden state.
GRIPPER = slice(0, 3)
HANDLE = slice(8, 11)
BOTTOM = slice(11, 14)
BUTTON = 14


def slide_axis(yaw: float) -> np.ndarray:
    """Return the direction in which a drawer opens, in the plane of the table."""
    return np.array([np.sin(yaw), -np.cos(yaw)])


def goal_reached(achieved: np.ndarray, desired: np.ndarray, button_task: np.ndarray | bool) -> np.ndarray:
    """Return whether hidden states, of any leading shape, are a success (tables 2 and 3 of the paper).

    Drawer task: the handle is within 0.05 m of its goal. Button task: the bottom drawer is within 0.05 m of its goal
    and the button within 0.008 m of its goal height.
    """
    handle = np.linalg.norm(achieved[..., HANDLE] - desired[..., HANDLE], axis=-1) <= DRAWER_TOLERANCE
    if achieved.shape[-1] <= BUTTON:
        return handle
    bottom = np.linalg.norm(achieved[..., BOTTOM] - desired[..., BOTTOM], axis=-1) <= DRAWER_TOLERANCE
    pressed = np.abs(achieved[..., BUTTON] - desired[..., BUTTON]) <= BUTTON_TOLERANCE
    return np.where(button_task, bottom & pressed, handle)
