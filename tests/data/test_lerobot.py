"""LeRobotDatasets: lossless round trips, datasets with videos and other names, and everything that is refused.

scripts/check_lerobot.py compares with the package `lerobot` itself.
"""

import io
import json
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from helpers.counting_env import collected
from helpers.faults import run_forked
from helpers.tiny import tiny_config
from PIL import Image
from test_formats import assert_same, trajectories

from gcb.cli.main import main
from gcb.data import Dataset, ImportOptions, export_data, from_episodes, import_data, open_dataset
from gcb.errors import GCBError
from gcb.runs.run_dir import Run
from gcb.training.trainer import train

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

FPS = 10
DATA = "data/chunk-000/file-000.parquet"
EPISODES = "meta/episodes/chunk-000/file-000.parquet"
CAMERA = "observation.images.top"
LENGTHS = (4, 6)
ACTIONS = np.linspace(-3, 2, 20, dtype=np.float32).reshape(10, 2)


def image_of(index: int, size: int = 64) -> np.ndarray:
    """Return an image whose brightness tells its number, smooth enough for a video."""
    return np.full((size, size, 3), 20 * index, np.uint8)


def png(image: np.ndarray) -> dict[str, Any]:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG")
    return {"bytes": buffer.getvalue(), "path": "frame.png"}


def write_video(path: Path, images: Iterator[np.ndarray]) -> None:
    path.parent.mkdir(parents=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=FPS, options={"crf": "5", "g": "2"})
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        for image in images:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())


def write_foreign(root: Path, video: bool = False, **columns: Any) -> Path:
    """Write a dataset like lerobot does: two episodes, one camera, success in the last row of the first."""
    frames = sum(LENGTHS)
    first = np.cumsum(LENGTHS) - LENGTHS
    (root / "meta/episodes/chunk-000").mkdir(parents=True)
    (root / "data/chunk-000").mkdir(parents=True)
    steps = np.concatenate([np.arange(length) for length in LENGTHS])
    episode = np.repeat([0, 1], LENGTHS)
    rows: dict[str, Any] = {
        "action": list(ACTIONS),
        "next.success": np.arange(frames) == LENGTHS[0] - 1,
        "timestamp": (steps / FPS).astype(np.float32),
        **{"frame_index": steps, "episode_index": episode, "index": np.arange(frames), "task_index": 1 - episode},
    }
    entries = [
        {"episode_index": e, "length": LENGTHS[e], "data/chunk_index": 0, "data/file_index": 0, "tasks": ["x"]}
        for e in (0, 1)
    ]
    if video:
        write_video(root / "videos" / CAMERA / "chunk-000/file-000.mp4", map(image_of, range(frames)))
        for e, entry in enumerate(entries):
            entry |= {f"videos/{CAMERA}/{key}": 0 for key in ("chunk_index", "file_index")}
            entry |= {f"videos/{CAMERA}/from_timestamp": first[e] / FPS}
    else:
        rows[CAMERA] = [png(image_of(index)) for index in range(frames)]
    parquet.write_table(pa.table({**rows, **columns}), root / DATA)
    parquet.write_table(pa.Table.from_pylist(entries), root / EPISODES)
    tasks = pa.table({"task_index": [0, 1], "__index_level_0__": ["push", "pull"]})
    parquet.write_table(tasks, root / "meta/tasks.parquet")
    features: dict[str, Any] = {name: {"dtype": "float32", "shape": [1]} for name in {**rows, **columns}}
    features |= {CAMERA: {"dtype": "video" if video else "image", "shape": [64, 64, 3]}}
    info: dict[str, Any] = {
        "codebase_version": "v3.0",
        "fps": FPS,
        "features": features,
        "total_episodes": 2,
        "total_frames": frames,
    }
    info["data_path"] = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
    info["video_path"] = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4" if video else None
    (root / "meta/info.json").write_text(json.dumps(info))
    low, high = ACTIONS.min(axis=0).tolist(), ACTIONS.max(axis=0).tolist()
    (root / "meta/stats.json").write_text(json.dumps({"action": {"min": low, "max": high}}))
    return root


@pytest.mark.parametrize("kind", ["collected", "images", "vectors"])
def test_round_trip(tmp_path: Path, kind: str) -> None:
    if kind == "collected":
        data = collected(tmp_path / "data", 30, side=8)
    else:
        episodes = trajectories(np.random.default_rng(2), (2, 5, 1), kind == "vectors")
        for episode in episodes:  # gray, as an image of three channels is in the collected dataset
            episode["observations"] = episode["observations"][..., :1] if kind == "images" else episode["observations"]
        data = from_episodes(episodes, {"action_bound": 2.0})
    (out,) = export_data(data, tmp_path / "out", "lerobot", quiet=True)
    back = import_data(out, tmp_path / "back", quiet=True).dataset
    assert_same(back, data)
    assert back.config.get("action_bound") == data.config.get("action_bound")
    assert back.config.get("env") == data.config.get("env")


def test_an_export_is_what_other_readers_expect(tmp_path: Path) -> None:
    data = collected(tmp_path / "data", 30, side=8)
    export_data(data, tmp_path / "out", "lerobot", quiet=True)
    table = parquet.read_table(tmp_path / "out" / DATA)
    info = json.loads((tmp_path / "out/meta/info.json").read_bytes())
    assert (info["total_episodes"], info["total_frames"]) == (data.episodes, data.transitions + data.episodes)
    assert set(info["features"]) == set(table.column_names)
    described = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    assert described["observation.images.main"] == {"_type": "Image"}
    assert described["action"]["length"] == 5
    first = Image.open(io.BytesIO(table["observation.images.goal"][0].as_py()["bytes"]))
    np.testing.assert_array_equal(np.asarray(first), data.frames[data.episode_goal_frame[0]])
    row = int(data.episode_length[0])  # the last one of the first episode repeats the action
    np.testing.assert_array_equal(table["action"][row].as_py(), data.actions[row - 1])
    assert table["next.done"].to_pylist()[: row + 1] == [False] * row + [True]
    episodes = parquet.read_table(tmp_path / "out" / EPISODES).to_pylist()
    assert (episodes[1]["dataset_from_index"], episodes[1]["length"]) == (row + 1, data.episode_length[1] + 1)
    stats = json.loads((tmp_path / "out/meta/stats.json").read_bytes())
    rows = np.array(table["action"].to_pylist())
    for name, value in {"min": rows.min(0), "max": rows.max(0), "mean": rows.mean(0), "std": rows.std(0)}.items():
        np.testing.assert_allclose(stats["action"][name], value, atol=1e-6)
    goals = np.full(1, 255) / 255
    assert np.ravel(stats["observation.images.goal"]["mean"]).tolist() == [*goals, *goals, *goals]


def test_several_data_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = collected(tmp_path / "data", 30, side=8)
    monkeypatch.setattr("gcb.data.formats.lerobot_writer.FILE_MEGABYTES", 0.005)
    monkeypatch.setattr("gcb.data.formats.lerobot_writer.CHUNK_FILES", 2)
    export_data(data, tmp_path / "out", "lerobot", quiet=True)
    assert (tmp_path / "out/data/chunk-001/file-000.parquet").is_file()
    assert_same(import_data(tmp_path / "out", tmp_path / "back", quiet=True).dataset, data)
    shutil.rmtree(tmp_path / "out/data/chunk-001")
    with pytest.raises(GCBError, match=r"chunk-001/file-000\.parquet is missing, but .* episode \d"):
        import_data(tmp_path / "out", tmp_path / "other", quiet=True)


@pytest.mark.parametrize("video", [False, True])
def test_a_foreign_dataset_trains(tmp_path: Path, video: bool, capsys: pytest.CaptureFixture) -> None:
    state: dict[str, Any] = {"observation.state": np.zeros(10, np.float32)}
    root = write_foreign(tmp_path / "in", video, **state)
    main(["data", "import", str(root), "--out", str(tmp_path / "data"), "--goal", "last", "--image-size", "32"])
    data = open_dataset(tmp_path / "data")
    assert "not imported, because a dataset has no field for them: observation.state" in capsys.readouterr().out
    assert data.episode_length.tolist() == [3, 5]
    assert data.frames.shape == (12, 32, 32, 3)
    brightness = data.frames.mean(axis=(1, 2, 3))
    np.testing.assert_allclose(brightness, [0, 20, 40, 60, 60, 80, 100, 120, 140, 160, 180, 180], atol=3 * video)
    np.testing.assert_allclose(data.actions, ACTIONS[[0, 1, 2, 4, 5, 6, 7, 8]] / 3)
    assert data.terminated.tolist() == [False, False, True, *[False] * 5]
    assert data.episode_success is not None
    assert data.episode_success.tolist() == [True, False]
    assert data.episode_task is not None
    assert [data.task_names[task] for task in data.episode_task] == ["pull", "push"]
    if video:
        config = tiny_config(steps=2, batch_size=4)
        train(replace(config, goals=config.goals.without_original()), data, tmp_path / "run", quiet=True)
        assert Run(tmp_path / "run").dataset.shapes.observation == (32, 32, 3)


def edit_info(root: Path, **changes: Any) -> None:
    path = root / "meta/info.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **changes}))


def edit_table(root: Path, file: str, change: Callable[[list[dict[str, Any]]], object]) -> None:
    rows = parquet.read_table(root / file).to_pylist()
    change(rows)
    parquet.write_table(pa.Table.from_pylist(rows), root / file)


def set_entry(index: int, name: str, value: Any) -> Callable[[list[dict[str, Any]]], object]:
    return lambda rows: rows[index].update({name: value})


def stats(root: Path, text: str) -> None:
    (root / "meta/stats.json").write_text(text)


REFUSED = {
    "version": (lambda r: edit_info(r, codebase_version="v2.1"), r"codebase_version is 'v2\.1'; accepted: v3\.0"),
    "no version": (lambda r: (r / "meta/info.json").write_text("{}"), "has no codebase_version"),
    "not json": (lambda r: (r / "meta/info.json").write_text("{"), "is not readable JSON"),
    "path": (
        lambda r: edit_info(r, data_path="../../{chunk_index}{file_index}"),
        "data_path is '../.*; accepted: data/",
    ),
    "fps": (lambda r: edit_info(r, fps="fast"), "fps is 'fast'"),
    "features": (lambda r: edit_info(r, features={}), "features has no action"),
    "feature": (lambda r: edit_info(r, features={"action": 3}), "the feature action has no dtype"),
    "totals": (lambda r: edit_info(r, total_frames=11), "total_frames is 11, but meta/episodes lists 10"),
    "missing file": (
        lambda r: (r / DATA).unlink(),
        r"file-000\.parquet is missing, but .* says that episode 0 is in it",
    ),
    "missing chunk": (
        lambda r: edit_table(r, EPISODES, set_entry(1, "data/chunk_index", 7)),
        r"chunk-007/file-000\.parquet is missing, but .* episode 1",
    ),
    "no episodes": (lambda r: shutil.rmtree(r / "meta/episodes"), "has no Parquet files"),
    "truncated": (lambda r: os.truncate(r / DATA, 900), "is damaged or not a Parquet file"),
    "missing rows": (
        lambda r: edit_table(r, DATA, lambda rows: rows.pop()),
        "has 9 frames, but meta/episodes lists 10 in it",
    ),
    "order": (lambda r: edit_table(r, DATA, set_entry(2, "frame_index", 9)), "has 4 frames of episode 0.* in order"),
    "mixed sizes": (
        lambda r: edit_table(r, DATA, set_entry(5, CAMERA, png(image_of(1, 32)))),
        "episode 1 of .*: frame 1 of observation.images.top has 32×32 pixels, the first one 64×64",
    ),
    "not an image": (
        lambda r: edit_table(r, DATA, set_entry(1, CAMERA, {"bytes": b"GIF89a", "path": None})),
        "frame 1 is not a readable image",
    ),
    "a path outside": (
        lambda r: edit_table(r, DATA, lambda rows: [row.update({CAMERA: {"path": "/etc/x.png"}}) for row in rows]),
        "frame 0 has no bytes; accepted: PNG or JPEG",
    ),
    "lying stats": (
        lambda r: stats(r, '{"action": {"min": [-1, -1], "max": [1, 1]}}'),
        r"stats\.json says that the min of action is \[-1, -1\], but in the data it is \[-3",
    ),
    "strange stats": (lambda r: stats(r, '{"action": {"min": "low"}}'), "says that the min of action is"),
    "missing actions": (lambda r: edit_table(r, DATA, set_entry(3, "action", None)), "rows of different lengths"),
    "no actions": (
        lambda r: edit_table(r, DATA, lambda rows: [row.pop("action") for row in rows]),
        "has no column action; it has",
    ),
    "link": (
        lambda r: ((r / DATA).rename(r.parent / "x"), (r / DATA).symlink_to(r.parent / "x")),
        "is a link that leads out of the directory",
    ),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_refused(tmp_path: Path, fault: str) -> None:
    change, message = REFUSED[fault]
    root = write_foreign(tmp_path / "in")
    change(root)
    with pytest.raises(GCBError, match=message):
        import_data(root, tmp_path / "out", ImportOptions(goal="last", format="lerobot"), quiet=True)
    assert not (tmp_path / "out").exists()


def test_damaged_videos_leave_nothing(tmp_path: Path) -> None:
    root = write_foreign(tmp_path / "in", video=True)
    file = root / "videos" / CAMERA / "chunk-000/file-000.mp4"
    content = file.read_bytes()
    edit_table(root, EPISODES, set_entry(1, f"videos/{CAMERA}/from_timestamp", 0.8))
    with pytest.raises(GCBError, match=r"has no frame at 1\.000 s"):
        import_data(root, tmp_path / "out", quiet=True)
    edit_table(root, EPISODES, set_entry(1, f"videos/{CAMERA}/from_timestamp", 0.4))
    for damaged in (content[:500], b"#EXTM3U\n/etc/hostname\n", b""):
        file.write_bytes(damaged)
        with pytest.raises(GCBError, match=r"is damaged or not a video"):
            import_data(root, tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()
    features = json.loads((root / "meta/info.json").read_bytes())["features"]
    edit_info(root, features={**features, "../../x": {"dtype": "video"}})
    with pytest.raises(GCBError, match="would lead out of the directory"):
        import_data(root, tmp_path / "out", quiet=True)


def test_options(tmp_path: Path) -> None:
    big = [png(image_of(index, 200)) for index in range(10)]
    goal: dict[str, Any] = {"observation.images.goal": big}
    root = write_foreign(tmp_path / "in", **goal)
    features = json.loads((root / "meta/info.json").read_bytes())["features"]
    edit_info(root, features={**features, "observation.images.goal": {"dtype": "image"}})
    cases: Any = (
        ({}, "observation.images.goal has 200×200 pixels; accepted: up to 128 a side. Set image_size"),
        ({"observation": "rgb"}, f"observation is 'rgb'; .* has {CAMERA}, observation.images.goal"),
        ({"goal": "rgb"}, "goal is 'rgb'; .*, last"),
        ({"action_bound": 2, "image_size": 16}, "the largest action is 1.5"),
    )
    for options, message in cases:
        with pytest.raises(GCBError, match=message):
            import_data(root, tmp_path / "out", ImportOptions(**options), quiet=True)
    data = import_data(root, tmp_path / "out", ImportOptions(image_size=16), quiet=True).dataset
    assert data.frames[data.episode_goal_frame].mean(axis=(1, 2, 3)).tolist() == [60, 180]  # the last row counts
    edit_info(root, features={**features, "observation.images.side": {"dtype": "image"}})
    with pytest.raises(GCBError, match="set observation to the one that the agent sees"):
        import_data(root, tmp_path / "other", quiet=True)
    with pytest.raises(GCBError, match="image_size is 64; only LeRobot"):
        import_data(tmp_path, tmp_path / "other", ImportOptions(image_size=64, format="npz_dir"), quiet=True)


def test_exports_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stacked: Dataset = from_episodes(trajectories(np.random.default_rng(0), (2, 2)))
    with pytest.raises(GCBError, match="the images have 6 channels; LeRobot's have 1, 3 or 4"):
        export_data(stacked, tmp_path / "out", "lerobot")
    with pytest.raises(GCBError, match="already exists"):
        export_data(stacked, tmp_path, "lerobot")
    data = collected(tmp_path / "data", 60, side=64)
    for limit in (100, 5_000, 60_000):
        ended = run_forked(lambda limit=limit: export_limited(data, tmp_path / "full", limit))
        assert "could not be written: File too large. Nothing was kept" in ended.message, ended
    assert os.listdir(tmp_path) == ["data"]
    monkeypatch.setattr("gcb.data.formats.lerobot_meta.find_spec", lambda name: None)
    with pytest.raises(GCBError, match=r"pip install 'gcb\[lerobot\]'"):
        export_data(data, tmp_path / "out", "lerobot")


def export_limited(data: Dataset, out: Path, limit: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, data.frames.shape, np.uint8)  # does not compress
    export_data(replace(data, frames=frames), out, "lerobot", quiet=True)
