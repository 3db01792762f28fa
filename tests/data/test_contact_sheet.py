"""The summary and the contact sheet of a dataset."""

from pathlib import Path

import numpy as np
import pytest
from helpers.by_hand import two_episodes
from PIL import Image

from gcb.data import contact_sheet, describe, write_dataset
from gcb.data.contact_sheet import GAP, LABEL
from gcb.errors import GCBError


def test_the_summary_counts_right(tmp_path: Path) -> None:
    data = two_episodes(
        episode_task=[0, 1], task_names=("drawer", "button"), episode_success=[True, False],
        config={"env": "gcb/Drawer-v0", "seed": 3, "noise": 0.3, "options": {"image_size": 2, "video": None}},
    )  # fmt: skip
    rows = dict(describe(write_dataset(data, tmp_path / "data")))
    assert rows["environment"] == "gcb/Drawer-v0 (image_size 2)"
    assert rows["seed"] == "3"
    assert rows["transitions"] == "5"
    assert rows["episodes"] == "2, each 2 to 3 long, mean 2.5"
    assert rows["frames"] == "9, each 2×2×3 uint8; a goal in every episode"
    assert rows["actions"] == "1 float32"
    assert rows["states"] == "none"
    assert rows["success"] == "50.0 % of 2 episodes"
    assert rows["success, drawer"] == "100.0 % of 1 episodes"
    assert rows["success, button"] == "0.0 % of 1 episodes"
    assert rows["size on disk"] == "0.0 MB"


def test_a_dataset_in_memory_without_goals_has_a_summary() -> None:
    rows = dict(describe(two_episodes(episode_goal_frame=[-1, -1], rewards=None)))
    assert rows["frames"].endswith("no goals")
    assert dict(describe(two_episodes(episode_goal_frame=[4, -1])))["frames"].endswith("a goal in 1 episodes")
    assert "success" not in rows


def test_the_contact_sheet_shows_first_last_and_goal_of_each_row(tmp_path: Path) -> None:
    path = contact_sheet(two_episodes(), tmp_path / "sheet.png", columns=4, image_size=8)
    sheet = np.asarray(Image.open(path))
    height, width = 8 + LABEL + GAP + LABEL, 8 + GAP  # one row, one image
    assert sheet.shape == (2 * height + GAP, 4 * width + GAP, 3)
    for row, frames in enumerate(([0, 2, 3, 4], [5, 6, 7, 8])):  # steps 0, half, last; goal
        top = GAP + LABEL + row * height
        for column, frame in enumerate(frames):
            left = GAP + column * width
            assert (sheet[top : top + 8, left : left + 8] == frame).all(), (row, column)


def test_the_seed_selects_the_episodes(tmp_path: Path) -> None:
    sheets = [
        contact_sheet(two_episodes(), tmp_path / f"{seed}.png", episodes=1, seed=seed) for seed in (0, 0, 1, 2, 3)
    ]
    assert sheets[0].read_bytes() == sheets[1].read_bytes()
    assert len({sheet.read_bytes() for sheet in sheets}) == 2


def test_invalid_input_is_named(tmp_path: Path) -> None:
    with pytest.raises(GCBError, match=r"shape \(4,\) and dtype float64"):
        contact_sheet(two_episodes(frames=np.zeros((9, 4))), tmp_path / "sheet.png")
    with pytest.raises(GCBError, match="columns is 2"):
        contact_sheet(two_episodes(), tmp_path / "sheet.png", columns=2)
    (tmp_path / "file").touch()
    with pytest.raises(GCBError, match=r"sheet\.png could not be written"):
        contact_sheet(two_episodes(), tmp_path / "file" / "sheet.png")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
