"""Success rates, videos and image sheets of the expert."""

import av
import numpy as np
import pytest
from PIL import Image

from gcb.cli.main import main
from gcb.envs.expert_media import expert_video, measure_expert, scene_sheet
from gcb.errors import GCBError
from gcb.utils.media import LABEL_HEIGHT

SMALL = {"image_size": 16}


def test_sheet_shows_state_goal_and_example_of_each_scene(tmp_path):
    path = tmp_path / "new" / "sheet.png"
    scene_sheet("gcb/ButtonDrawer-v0", path, rows=2, seed=0, **SMALL)
    sheet = np.asarray(Image.open(path))
    side, gap = 2 * 16, 2
    assert sheet.shape == (2 * (side + LABEL_HEIGHT + gap) - gap, 4 * (side + gap) - gap, 3)
    cells = [sheet[:side, column * (side + gap) :][:, :side] for column in range(4)]
    assert len({cell.tobytes() for cell in cells}) == 4
    again = tmp_path / "again.png"
    scene_sheet("gcb/ButtonDrawer-v0", again, rows=2, seed=0, **SMALL)
    assert again.read_bytes() == path.read_bytes()


def test_unwritable_sheet_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(GCBError, match=r"sheet\.png could not be written"):
        scene_sheet("gcb/Drawer-v0", tmp_path / "file" / "sheet.png", rows=1, seed=0, **SMALL)


def test_an_unwritable_sheet_is_reported_before_episodes_are_played(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit):
        main(["expert", "--episodes", "1", "--sheet-out", str(tmp_path / "file" / "sheet.png")])
    assert capsys.readouterr().err == f"gcb: {tmp_path}/file/sheet.png could not be written: File exists. " + (
        "Nothing was kept\n"
    )


def test_video_shows_episodes_above_their_goals(tmp_path):
    path = tmp_path / "expert.gif"
    expert_video("gcb/Drawer-v0", path, episodes=2, seed=1, **SMALL)
    with av.open(str(path)) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    side = 3 * 16
    assert frames[0].shape == (2 * side + 2, 2 * side + 2, 3)
    lower = [frame[side + 2 :] for frame in frames]
    # The goals do not move; the tolerance is for the GIF's palette.
    assert all(np.abs(frame.astype(int) - lower[0]).max() < 60 for frame in lower)
    assert np.abs(frames[0][:side].astype(int) - frames[-1][:side]).max() > 60
    assert len(frames) > 10


def test_noise_free_expert_solves_every_scene_that_has_a_goal():
    rates = measure_expert("gcb/ButtonDrawer-v0", episodes=4, noise=0.0, seed=2, **SMALL)
    assert rates.noisy.value == 1
    assert rates.noise_free.successes == 4
    assert rates.noise_free.trials >= 4
    assert sum(rate.trials for rate in rates.per_task.values()) == 4


def test_invalid_arguments_are_reported():
    with pytest.raises(GCBError, match="episodes is 0"):
        measure_expert("gcb/Drawer-v0", episodes=0, noise=0.3, seed=0)
    for noise in (-1.0, float("nan")):
        with pytest.raises(GCBError, match=f"noise is {noise}; it must be at least 0"):
            measure_expert("gcb/Drawer-v0", episodes=1, noise=noise, seed=0)
    with pytest.raises(GCBError, match=r"no environment 'Drawer'; gcb has gcb/Drawer-v0"):
        measure_expert("Drawer", episodes=1, noise=0.3, seed=0)
