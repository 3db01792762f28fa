"""Function and pose from hidden states, independent of where in the room a cabinet stands.

A pose is (x, y, yaw) of the cabinet; hidden states are laid out as in `gcb.envs.layout`. "Function" is the
environment's own success criterion with each drawer's *opening* in place of its position, so that it can be compared
across scenes: see `same_function`.
"""

import numpy as np

from gcb.data import Dataset
from gcb.envs import ENVS, layout
from gcb.envs.layout import BUTTON, GRIPPER

POSE_NAMES = ("cabinet_xy.0", "cabinet_xy.1", "cabinet_yaw")
YAW_TOLERANCE = 15.0  # degrees: 1/24 of a turn, three times the jitter of an analogy
POSITION_TOLERANCE = 0.05  # metres, as for a drawer
DRAWER_FRONTS = ((layout.HANDLE, layout.HANDLE_CLOSED), (layout.BOTTOM, layout.BOTTOM_CLOSED))


def poses(dataset: Dataset, episode: np.ndarray) -> np.ndarray | None:
    """Return the (n, 3) cabinet poses of these episodes; None if the dataset is not from a built-in environment."""
    known = dataset.config.get("env") in ENVS and set(POSE_NAMES) <= set(dataset.scene_names)
    if not known or dataset.states is None or dataset.episode_scene is None:
        return None
    columns = [dataset.scene_names.index(name) for name in POSE_NAMES]
    return np.asarray(dataset.episode_scene)[episode][:, columns].astype(np.float64)


def openings(hidden: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """Return (n, drawers) how far each drawer is open, in metres: the upper one and, if there is one, the lower."""
    outward, _ = _axes(pose)
    fronts = DRAWER_FRONTS if hidden.shape[1] > BUTTON else DRAWER_FRONTS[:1]
    return np.stack([((hidden[:, part][:, :2] - pose[:, :2]) * outward).sum(1) - closed for part, closed in fronts], 1)


def remaining_travel(state: np.ndarray, goal: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """Return (n, drawers) how far each drawer has yet to move, in metres, outward positive."""
    return openings(goal, pose) - openings(state, pose)


def gripper_position(hidden: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """Return (n, 3) the gripper in the cabinet's frame: outward, sideways and up, in metres."""
    outward, sideways = _axes(pose)
    offset = hidden[:, GRIPPER][:, :2] - pose[:, :2]
    return np.stack([(offset * outward).sum(1), (offset * sideways).sum(1), hidden[:, GRIPPER][:, 2]], 1)


def as_shown(goal: np.ndarray, initial: np.ndarray, button_task: np.ndarray) -> np.ndarray:
    """Return (n, D) the hidden states of goal images, with the button where the image shows it.

    The environment's goal state has the button at its goal height in every task; in the image of a drawer task it is
    where it was in the `initial` state.
    """
    shown = goal.copy()
    if goal.shape[1] > BUTTON:
        shown[~button_task, BUTTON] = initial[~button_task, BUTTON]
    return shown


def same_function(
    actual: np.ndarray, actual_pose: np.ndarray, goal: np.ndarray, goal_pose: np.ndarray, button_task: np.ndarray
) -> np.ndarray:
    """Return (n,) whether the task is done in the hidden state `actual`, wherever its cabinet stands.

    Drawer task: the upper drawer's opening is within .05 m of the goal's. Button task: the lower drawer's is, and the
    button is within .008 m of its goal height, that is, pressed. Colours, distractors, the drawer that the task does
    not name and the cabinet's pose do not matter.
    """
    near = np.abs(openings(actual, actual_pose) - openings(goal, goal_pose)) <= layout.DRAWER_TOLERANCE
    if actual.shape[1] <= BUTTON:
        return near[:, 0]
    pressed = np.abs(actual[:, BUTTON] - goal[:, BUTTON]) <= layout.BUTTON_TOLERANCE
    return np.where(button_task, near[:, 1] & pressed, near[:, 0])


def pose_error(actual: np.ndarray, expected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (n,) degrees between the cabinets' yaws, from 0 to 180, and (n,) metres between their positions."""
    turn = np.degrees(actual[:, 2] - expected[:, 2])
    return np.abs((turn + 180.0) % 360.0 - 180.0), np.linalg.norm(actual[:, :2] - expected[:, :2], axis=1)


def same_pose(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return (n,) whether the cabinets stand within 15° and .05 m of each other."""
    yaw, position = pose_error(actual, expected)
    return (yaw <= YAW_TOLERANCE) & (position <= POSITION_TOLERANCE)


def _axes(pose: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (n, 2) the direction in which the drawers open, and (n, 2) the one across it."""
    outward = np.stack([layout.slide_axis(yaw) for yaw in pose[:, 2]])
    return outward, np.stack([-outward[:, 1], outward[:, 0]], 1)
