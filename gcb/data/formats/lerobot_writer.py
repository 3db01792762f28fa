"""Write LeRobotDatasets in format v3.0: images as PNG, which keeps every pixel.

An episode of T transitions becomes T + 1 rows; in the last one, action, reward and success are those of the row before.
What LeRobot has no name for is written as features that start with `gcb.`, and to meta/gcb.json.
"""

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from gcb.data.episode import Episode
from gcb.data.formats.lerobot import (
    ABOUT,
    ACTION,
    GOAL_IMAGE,
    GOAL_STATE,
    GOAL_VECTOR,
    IMAGE,
    MODES,
    REWARD,
    SCENE,
    STATES,
    SUCCESS,
    TERMINATED,
    VECTOR,
)
from gcb.data.formats.lerobot_meta import DATA_PATH, EPISODES, FILE, FORMAT, INFO, STATS, TASKS, check_installed
from gcb.data.store import Dataset
from gcb.errors import GCBError
from gcb.utils.files import staged_dir, write_json
from gcb.utils.progress import Progress

FPS = 10.0
"""Frames per second if the dataset does not say."""
CHUNK_FILES, FILE_MEGABYTES = 1000, 100
"""LeRobot's own limits: files in a directory, and the size at which the next file begins."""
INDEX = {
    "timestamp": "float32",
    "frame_index": "int64",
    "episode_index": "int64",
    "index": "int64",
    "task_index": "int64",
}
"""Columns of every LeRobotDataset."""


def write_lerobot(dataset: Dataset, out: Path, *, action_bound: float = 1.0, quiet: bool = False) -> None:
    """Write a LeRobotDataset to a new directory, completely or not at all."""
    check_installed()
    if out.exists():
        raise GCBError(f"{out} already exists; name a new directory")
    goals = np.asarray(dataset.episode_goal_frame) >= 0
    if goals.any() and not goals.all():
        raise GCBError(f"{int(goals.sum())} of {len(goals)} episodes have a goal; LeRobot needs it in all or in none")
    shape = dataset.frames.shape[1:]
    if len(shape) == 3 and shape[2] not in MODES.values():
        raise GCBError(f"the images have {shape[2]} channels; LeRobot's have 1, 3 or 4")
    with staged_dir(out) as staging:
        (staging / "meta" / "episodes" / "chunk-000").mkdir(parents=True)
        writer = _Writer(dataset, staging)
        with Progress("exporting", dataset.episodes, "episodes", quiet=quiet) as bar:
            for number in range(dataset.episodes):
                writer.append(number, dataset.episode(number))
                bar.advance()
        writer.close()
        about = {"config": dict(dataset.config), "scene_names": list(dataset.scene_names), "action_bound": action_bound}
        write_json(staging / ABOUT, {**about, "has_tasks": dataset.episode_task is not None})


class _Writer:
    """Appends episodes to the files, and sums up what the metadata say about them."""

    def __init__(self, dataset: Dataset, root: Path) -> None:
        self._root, self._tasks = root, list(dataset.task_names) or ["no task"]
        self._fps = float(dataset.config.get("source", {}).get("fps", FPS))
        self._features = _features(dataset)
        self._statistics = {name: _Statistics() for name in self._features}
        self._episodes: list[dict[str, Any]] = []
        self._frames, self._file = 0, -1
        self._handle: Any = None
        self._parquet: Any = None

    def append(self, number: int, episode: Episode) -> None:
        """Write one episode as one row group."""
        import pyarrow as pa

        task = self._tasks.index(episode.task) if episode.task is not None else 0
        rows = self._rows(number, episode, task)
        for name, array in rows.items():
            self._statistics[name].add(array, self._features[name]["dtype"] == "image")
        columns = [_column(rows[name], feature) for name, feature in self._features.items()]
        self._open().write_table(pa.Table.from_arrays(columns, schema=_schema(self._features)))
        chunk, file = divmod(self._file, CHUNK_FILES)
        entry = {"episode_index": number, "tasks": [self._tasks[task]], "length": len(episode.frames)}
        entry |= {"data/chunk_index": chunk, "data/file_index": file, "dataset_from_index": self._frames}
        self._frames += len(episode.frames)
        meta = {"meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0}
        self._episodes.append({**entry, "dataset_to_index": self._frames, **meta})

    def close(self) -> None:
        """Write the metadata."""
        import pyarrow as pa
        from pyarrow import parquet

        self._close_file()
        parquet.write_table(
            pa.Table.from_pylist(self._episodes),
            self._root / f"{EPISODES}/{FILE.format(chunk_index=0, file_index=0)}.parquet",
        )
        parquet.write_table(_task_table(self._tasks), self._root / TASKS)
        write_json(self._root / STATS, {name: value.summary() for name, value in self._statistics.items()})
        counts = {"total_episodes": len(self._episodes), "total_frames": self._frames, "total_tasks": len(self._tasks)}
        sizes = {"chunks_size": CHUNK_FILES, "data_files_size_in_mb": FILE_MEGABYTES, "video_files_size_in_mb": 200}
        fps = int(self._fps) if self._fps.is_integer() else self._fps
        head = {
            "codebase_version": FORMAT,
            "robot_type": None,
            "fps": fps,
            "splits": {"train": f"0:{len(self._episodes)}"},
        }
        paths = {"data_path": DATA_PATH, "video_path": None}
        write_json(self._root / INFO, {**head, **counts, **sizes, **paths, "features": self._features})

    def _rows(self, number: int, episode: Episode, task: int) -> dict[str, np.ndarray]:
        """Return the columns of one episode, images as arrays."""
        length, image = len(episode.frames), episode.frames.ndim == 4
        steps = np.arange(length)
        rows: dict[str, Any] = {IMAGE if image else VECTOR: episode.frames, ACTION: _repeat_last(episode.actions)}
        rows[TERMINATED] = _repeat_last(episode.terminated)
        rows["next.done"] = steps == length - 1
        if episode.goal_frame is not None:
            rows[GOAL_IMAGE if image else GOAL_VECTOR] = np.broadcast_to(episode.goal_frame, episode.frames.shape)
        if episode.rewards is not None:
            rows[REWARD] = _repeat_last(episode.rewards)
        if episode.success is not None:
            rows[SUCCESS] = (steps == length - 1) & episode.success
        if episode.states is not None:
            rows[STATES] = episode.states
        constants = {GOAL_STATE: episode.goal_state, SCENE: np.array([*episode.scene.values()], np.float32)}
        for name, value in constants.items():
            if value is not None and len(value):
                rows[name] = np.broadcast_to(value, (length, len(value)))
        index = {"timestamp": steps / self._fps, "frame_index": steps, "episode_index": np.full(length, number)}
        index |= {"index": self._frames + steps, "task_index": np.full(length, task)}
        return {**{name: np.asarray(value) for name, value in rows.items()}, **index}

    def _open(self) -> Any:
        """Return the writer of the current file; begin the next one if it is full."""
        from pyarrow import parquet

        if self._handle is None or self._handle.tell() >= FILE_MEGABYTES * 1_000_000:
            self._close_file()
            self._file += 1
            chunk, file = divmod(self._file, CHUNK_FILES)
            path = self._root / DATA_PATH.format(chunk_index=chunk, file_index=file)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = open(path, "wb")  # noqa: SIM115 (closed by _close_file)
            self._parquet = parquet.ParquetWriter(self._handle, _schema(self._features))
        return self._parquet

    def _close_file(self) -> None:
        if self._handle is not None:
            self._parquet.close()
            self._handle.close()


def _features(dataset: Dataset) -> dict[str, dict[str, Any]]:
    """Return LeRobot's description of the columns."""
    shape = list(dataset.frames.shape[1:])
    image = len(shape) == 3
    kind = {"dtype": "image", "shape": shape, "names": ["height", "width", "channels"]}
    frame = kind if image else _feature(str(dataset.frames.dtype), shape[0])
    features = {IMAGE if image else VECTOR: frame}
    if (np.asarray(dataset.episode_goal_frame) >= 0).all():
        features[GOAL_IMAGE if image else GOAL_VECTOR] = frame
    features[ACTION] = _feature(str(dataset.actions.dtype), dataset.actions.shape[1])
    features |= {"next.done": _feature("bool"), TERMINATED: _feature("bool")}
    if dataset.rewards is not None:
        features[REWARD] = _feature("float32")
    if dataset.episode_success is not None:
        features[SUCCESS] = _feature("bool")
    if dataset.states is not None:
        features[STATES] = _feature("float32", dataset.states.shape[1])
        if (np.asarray(dataset.episode_goal_frame) >= 0).all():
            features[GOAL_STATE] = _feature("float32", dataset.states.shape[1])
    if dataset.scene_names:
        features[SCENE] = {**_feature("float32", len(dataset.scene_names)), "names": list(dataset.scene_names)}
    return features | {name: _feature(dtype) for name, dtype in INDEX.items()}


def _feature(dtype: str, size: int = 1) -> dict[str, Any]:
    return {"dtype": dtype, "shape": [size], "names": None}


def _repeat_last(rows: np.ndarray) -> np.ndarray:
    return np.concatenate([rows, rows[-1:]])


def _schema(features: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return the columns' types, with the description by which the library `datasets` decodes images."""
    import pyarrow as pa

    described = {name: _described(feature) for name, feature in features.items()}
    metadata = {"huggingface": json.dumps({"info": {"features": described}})}
    return pa.schema([(name, _type(feature)) for name, feature in features.items()], metadata)


def _type(feature: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    if feature["dtype"] == "image":
        return pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    dtype = pa.from_numpy_dtype(np.dtype(feature["dtype"]))
    return dtype if feature["shape"] == [1] else pa.list_(dtype, feature["shape"][0])


def _described(feature: Mapping[str, Any]) -> dict[str, Any]:
    if feature["dtype"] == "image":
        return {"_type": "Image"}
    value = {"dtype": feature["dtype"], "_type": "Value"}
    return value if feature["shape"] == [1] else {"feature": value, "length": feature["shape"][0], "_type": "Sequence"}


def _column(rows: np.ndarray, feature: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    if feature["dtype"] == "image":
        content = pa.array(list(_encode(rows)), pa.binary())
        names = pa.nulls(len(rows), pa.string())
        return pa.StructArray.from_arrays([content, names], ["bytes", "path"])
    values = pa.array(np.ascontiguousarray(rows, feature["dtype"]).ravel())
    return values if feature["shape"] == [1] else pa.FixedSizeListArray.from_arrays(values, feature["shape"][0])


def _encode(images: np.ndarray) -> Iterator[bytes]:
    """Yield each image as a PNG file; the goal, repeated in every row, is encoded once."""
    content = b""
    for number, image in enumerate(images):
        if number == 0 or images.strides[0]:
            buffer = io.BytesIO()
            Image.fromarray(image[..., 0] if image.shape[2] == 1 else image).save(buffer, "PNG", compress_level=3)
            content = buffer.getvalue()
        yield content


def _task_table(tasks: list[str]) -> Any:
    """Return the tasks as pandas writes them, with the words as index."""
    import pyarrow as pa

    columns = [("task_index", "int64", "int64"), ("task", "unicode", "object")]
    entries = [
        {"name": name, "field_name": name, "pandas_type": kind, "numpy_type": dtype, "metadata": None}
        for name, kind, dtype in columns
    ]
    pandas = {"index_columns": ["task"], "column_indexes": [], "columns": entries, "pandas_version": "2.0.0"}
    table = pa.table({"task_index": pa.array(range(len(tasks)), pa.int64()), "task": pa.array(tasks, pa.string())})
    return table.replace_schema_metadata({"pandas": json.dumps(pandas)})


class _Statistics:
    """Minimum, maximum, mean and standard deviation of a feature; of images by channel, scaled to [0, 1]."""

    def __init__(self) -> None:
        self._count = self._frames = 0
        self._low: Any = np.inf
        self._high: Any = -np.inf
        self._sum: Any = 0.0
        self._squares: Any = 0.0
        self._image = False

    def add(self, rows: np.ndarray, image: bool) -> None:
        self._image = image
        constant = image and not rows.strides[0]
        values = (rows[:1] if constant else rows).reshape(-1, rows.shape[-1] if rows.ndim > 1 else 1)
        weight = len(rows) if constant else 1
        self._frames += len(rows)
        self._count += weight * len(values)
        self._low, self._high = np.minimum(self._low, values.min(axis=0)), np.maximum(self._high, values.max(axis=0))
        wide = values.astype(np.float64)
        self._sum = self._sum + weight * wide.sum(axis=0)
        self._squares = self._squares + weight * (wide * wide).sum(axis=0)

    def summary(self) -> dict[str, list[Any]]:
        mean = self._sum / self._count
        deviation = np.sqrt(np.maximum(self._squares / self._count - mean**2, 0))
        values = {"min": self._low, "max": self._high, "mean": mean, "std": deviation}
        if self._image:
            values = {name: (value / 255).reshape(-1, 1, 1) for name, value in values.items()}
        return {
            **{name: np.asarray(value, np.float64).tolist() for name, value in values.items()},
            "count": [self._frames],
        }
