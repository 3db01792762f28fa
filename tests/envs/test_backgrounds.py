"""Background clips: built-in ones and those from a directory of videos."""

import hashlib
import json
import subprocess
import sys
import time
import warnings
from dataclasses import asdict
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from gcb.envs import backgrounds
from gcb.envs.backgrounds import STILLS, TEXTURES, Clip, StillBank, composite, open_bank
from gcb.envs.videos import SEGMENT, ByteCache, count_steps, reflect
from gcb.errors import GCBError
from gcb.utils.media import write_video


def write_ramp(path, frames=48, fps=24, width=96, height=64):
    """Write a video whose frame k is grey 5 k (mod 250), and white at the right edge."""
    path.parent.mkdir(parents=True, exist_ok=True)
    images = np.zeros((frames, height, width, 3), np.uint8)
    images[:] = (5 * np.arange(frames) % 250)[:, None, None, None]
    images[:, :, width - 24 :] = 255
    write_video(path, images, fps)


def sampled_names(bank, count=60):
    rng = np.random.default_rng(0)
    return {bank.sample(rng).name for _ in range(count)}


# ---- built-in ------------------------------------------------------------------------------------------------


def test_builtin_splits_are_disjoint_and_complete():
    train, held_out = (sampled_names(open_bank("builtin", split), 6000) for split in ("train", "eval"))
    assert not train & held_out
    assert train | held_out == {*STILLS, *TEXTURES}
    assert held_out == {"chelsea", "rocket", "gravel", "camera"}
    free = ("CC0", "public domain", "CC BY 2.0")
    assert all(still.licence.startswith(free) for still in STILLS.values())


def test_the_licences_of_the_photographs_stand_beside_them():
    directory = Path(backgrounds.__file__).parent / "photographs"
    rows = [
        line.strip("| ").split(" | ") for line in (directory / "README.md").read_text(encoding="utf-8").splitlines()
    ]
    ours = [still for still in STILLS.values() if not still.folder.startswith("sklearn")]
    for still in ours:
        assert [still.file, *still.licence.strip(")").split(" (")] in rows
    assert {path.name for path in directory.iterdir()} == {"README.md", *(still.file for still in ours)}


def test_half_of_the_training_clips_show_photographs():
    bank, rng = open_bank("builtin", "train"), np.random.default_rng(6)
    names = [bank.sample(rng).name for _ in range(4000)]
    textures = [name for name in names if name in TEXTURES]
    assert abs(len(textures) / len(names) - 0.5) < 0.03
    photographs, counts = np.unique([name for name in names if name in STILLS], return_counts=True)
    assert len(photographs) == 8
    assert counts.min() > 180  # 250 are expected
    assert len(set(textures)) == len(TEXTURES) == 200


def test_evaluation_clips_of_a_seed_stay_the_same():
    """The clips were sampled before the training split had textures; results of evaluations must be comparable."""
    bank, rng = open_bank("builtin", "eval"), np.random.default_rng(11)
    clips = [bank.sample(rng) for _ in range(8)]
    names = ["chelsea", "gravel", "camera", "chelsea", "camera", "chelsea", "rocket", "chelsea"]
    assert [clip.name for clip in clips] == names
    assert clips[0] == Clip(
        name="chelsea",
        start=4992.7786244011495,
        mirrored=False,
        zoom=0.5202996715246715,
        pan_x=0.01237295710883528,
        pan_y=0.013923039099506927,
        roll=0.11138532275524433,
        hue=0.07042057615419683,
    )
    assert rng.random() == 0.308709743204562  # nothing more was drawn


@pytest.mark.parametrize(
    ("split", "name", "digest"),
    [
        ("train", "astronaut", "64709d9232115c5b"),
        ("train", "coffee", "ae892cfd3504276e"),
        ("train", "grass", "117ac3903010d1e1"),
        ("train", "brick", "86f31996131d238c"),
        ("eval", "chelsea", "1427bd87e2182b75"),
        ("eval", "gravel", "9a65a4a3e2997df7"),
        ("eval", "camera", "6012fedf8861d968"),
    ],
)
def test_recorded_clips_of_png_files_keep_their_bytes(split, name, digest):
    frame = open_bank("builtin", split).frame(Clip(name, 123.5, True, 0.5, 0.02, 0.015, 0.1, 0.3), 7, 64)
    assert hashlib.sha256(frame.tobytes()).hexdigest().startswith(digest)


@pytest.mark.parametrize(
    ("split", "name", "quarters"),
    [
        ("train", "retina", [[[212.9, 73.3, 50.7], [221.2, 85.0, 60.6]], [[225.8, 78.9, 52.0], [206.8, 74.1, 45.1]]]),
        ("train", "hubble", [[[22.2, 22.1, 21.3], [20.1, 20.7, 20.2]], [[20.1, 21.3, 20.7], [18.4, 20.3, 19.3]]]),
        ("eval", "rocket", [[[33.7, 48.9, 80.5], [39.9, 54.3, 85.9]], [[44.2, 60.1, 93.3], [69.3, 79.2, 101.2]]]),
    ],
)
def test_recorded_clips_of_jpeg_files_stay_the_same(split, name, quarters):
    """Decoders of JPEG may differ in rounding, so the means of the four quarters are compared."""
    frame = open_bank("builtin", split).frame(Clip(name, 123.5, True, 0.5, 0.02, 0.015, 0.1, 0.3), 7, 64)
    np.testing.assert_allclose(frame.reshape(2, 32, 2, 32, 3).mean(axis=(1, 3)), quarters, atol=0.5)


@pytest.mark.parametrize("split", ["train", "eval"])
def test_builtin_frames_have_color_and_move(split):
    bank, rng = open_bank("builtin", split), np.random.default_rng(1)
    for _ in range(20):
        clip = bank.sample(rng)
        frames = np.array([bank.frame(clip, t, 64) for t in range(0, 76, 5)]).astype(int)
        assert frames.shape == (16, 64, 64, 3)
        assert np.abs(frames[0] - frames[-1]).mean() > 3
        assert np.abs(np.diff(frames, axis=0)).mean(axis=(1, 2, 3)).min() > 0.5
        assert frames.std() > 10
        assert clip.name == "hubble" or np.ptp(frames, axis=-1).mean() > 8  # stars are white on black


def test_camera_never_leaves_the_image(monkeypatch):
    """Pillow fills pixels outside with black, so a white image must stay white."""
    bank, rng = StillBank("train"), np.random.default_rng(2)
    for extent in ((128, 128), (192, 128)):
        loaded = Image.new("RGB", extent, "white"), extent
        monkeypatch.setattr(backgrounds, "_load_still", lambda name, size, loaded=loaded: loaded)
        for _ in range(100):
            clip = bank.sample(rng)
            assert all(bank.frame(clip, t, 64).min() == 255 for t in range(0, 2000, 97))


def test_builtin_clip_at_any_time_and_size():
    bank = open_bank("builtin", "eval")
    clip = bank.sample(np.random.default_rng(3))
    assert bank.frame(clip, 1_000_000, 64).shape == (64, 64, 3)
    large, small = (bank.frame(clip, 10, size).astype(float) for size in (256, 64))
    shrunk = large.reshape(64, 4, 64, 4, 3).mean(axis=(1, 3))
    assert np.abs(shrunk - small).mean() < 8  # the same view at another size


@pytest.mark.parametrize("size", [16, 64, 300])
def test_texture_clip_at_any_size(size):
    bank = open_bank("builtin", "train")
    for name in ("texture-3", "texture-16"):
        clip = Clip(name, 50.0, zoom=0.5, pan_x=0.02, pan_y=0.02, roll=0.1)
        frame, reference = (bank.frame(clip, 10, pixels) for pixels in (size, 128))
        small, expected = (
            np.asarray(Image.fromarray(pixels).resize((16, 16), Image.Resampling.BOX), float)
            for pixels in (frame, reference)
        )
        assert frame.shape == (size, size, 3)
        assert np.abs(small - expected).mean() < 8


def test_textures_in_memory_are_bounded():
    bank = open_bank("builtin", "train")
    for name in TEXTURES:
        bank.frame(Clip(name, 0.0, zoom=0.5), 0, 16)
    info = backgrounds._load_texture.cache_info()
    assert info.maxsize is not None
    assert info.currsize == info.maxsize <= 64


def test_clip_survives_json_and_another_process():
    bank, rng = open_bank("builtin", "train"), np.random.default_rng(4)
    clips = [bank.sample(rng) for _ in range(8)]
    stored = json.dumps([asdict(clip) for clip in clips])
    assert [Clip(**fields) for fields in json.loads(stored)] == clips
    program = (
        "import hashlib, json, sys; from gcb.envs.backgrounds import Clip, open_bank\n"
        "bank = open_bank('builtin', 'train'); digest = hashlib.sha256()\n"
        "for fields in json.loads(sys.argv[1]): digest.update(bank.frame(Clip(**fields), 33, 64).tobytes())\n"
        "print(digest.hexdigest())"
    )
    answer = subprocess.run([sys.executable, "-c", program, stored], capture_output=True, text=True, check=True)
    digest = hashlib.sha256(b"".join(bank.frame(clip, 33, 64).tobytes() for clip in clips))
    assert answer.stdout.split()[-1] == digest.hexdigest()


def test_builtin_is_fast():
    bank, rng = open_bank("builtin", "train"), np.random.default_rng(5)
    clips = [bank.sample(rng) for _ in range(20)]
    for clip in clips:
        bank.frame(clip, 0, 64)
    start = time.process_time()
    for clip in clips:
        for t in range(50):
            bank.frame(clip, t, 64)
    assert (time.process_time() - start) / 1000 < 0.0006  # 0.1 ms on an idle machine


def test_unknown_clip_and_split():
    with pytest.raises(GCBError, match=r"chelsea.*astronaut"):
        open_bank("builtin", "train").frame(Clip("chelsea", 0.0), 0, 64)
    for split, name in (("eval", "texture-3"), ("train", "texture-200"), ("train", "texture-03")):
        with pytest.raises(GCBError, match=rf"{name}.*not in this bank"):
            open_bank("builtin", split).frame(Clip(name, 0.0), 0, 64)
    with pytest.raises(GCBError, match=r"'test'.*train, eval"):
        open_bank("builtin", "test")


# ---- directory of videos -------------------------------------------------------------------------------------


def test_video_plays_at_natural_speed_and_reflects(tmp_path):
    write_ramp(tmp_path / "train" / "slow.mp4", frames=24, fps=12)  # two seconds; every frame lasts two steps
    write_ramp(tmp_path / "eval" / "fast.mp4", frames=96, fps=48)  # two seconds; every other frame is shown
    for split, name, per_step in (("train", "slow", 2.5), ("eval", "fast", 10)):
        bank = open_bank(tmp_path, split)
        clip = Clip(f"{split}/{name}.mp4", start=0)
        grey = np.array([bank.frame(clip, t, 32)[16, 4].mean() for t in range(20)])
        expected = per_step * np.arange(20) if split == "eval" else 5 * (np.arange(20) // 2)
        np.testing.assert_allclose(grey, expected % 250, atol=4)
        forth, back = bank.frame(clip, 40, 32), bank.frame(clip, 2 * 47 - 40, 32)
        assert (forth == back).all()


def test_video_shows_the_central_square(tmp_path):
    write_ramp(tmp_path / "train" / "a.mp4", width=96, height=64)
    write_ramp(tmp_path / "eval" / "b.mp4", width=64, height=96)
    wide = open_bank(tmp_path, "train").frame(Clip("train/a.mp4", 0), 2, 64)
    assert wide.shape == (64, 64, 3)
    # Columns 16 to 79 of 96 are shown; white begins at column 72.
    assert wide[:, 52].max() < 60
    assert wide[:, 60].min() > 200
    mirrored = open_bank(tmp_path, "train").frame(Clip("train/a.mp4", 0, mirrored=True), 2, 64)
    assert (mirrored == wide[:, ::-1]).all()
    assert open_bank(tmp_path, "eval").frame(Clip("eval/b.mp4", 0), 2, 300).shape == (300, 300, 3)


@pytest.mark.parametrize(("suffix", "codec"), [(".mp4", None), (".mkv", None), (".avi", "mpeg4"), (".webm", "libvpx")])
def test_long_video_is_the_same_from_any_segment(tmp_path, suffix, codec):
    """Frames deep in a file are correct whether playback reaches them or starts there."""
    write_ramp(tmp_path / "whole.mp4", frames=3 * SEGMENT, width=64)
    write_ramp(tmp_path / "eval" / "other.mp4")
    convert(tmp_path / "whole.mp4", tmp_path / "train" / f"long{suffix}", codec)
    name = f"train/long{suffix}"
    playing, jumping = open_bank(tmp_path, "train"), open_bank(tmp_path, "train")
    late = [jumping.frame(Clip(name, 2 * SEGMENT), t, 16) for t in range(20)]
    played = [playing.frame(Clip(name, 0), t, 16) for t in range(2 * SEGMENT + 20)]
    assert np.array_equal(late, played[2 * SEGMENT :])
    grey = np.array(played)[:, 8, 2].mean(axis=-1)
    np.testing.assert_allclose(grey, 5 * np.arange(2 * SEGMENT + 20) % 250, atol=8)


def convert(source, target, codec=None):
    """Convert a video to another container, re-encoding it if `codec` is given."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(source)) as reader, av.open(str(target), "w") as writer:
        if codec is None:
            stream = writer.add_stream_from_template(reader.streams.video[0])
            for packet in reader.demux(video=0):
                if packet.dts is not None:
                    packet.stream = stream
                    writer.mux(packet)
            return
        stream = writer.add_stream(codec, rate=24, width=64, height=64, pix_fmt="yuv420p", bit_rate=4_000_000)
        for frame in reader.decode(video=0):
            writer.mux(stream.encode(frame))
        writer.mux(stream.encode(None))


def test_sampled_start_leaves_room_for_an_episode(tmp_path):
    write_ramp(tmp_path / "train" / "long.mp4", frames=3 * SEGMENT + 50, width=64)
    write_ramp(tmp_path / "eval" / "short.mp4", frames=10)
    rng = np.random.default_rng(0)
    bank = open_bank(tmp_path, "train")
    starts = np.array([bank.sample(rng).start for _ in range(300)])
    assert set(starts // SEGMENT) == {0, 1, 2}
    assert (starts % SEGMENT).max() <= SEGMENT - 76
    short = open_bank(tmp_path, "eval")
    clip = short.sample(rng)
    assert clip.start == 0
    assert (short.frame(clip, 75, 32) == short.frame(clip, reflect(75, 10), 32)).all()


def test_split_depends_on_the_name_only(tmp_path):
    for index in range(12):
        write_ramp(tmp_path / f"class{index % 3}" / f"{index}.mp4", frames=4)
    before = {split: sampled_names(open_bank(tmp_path, split), 200) for split in ("train", "eval")}
    assert not before["train"] & before["eval"]
    assert sum(map(len, before.values())) == 12
    assert min(map(len, before.values())) >= 2
    for index in range(12, 18):
        write_ramp(tmp_path / f"{index}.mp4", frames=4)
    for split, names in before.items():
        assert names <= sampled_names(open_bank(tmp_path, split), 300)


def test_two_readable_clips_give_both_splits_one(tmp_path):
    write_ramp(tmp_path / "first.mp4", frames=4)
    with pytest.raises(GCBError, match=r"eval split.*no readable"):
        open_bank(tmp_path, "eval")
    assert sampled_names(open_bank(tmp_path, "train")) == {"first.mp4"}
    for name in "abcdefgh":  # whatever split their hash gives them
        write_ramp(tmp_path / name / f"{name}.mp4", frames=4)
        write_ramp(tmp_path / name / f"{name}{name}.mp4", frames=4)
        train, held_out = (sampled_names(open_bank(tmp_path / name, split)) for split in ("train", "eval"))
        assert len(train) == len(held_out) == 1
        assert train != held_out


def test_broken_clip_is_skipped_with_a_warning(tmp_path):
    write_ramp(tmp_path / "train" / "good.mp4", frames=4)
    write_ramp(tmp_path / "eval" / "good.mp4", frames=4)
    (tmp_path / "train" / "broken.mp4").write_bytes(b"this is no video")
    (tmp_path / "train" / "empty.webm").write_bytes(b"")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bank = open_bank(tmp_path, "train")
        assert sampled_names(bank) == {"train/good.mp4"}
    messages = sorted(str(warning.message) for warning in caught)
    assert len(messages) == 2
    assert "broken.mp4' is skipped: " in messages[0]
    assert "empty.webm' is skipped: " in messages[1]
    # Files found to be broken earlier must not change which clips are sampled.
    first, second = np.random.default_rng(7), np.random.default_rng(7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fresh = open_bank(tmp_path, "train")
        assert [bank.sample(first) for _ in range(20)] == [fresh.sample(second) for _ in range(20)]
    with pytest.raises(GCBError, match=r"broken\.mp4"):
        bank.frame(Clip("train/broken.mp4", 0), 0, 64)


def test_truncated_video_plays_what_is_left(tmp_path):
    """The index of an .mkv is at its start: a truncated file still claims its full length."""
    write_ramp(tmp_path / "whole.mp4", frames=3 * SEGMENT, width=64)
    convert(tmp_path / "whole.mp4", tmp_path / "train" / "cut.mkv")
    write_ramp(tmp_path / "eval" / "other.mp4", frames=4)
    content = (tmp_path / "train" / "cut.mkv").read_bytes()
    (tmp_path / "train" / "cut.mkv").write_bytes(content[: len(content) // 2])
    bank = open_bank(tmp_path, "train")
    assert count_steps(tmp_path / "train" / "cut.mkv") == 3 * SEGMENT
    frames = [bank.frame(Clip("train/cut.mkv", 2 * SEGMENT), t, 16) for t in range(76)]
    assert np.std([frame[8, 2].mean() for frame in frames]) > 10


def test_directories_without_clips_are_reported(tmp_path):
    with pytest.raises(GCBError, match=r"nowhere.*does not exist"):
        open_bank(tmp_path / "nowhere", "train")
    (tmp_path / "notes.txt").write_text("nothing here")
    with pytest.raises(GCBError, match=r"No readable video clip in .*\.mp4, \.avi"):
        open_bank(tmp_path, "train")
    (tmp_path / "bad.MP4").write_bytes(b"0" * 100)
    message = r"1 files; the first, 'bad\.MP4', cannot be read: .*Invalid data"
    with pytest.warns(UserWarning, match="bad"), pytest.raises(GCBError, match=message):
        open_bank(tmp_path, "train")


# ---- helpers -------------------------------------------------------------------------------------------------


def test_reflect():
    assert [reflect(step, 4) for step in range(9)] == [0, 1, 2, 3, 2, 1, 0, 1, 2]
    assert reflect(5, 1) == 0


def test_cache_evicts_the_least_recently_used_beyond_its_limit():
    made = []

    def get(key, size=40):
        def make():
            made.append(key)
            return np.zeros(size, np.uint8)

        return cache.get((key,), make)

    cache = ByteCache(100)
    for key in "abacab":
        get(key)
    assert made == ["a", "b", "c", "b"]  # c evicted b, which was used before a; then b evicted c
    assert len(get("huge", 500)) == len(get("huge", 500)) == 500
    assert made[-1] == "huge"
    assert made.count("huge") == 1


def test_composite_puts_the_clip_into_the_background():
    image, frame = np.full((2, 2, 3), 7, np.uint8), np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    mixed = composite(image, np.array([[True, False], [False, True]]), frame)
    assert mixed.tolist() == [[[0, 1, 2], [7, 7, 7]], [[7, 7, 7], [9, 10, 11]]]
    assert mixed.dtype == np.uint8
    assert (image == 7).all()
