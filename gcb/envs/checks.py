"""Checks of what users pass to the environments."""

import os

import numpy as np

from gcb.envs.layout import Layout
from gcb.envs.scene import Scene
from gcb.errors import GCBError
from gcb.utils.os_errors import check_path

INTEGERS = (int, np.integer)


def check_choice(name: str, value: object, accepted: tuple) -> None:
    """Raise an error unless `value` is one of the accepted ones."""
    if value not in accepted:
        raise GCBError(f"{name} is {value!r}; accepted: {', '.join(map(repr, accepted))}.")


def check_scene(scene: object, layout: Layout) -> None:
    """Raise an error unless `scene` is None or a scene with a task of this layout."""
    if scene is None:
        return
    if not isinstance(scene, Scene):
        raise GCBError(f"scene is of type {type(scene).__name__}; it must be a gcb.envs.scene.Scene.")
    check_choice("the scene's task", scene.task, layout.tasks)


def check_video(video: object) -> None:
    """Raise an error unless `video` is None or may name a directory of clips."""
    if video is None:
        return
    if not isinstance(video, str | os.PathLike):
        raise GCBError(f"video is {video!r}; accepted: None, 'builtin', or a directory of clips.")
    check_path("video", video)


def check_size(name: str, value: int) -> None:
    """Raise an error unless `value` is a possible size of images."""
    if not isinstance(value, INTEGERS) or not 8 <= value <= 2048:
        raise GCBError(f"{name} is {value!r}; it must be an integer from 8 to 2048 (pixels).")


def check_count(name: str, value: int) -> None:
    """Raise an error unless `value` is a positive integer."""
    if not isinstance(value, INTEGERS) or isinstance(value, bool) or value < 1:
        raise GCBError(f"{name} is {value!r}; it must be an integer of at least 1.")


def checked_action(action: np.ndarray) -> np.ndarray:
    """Return an action clipped to [-1, 1]; raise an error if it has another shape or is not finite."""
    action = np.asarray(action, np.float64)
    if action.shape != (5,):
        raise GCBError(f"action has shape {action.shape}; it must be (5,): x, y, z, yaw, grip.")
    if not np.all(np.isfinite(action)):
        raise GCBError(f"action is {action.tolist()}; its values must be finite.")
    return np.clip(action, -1.0, 1.0)
