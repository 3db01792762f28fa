"""Function and pose from hidden states, against values worked out by hand."""

from typing import Any

import numpy as np
import pytest
from helpers.tiny import tiny_dataset
from helpers.toy import hidden

from gcb.analysis.geometry import (
    gripper_position,
    openings,
    pose_error,
    poses,
    remaining_travel,
    same_function,
    same_pose,
)
from gcb.data import Dataset

A, B = (0.6, 0.1, 0.4), (0.75, -0.1, 5.0)
REST, PRESSED = -0.14, -0.15


def rows(*states: np.ndarray) -> np.ndarray:
    return np.stack(states)


def test_openings_do_not_depend_on_the_cabinets_pose() -> None:
    actual = openings(rows(hidden(A, 0.03, 0.1564), hidden(B, 0.03, 0.1564)), np.array([A, B]))
    np.testing.assert_allclose(actual, [[0.03, 0.1564]] * 2, atol=1e-6)


def test_an_environment_with_one_drawer_has_one_opening() -> None:
    assert openings(hidden(A, 0.03)[None, :11], np.array([A])).shape == (1, 1)


def test_remaining_travel_is_outward() -> None:
    travel = remaining_travel(hidden(A, 0.1, 0.1564)[None], hidden(A, 0.02, 0.0)[None], np.array([A]))
    np.testing.assert_allclose(travel, [[-0.08, -0.1564]], atol=1e-6)


def test_the_gripper_in_the_cabinets_frame() -> None:
    """At yaw 0 a drawer opens towards -y, at a quarter turn towards +x."""
    state = hidden((0.6, 0.0, 0.0), 0.0)
    state[:3] = 0.65, -0.2, -0.3
    np.testing.assert_allclose(
        gripper_position(state[None], np.array([[0.6, 0.0, 0.0]])), [[0.2, 0.05, -0.3]], atol=1e-6
    )
    turned = gripper_position(state[None], np.array([[0.6, 0.0, np.pi / 2]]))
    np.testing.assert_allclose(turned, [[0.05, -0.2, -0.3]], atol=1e-6)


@pytest.mark.parametrize(
    ("actual", "goal", "button", "same"),
    [
        (hidden(A, 0.10), hidden(B, 0.149), False, True),
        (hidden(A, 0.09), hidden(B, 0.149), False, False),
        # The lower drawer and the button do not matter in the upper drawer's task.
        (hidden(A, 0.10, 0.0, REST), hidden(B, 0.1, 0.15, PRESSED), False, True),
        (hidden(A, 0.00, 0.1564, PRESSED), hidden(B, 0.15, 0.1564, PRESSED), True, True),
        (hidden(A, 0.00, 0.1564, REST), hidden(B, 0.15, 0.1564, PRESSED), True, False),
        (hidden(A, 0.00, 0.00, PRESSED), hidden(B, 0.15, 0.1564, PRESSED), True, False),
    ],
)
def test_same_function(actual: np.ndarray, goal: np.ndarray, button: bool, same: bool) -> None:
    result = same_function(actual[None], np.array([A]), goal[None], np.array([B]), np.array([button]))
    assert result.tolist() == [same]


def test_yaw_wraps_around() -> None:
    yaw, metres = pose_error(np.array([[0.6, 0.0, 0.05]]), np.array([[0.63, 0.04, 2 * np.pi - 0.05]]))
    np.testing.assert_allclose(yaw, np.degrees(0.1))
    np.testing.assert_allclose(metres, 0.05)
    opposite, _ = pose_error(np.array([[0.0, 0.0, 0.0]]), np.array([[0.0, 0.0, np.pi]]))
    np.testing.assert_allclose(opposite, 180)


def test_poses_match_within_15_degrees_and_5_cm() -> None:
    expected = np.array([[0.6, 0.0, 0.0]] * 3)
    actual = np.array([[0.64, 0.0, np.radians(14)], [0.6, 0.0, np.radians(16)], [0.6, 0.06, 0.0]])
    assert same_pose(actual, expected).tolist() == [True, False, False]


def test_other_environments_have_no_poses() -> None:
    data = tiny_dataset()
    assert poses(data, np.array([0, 1])) is None
    named: dict[str, Any] = {"scene_names": ("cabinet_yaw", "cabinet_xy.0", "cabinet_xy.1", "opening")}
    scene = np.tile([3.0, 1.0, 2.0, 9.0], (data.episodes, 1))
    known = {**data.arrays(), "episode_scene": scene, "states": np.zeros((len(data.frames), 15))}
    ours = Dataset.from_arrays(**known, **named, config={"env": "gcb/ButtonDrawer-v0"})
    np.testing.assert_array_equal(poses(ours, np.array([2])), [[1.0, 2.0, 3.0]])
    assert poses(Dataset.from_arrays(**known, **named, config={"env": "other"}), np.array([2])) is None
