"""What hidden states say about function and pose, apart from where in the room a cabinet stands.

A pose is (x, y, yaw) of the cabinet; hidden states are those of `gcb.envs.layout`. "Function" is what the world's
own success asks for, with each drawer's *opening* in the place of its position, so that it can be compared across
scenes: see `same_function`.
"""

import numpy as np

from gcb.data import Dataset
from gcb.envs import ENVS
from gcb.envs.layout import (
    BOTTOM,
    BOTTOM_CLOSED,
    BUTTON,
    BUTTON_TOLERANCE,
    DRAWER_TOLERANCE,
    GRIPPER,
    HANDLE,
    HANDLE_CLOSED,
    slide_axis,
)

POSE_NAMES = ("cabinet_xy.0", "cabinet_xy.1", "cabinet_yaw")
YAW_TOLERANCE = 15.0  # degrees; one of 24 parts of a turn, three times the jitter of an analogy
POSITION_TOLERANCE = 0.05  # metres, as for a drawer


def poses(dataset: Dataset, episode: np.ndarray) -> np.ndarray | None:
    """(n, 3) poses of the cabinets of these episodes; None where the dataset is not from one of gcb's worlds."""
    known = dataset.config.get("env") in ENVS and set(POSE_NAMES) <= set(dataset.scene_names)
    if not known or dataset.states is None or dataset.episode_scene is None:
        return None
    columns = [dataset.scene_names.index(name) for name in POSE_NAMES]
    return np.asarray(dataset.episode_scene)[episode][:, columns].astype(np.float64)


def openings(hidden: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """(n, drawers) how far each drawer is open, in metres: the upper one, and where there is one the lower."""
    outward, _ = _axes(pose)
    fronts = [(HANDLE, HANDLE_CLOSED), (BOTTOM, BOTTOM_CLOSED)][: 1 + (hidden.shape[1] > BUTTON)]
    return np.stack([((hidden[:, part][:, :2] - pose[:, :2]) * outward).sum(1) - closed for part, closed in fronts], 1)


def travel_left(state: np.ndarray, goal: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """(n, drawers) how far each drawer still has to go, in metres, outward positive."""
    return openings(goal, pose) - openings(state, pose)


def gripper_place(hidden: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """(n, 3) the gripper as the cabinet sees it: outward, sideways and up, in metres."""
    outward, sideways = _axes(pose)
    way = hidden[:, GRIPPER][:, :2] - pose[:, :2]
    return np.stack([(way * outward).sum(1), (way * sideways).sum(1), hidden[:, GRIPPER][:, 2]], 1)


def as_shown(goal: np.ndarray, before: np.ndarray, button_task: np.ndarray) -> np.ndarray:
    """(n, D) hidden states of goal pictures, with the button where the picture has it.

    The world's own goal state has the button at its goal height whatever the task is; in the picture of a drawer task
    it stands as it stood `before`.
    """
    shown = goal.copy()
    if goal.shape[1] > BUTTON:
        shown[~button_task, BUTTON] = before[~button_task, BUTTON]
    return shown


def same_function(
    found: np.ndarray, found_pose: np.ndarray, goal: np.ndarray, goal_pose: np.ndarray, button_task: np.ndarray
) -> np.ndarray:
    """(n,) whether in the hidden state `found` is done what was to be done, wherever it is.

    Drawer task: the upper drawer's opening lies within .05 m of the goal's. Button task: the lower drawer's does, and
    the button stands within .008 m of its goal height, that is, it is pressed. Colours, distractors, the drawer that
    the task does not name and the cabinet's pose do not matter.
    """
    near = np.abs(openings(found, found_pose) - openings(goal, goal_pose)) <= DRAWER_TOLERANCE
    if found.shape[1] <= BUTTON:
        return near[:, 0]
    pressed = np.abs(found[:, BUTTON] - goal[:, BUTTON]) <= BUTTON_TOLERANCE
    return np.where(button_task, near[:, 1] & pressed, near[:, 0])


def pose_error(found: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n,) each: degrees between the cabinets' yaws, from 0 to 180, and metres between their places."""
    turn = np.degrees(found[:, 2] - wanted[:, 2])
    return np.abs((turn + 180.0) % 360.0 - 180.0), np.linalg.norm(found[:, :2] - wanted[:, :2], axis=1)


def same_pose(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """(n,) whether the cabinets stand within 15° and .05 m of each other."""
    yaw, position = pose_error(found, wanted)
    return (yaw <= YAW_TOLERANCE) & (position <= POSITION_TOLERANCE)


def _axes(pose: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, 2) each: the direction in which the drawers open, and the one across it."""
    outward = np.stack([slide_axis(yaw) for yaw in pose[:, 2]])
    return outward, np.stack([-outward[:, 1], outward[:, 0]], 1)
