"""The metadata of a LeRobotDataset in format v3.0, checked before any frame is read.

ROOT/meta/info.json                               version, frames per second, features, totals
ROOT/meta/stats.json                              minimum and maximum of every feature, and more
ROOT/meta/tasks.parquet                           tasks in words, with their index
ROOT/meta/episodes/chunk-000/file-000.parquet     one row per episode: its length, and in which files it is
ROOT/data/chunk-000/file-000.parquet              one row per frame; images as PNG
ROOT/videos/FEATURE/chunk-000/file-000.mp4        features of type video, episode after episode
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from gcb.errors import GCBError
from gcb.utils.text_files import read_json

INFO, STATS, TASKS, EPISODES = "meta/info.json", "meta/stats.json", "meta/tasks.parquet", "meta/episodes"
FORMAT = "v3.0"
FILE = "chunk-{chunk_index:03d}/file-{file_index:03d}"
DATA_PATH, VIDEO_PATH = f"data/{FILE}.parquet", f"videos/{{video_key}}/{FILE}.mp4"
IMAGES = ("image", "video")
"""Types of features that show images."""


def check_installed() -> None:
    """Raise unless Parquet files can be read."""
    if find_spec("pyarrow") is None:
        raise GCBError("LeRobot's files need pyarrow, which is not installed: pip install 'gcb[lerobot]'.")


def read_table(path: Path, columns: Sequence[str] | None = None) -> Any:
    """Return the given columns of a Parquet file as a pyarrow table."""
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            table = file.read(columns=None if columns is None else list(columns))
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise GCBError(f"{path} is damaged or not a Parquet file: {' '.join(str(error).split())[:200]}") from error
    if missing := [name for name in columns or () if name not in table.column_names]:
        raise GCBError(f"{path} has no column {', '.join(missing)}; it has {', '.join(table.column_names)}")
    return table


def as_array(column: Any, name: str) -> np.ndarray:
    """Return a column of numbers, or of lists of equal length, as an array with one row per frame."""
    import pyarrow as pa
    from pyarrow import compute

    values, rows = column.combine_chunks(), len(column)
    shape: tuple[int, ...] = (rows,)
    while (
        pa.types.is_list(values.type) or pa.types.is_fixed_size_list(values.type) or pa.types.is_large_list(values.type)
    ):
        lengths = compute.unique(compute.list_value_length(values)).to_pylist()  # pyright: ignore[reportAttributeAccessIssue]
        if len(lengths) != 1 or not lengths[0]:
            raise GCBError(f"{name} has rows of different lengths ({lengths}); accepted: one length")
        shape, values = (*shape, lengths[0]), values.flatten()
    if values.null_count or not (
        pa.types.is_floating(values.type) or pa.types.is_integer(values.type) or pa.types.is_boolean(values.type)
    ):
        raise GCBError(
            f"{name} is {values.type} with {values.null_count} missing values; accepted: numbers in every row"
        )
    return values.to_numpy(zero_copy_only=False).reshape(shape)


@dataclass(frozen=True)
class Span:
    """Where in the files of one feature an episode is."""

    path: Path
    start: float = 0.0
    """Seconds from the beginning of a video."""


@dataclass(frozen=True)
class EpisodeEntry:
    """One episode: its length in frames, and its files."""

    length: int
    data: Path
    videos: Mapping[str, Span] = field(default_factory=dict)


@dataclass(frozen=True)
class Meta:
    """What the metadata say."""

    root: Path
    fps: float
    features: Mapping[str, Mapping[str, Any]]
    episodes: list[EpisodeEntry]
    tasks: Mapping[int, str]
    stats: Mapping[str, Any]

    def is_video(self, name: str) -> bool:
        return self.features[name]["dtype"] == "video"

    def images(self) -> list[str]:
        """Return the names of all features that show images."""
        return [name for name, feature in self.features.items() if feature["dtype"] in IMAGES]

    def vectors(self) -> list[str]:
        """Return the names of all observed vectors."""
        floats = [name for name, feature in self.features.items() if str(feature["dtype"]).startswith("float")]
        return [name for name in floats if name.startswith("observation")]


def read_meta(root: Path) -> Meta:
    """Read and check the metadata of a dataset in format v3.0."""
    check_installed()
    path = root / INFO
    info = read_json(path)
    if not isinstance(info, dict) or "codebase_version" not in info:
        raise GCBError(f"{path} does not describe a LeRobotDataset: it has no codebase_version")
    if info["codebase_version"] != FORMAT:
        raise GCBError(
            f"{path}: codebase_version is {info['codebase_version']!r}; accepted: {FORMAT}. LeRobot converts older "
            "datasets: python -m lerobot.datasets.v30.convert_dataset_v21_to_v30"
        )
    for key, accepted in (("data_path", (DATA_PATH,)), ("video_path", (VIDEO_PATH, None))):
        if info.get(key) not in accepted:
            raise GCBError(f"{path}: {key} is {info.get(key)!r}; accepted: {accepted[0]}")
    features = _features(path, info.get("features"))
    fps = info.get("fps")
    if not isinstance(fps, int | float) or not 0 < fps < math.inf:
        raise GCBError(f"{path}: fps is {fps!r}; accepted: a number above 0")
    videos = [name for name, feature in features.items() if feature["dtype"] == "video"]
    episodes = _episodes(root, info, videos)
    return Meta(root, float(fps), features, episodes, _tasks(root), _stats(root))


def _features(path: Path, features: Any) -> dict[str, Any]:
    if not isinstance(features, dict) or "action" not in features:
        raise GCBError(f"{path}: features has no action; a LeRobotDataset has action and observation.…")
    for name, feature in features.items():
        if not isinstance(feature, dict) or not isinstance(feature.get("dtype"), str):
            raise GCBError(f"{path}: the feature {name} has no dtype")
        if feature["dtype"] == "video" and (name in ("", ".", "..") or "/" in name or "\\" in name):
            raise GCBError(
                f"{path}: the feature {name!r} would lead out of the directory; accepted: a name without slashes"
            )
    return features


def _episodes(root: Path, info: Mapping[str, Any], videos: Sequence[str]) -> list[EpisodeEntry]:
    """Return all episodes, in order, with their files, all of which exist."""
    files = sorted((root / EPISODES).glob("*/*.parquet"))
    if not files:
        raise GCBError(f"{root / EPISODES} has no Parquet files, which say where the episodes are")
    columns = ["episode_index", "length", "data/chunk_index", "data/file_index"]
    columns += [f"videos/{name}/{key}" for name in videos for key in ("chunk_index", "file_index", "from_timestamp")]
    tables = [read_table(inside(root, file.relative_to(root)), columns) for file in files]
    table = {name: np.concatenate([as_array(part[name], name) for part in tables]) for name in columns}
    number, lengths = len(table["length"]), table["length"]
    if table["episode_index"].tolist() != list(range(number)):
        raise GCBError(f"{root / EPISODES}: episode_index is not 0, 1, 2, …")
    for key, found in (("total_episodes", number), ("total_frames", int(lengths.sum()))):
        if info.get(key) != found:
            raise GCBError(f"{root / INFO}: {key} is {info.get(key)!r}, but {EPISODES} lists {found}")
    if number and lengths.min() < 2:
        short = int(lengths.argmin())
        raise GCBError(f"{root}: episode {short} has {lengths[short]} frames; it needs at least two")
    rows = [{name: column[index] for name, column in table.items()} for index in range(number)]
    return [_entry(root, row, videos, index) for index, row in enumerate(rows)]


def _entry(root: Path, row: Mapping[str, Any], videos: Sequence[str], number: int) -> EpisodeEntry:
    def file(template: str, prefix: str, **names: str) -> Path:
        chunk, index = (int(row[f"{prefix}/{key}"]) for key in ("chunk_index", "file_index"))
        return inside(root, Path(template.format(chunk_index=chunk, file_index=index, **names)), f"episode {number}")

    spans = {
        name: Span(file(VIDEO_PATH, f"videos/{name}", video_key=name), float(row[f"videos/{name}/from_timestamp"]))
        for name in videos
    }
    return EpisodeEntry(int(row["length"]), file(DATA_PATH, "data"), spans)


def inside(root: Path, relative: Path, needed_by: str = "") -> Path:
    """Return the path of an existing file of the dataset, which must not lead out of its directory."""
    path = root / relative
    if not path.is_file():
        raise GCBError(f"{path} is missing" + (f", but {EPISODES} says that {needed_by} is in it" if needed_by else ""))
    if not path.resolve().is_relative_to(root.resolve()):
        raise GCBError(f"{path} is a link that leads out of the directory: refused. `cp -rL` copies without links")
    return path


def _tasks(root: Path) -> dict[int, str]:
    if not (root / TASKS).exists():
        return {}
    table = read_table(inside(root, Path(TASKS)))
    texts = [name for name in table.column_names if name != "task_index"]
    if "task_index" not in table.column_names or len(texts) != 1:
        raise GCBError(
            f"{root / TASKS} has the columns {', '.join(table.column_names)}; accepted: task_index and the task"
        )
    indices = as_array(table["task_index"], "task_index").tolist()
    return {int(index): str(text) for index, text in zip(indices, table[texts[0]].to_pylist(), strict=True)}


def _stats(root: Path) -> dict[str, Any]:
    if not (root / STATS).exists():
        return {}
    stats = read_json(inside(root, Path(STATS)))
    if not isinstance(stats, dict):
        raise GCBError(f"{root / STATS} is not a JSON object")
    return stats
