import resource

import av
import numpy as np
import pytest
from PIL import Image, ImageSequence

from gcb.errors import GCBError
from gcb.utils.media import LABEL_HEIGHT, tile, write_video


def colored(color, height=48, width=64):
    return np.full((height, width, 3), color, np.uint8)


RED_GREEN_BLUE = [colored(color) for color in ([200, 30, 30], [30, 200, 30], [30, 30, 200])]


def test_mp4_plays_back_the_frames_in_a_layout_for_browsers(tmp_path):
    path = tmp_path / "new" / "clip.mp4"
    write_video(path, RED_GREEN_BLUE * 4, fps=12)
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert stream.average_rate == 12
        decoded = [frame.to_ndarray(format="rgb24") for frame in container.decode(stream)]
    assert len(decoded) == 12
    for index in range(3):
        np.testing.assert_allclose(decoded[index], RED_GREEN_BLUE[index], atol=8)
    assert list(path.parent.iterdir()) == [path]


def test_mp4_pads_odd_sides(tmp_path):
    write_video(tmp_path / "odd.mp4", iter([colored([90, 90, 90], 33, 47)] * 2), fps=24)
    with av.open(str(tmp_path / "odd.mp4")) as container:
        picture = next(container.decode(video=0)).to_ndarray(format="rgb24")
    assert picture.shape == (34, 48, 3)
    np.testing.assert_allclose(picture, 90, atol=4)


def test_gif_keeps_frames_and_timing(tmp_path):
    write_video(tmp_path / "clip.gif", iter(RED_GREEN_BLUE), fps=10)
    with Image.open(tmp_path / "clip.gif") as picture:
        assert (picture.info["duration"], picture.size) == (100, (64, 48))
        colors = [np.asarray(frame.convert("RGB"))[5, 5] for frame in ImageSequence.Iterator(picture)]
    np.testing.assert_allclose(colors, [[200, 30, 30], [30, 200, 30], [30, 30, 200]], atol=4)


@pytest.mark.parametrize(
    ("name", "frames", "fps", "said"),
    [
        ("clip.txt", RED_GREEN_BLUE, 10, r"clip\.txt.*\.mp4, \.gif"),
        ("clip.mp4", [], 10, "no frames"),
        ("clip.mp4", RED_GREEN_BLUE, 0, "fps is 0"),
        ("clip.mp4", [*RED_GREEN_BLUE, colored(0, 10, 10)], 10, r"Frame 3 has shape \(10, 10, 3\)"),
        ("clip.gif", [np.zeros((4, 4, 3))], 10, "Frame 0 is float64"),
    ],
)
def test_bad_input_is_named_and_leaves_the_old_file(tmp_path, name, frames, fps, said):
    (tmp_path / name).write_text("old")
    with pytest.raises(GCBError, match=said):
        write_video(tmp_path / name, frames, fps)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


@pytest.mark.parametrize("name", ["clip.mp4", "clip.gif"])
def test_full_disk_leaves_the_old_file(tmp_path, name):
    noise = np.random.default_rng(0).integers(0, 256, (20, 64, 64, 3), dtype=np.uint8)
    (tmp_path / name).write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))  # stands for a disk with 2 kB left
    try:
        with pytest.raises(GCBError, match=name):
            write_video(tmp_path / name, noise, fps=10)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_tile_places_enlarged_frames_row_by_row():
    frames = [np.full((2, 3, 3), value, np.uint8) for value in (10, 20, 30)]
    grid = tile(frames, columns=2, scale=2, gap=1)
    assert grid.shape == (2 * 4 + 1, 2 * 6 + 1, 3)
    assert (grid[:4, :6] == 10).all()
    assert (grid[:4, 7:] == 20).all()
    assert (grid[5:, :6] == 30).all()
    assert (grid[5:, 7:] == 255).all()
    assert (grid[4] == 255).all()


def test_tile_writes_labels_below():
    grid = tile([colored(0), colored(0)], columns=2, labels=["goal", ""], gap=0)
    assert grid.shape == (48 + LABEL_HEIGHT, 128, 3)
    assert grid[48:, :64].min() < 100
    assert (grid[48:, 64:] == 255).all()
    with pytest.raises(GCBError, match="1 labels for 2 frames"):
        tile([colored(0), colored(0)], columns=2, labels=["one"])
