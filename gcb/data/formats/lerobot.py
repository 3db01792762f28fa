"""Read LeRobotDatasets in format v3.0; `lerobot_writer.py` writes them.

                     |<------- episode 0 ------->|
    observation        s0    s1    s2    s3          one row per frame; a feature with images, or a vector
    action             a0    a1    a2    a3          a3 leads to no frame of the episode and is dropped
    next.reward        r0    r1    r2    r3          the same
    next.success        0     0     0     1          the episode is successful if any is 1

Goals have no place of their own: they are another feature, of which the last row counts, or the last frame.
"""

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, UnidentifiedImageError

from gcb.data.episode import EpisodeArrays
from gcb.data.formats.lerobot_meta import EPISODES, INFO, STATS, EpisodeEntry, Meta, as_array, read_meta, read_table
from gcb.data.formats.source import EpisodeSource, check_extras, sha256_of_files
from gcb.errors import GCBError
from gcb.utils.text_files import read_json

ABOUT = "meta/gcb.json"
"""What a dataset of gcb has besides: its configuration and names."""
IMAGE, VECTOR = "observation.images.main", "observation.state"
GOAL_IMAGE, GOAL_VECTOR = "observation.images.goal", "observation.goal"
STATES, GOAL_STATE, SCENE, TERMINATED = "observation.environment_state", "gcb.goal_state", "gcb.scene", "gcb.terminated"
REWARD, SUCCESS, ACTION, LAST = "next.reward", "next.success", "action", "last"
LARGEST_IMAGE = 128
"""Larger images must be resized: no network of gcb is made for them, and the dataset would not fit on most disks."""
MODES = {"L": 1, "RGB": 3, "RGBA": 4}


def lerobot_source(
    path: Path, observation: str | None = None, goal: str | None = None, image_size: int | None = None
) -> EpisodeSource:
    """Open a LeRobotDataset.

    `observation` names the feature that the agent sees, `goal` the one that shows the goal; "last" is the last frame.
    With `image_size` images are resized to squares.
    """
    meta = read_meta(path)
    about = _about(path)
    observation, goal = _select(meta, observation, goal)
    bound = _action_bound(meta)
    reader = _Reader(meta, observation, goal, image_size, about)
    videos = [name for name in reader.shown if meta.is_video(name)]
    files = {path / INFO, *(entry.data for entry in meta.episodes)}
    files |= {entry.videos[name].path for entry in meta.episodes for name in videos}
    source: dict[str, Any] = {
        "format": "lerobot",
        "name": path.resolve().name,
        "sha256": sha256_of_files(path, sorted(files)),
    }
    source |= {"fps": meta.fps, "observation": observation, "goal": goal, "image_size": image_size}
    source = {key: value for key, value in source.items() if value is not None}

    def episodes() -> Iterator[tuple[str, EpisodeArrays]]:
        for number, entry in enumerate(meta.episodes):
            name = f"episode {number} of {path}"
            yield name, reader.read(number, entry, name)

    config = {**about.get("config", {}), "source": source}
    bound = about.get("action_bound", bound)
    return EpisodeSource(config, len(meta.episodes), episodes, reader.unused(), bound, check_first=not videos)


def _about(path: Path) -> dict[str, Any]:
    if not (path / ABOUT).exists():
        return {}
    about = read_json(path / ABOUT)
    check_extras(about, str(path / ABOUT))
    return about


def _select(meta: Meta, observation: str | None, goal: str | None) -> tuple[str, str | None]:
    """Return the features that are the observation and the goal; a goal can also be "last", or None."""
    names = [*meta.images(), *meta.vectors()]
    for option, value in (("observation", observation), ("goal", goal)):
        if value is not None and value not in names and (option, value) != ("goal", LAST):
            also = f", {LAST}" if option == "goal" else ""
            raise GCBError(f"{option} is {value!r}; {meta.root} has {', '.join(names)}{also}")
    if goal is None:
        goal = next((name for name in (GOAL_IMAGE, GOAL_VECTOR) if name in names), None)
    if observation is None:
        vectors = [name for name in (VECTOR, STATES) if name in names][:1]
        choices = [name for name in meta.images() if name != goal] or vectors
        if len(choices) != 1:
            raise GCBError(
                f"{meta.root} has {', '.join(choices or names) or 'no observation'}; set observation to the one that "
                f"the agent sees, and goal to the one that shows the goal, or to {LAST}"
            )
        observation = choices[0]
    return observation, goal


def _action_bound(meta: Meta) -> float:
    """Return the largest action in the data, or 1 if all are smaller; check that the statistics agree."""
    actions = _actions(meta)
    stats = meta.stats.get(ACTION)
    ends = {"min": actions.min(axis=0), "max": actions.max(axis=0)} if stats is not None else {}
    for key, found in ends.items():
        told = stats.get(key) if isinstance(stats, dict) else None
        try:
            values = np.asarray(told, np.float64).ravel()
        except (TypeError, ValueError):
            values = np.array([])
        if values.shape != found.shape or not np.allclose(values, found, rtol=1e-3, atol=1e-4, equal_nan=True):
            raise GCBError(
                f"{meta.root / STATS} says that the {key} of {ACTION} is {str(told)[:80]}, but in the data it is "
                f"{found.round(4).tolist()}: the statistics are of other data. Without the file the import works"
            )
    largest = float(np.nanmax(np.abs(actions), initial=0.0))
    return largest if 1 < largest < np.inf else 1.0


def _actions(meta: Meta) -> np.ndarray:
    """Return all actions; check that the files have as many rows as their episodes."""
    frames: dict[Path, int] = {}
    for entry in meta.episodes:
        frames[entry.data] = frames.get(entry.data, 0) + entry.length
    parts = []
    for file, count in frames.items():
        part = as_array(read_table(file, [ACTION])[ACTION], f"{file}: {ACTION}")
        if len(part) != count:
            raise GCBError(f"{file} has {len(part)} frames, but {EPISODES} lists {count} in it")
        parts.append(part.reshape(count, -1).astype(np.float64))
    if len({part.shape[1] for part in parts}) != 1:
        raise GCBError(f"{meta.root} has no episodes, or its files have actions of different sizes")
    return np.concatenate(parts)


class _Reader:
    """Reads episodes; the file of the last one stays in memory."""

    def __init__(
        self, meta: Meta, observation: str, goal: str | None, size: int | None, about: Mapping[str, Any]
    ) -> None:
        from gcb.data.formats.lerobot_video import VideoReader  # here because PyAV takes long to load

        self._meta, self._observation, self._goal, self._size, self._about = meta, observation, goal, size, about
        optional = (REWARD, SUCCESS, STATES, GOAL_STATE, SCENE, TERMINATED)
        self._numbers = [name for name in (ACTION, *optional) if name in meta.features and name != observation]
        if STATES in self._numbers and goal not in (None, LAST) and GOAL_STATE not in self._numbers:
            self._numbers.remove(STATES)  # the goal's state is unknown
        self.shown = [observation] if goal in (None, LAST) else [observation, goal]
        stored = [name for name in self.shown if not meta.is_video(name)]
        self._columns = list(dict.fromkeys([*stored, *self._numbers, "episode_index", "frame_index", "task_index"]))
        self._videos = {name: VideoReader(meta.fps) for name in self.shown}
        self._path: Path | None = None
        self._table: Any = None
        self._index = np.array([], np.int64)
        self._sizes: dict[str, tuple[int, int]] = {}

    def unused(self) -> tuple[str, ...]:
        """Return the features that are not imported, apart from LeRobot's own columns."""
        known = {*self._columns, *self.shown, "timestamp", "index", "next.done"}
        return tuple(sorted(self._meta.features.keys() - known))

    def read(self, number: int, entry: EpisodeEntry, name: str) -> EpisodeArrays:
        """Return one episode as `make_episode` takes it."""
        rows = self._rows(number, entry)
        numbers = {key: as_array(rows[key], f"{name}: {key}") for key in self._numbers}
        action = numbers[ACTION].reshape(entry.length, -1)
        action = action if action.dtype.kind == "f" else action.astype(np.float32)
        arrays: dict[str, Any] = {"observations": self._frames(self._observation, entry, rows, name)}
        arrays["actions"] = action[:-1]
        if self._goal is not None:
            last = rows.slice(entry.length - 1)
            shown = arrays["observations"] if self._goal == LAST else self._frames(self._goal, entry, last, name)
            arrays["goal"] = shown[-1]
        if REWARD in numbers:
            arrays["rewards"] = numbers[REWARD].reshape(entry.length)[:-1]
        if STATES in numbers:
            arrays["states"] = states = numbers[STATES].reshape(entry.length, -1)
            if self._goal is not None:
                arrays["goal_state"] = (
                    states[-1] if self._goal == LAST else numbers[GOAL_STATE].reshape(len(states), -1)[-1]
                )
        return arrays | self._outcome(numbers, entry) | self._labels(rows, numbers)

    def _outcome(self, numbers: Mapping[str, np.ndarray], entry: EpisodeEntry) -> dict[str, Any]:
        """Return whether the episode is successful, and where its goal is reached."""
        outcome: dict[str, Any] = {}
        if SUCCESS in numbers:
            outcome["success"] = bool(numbers[SUCCESS].any())
            outcome["terminated"] = (np.arange(entry.length - 1) == entry.length - 2) & outcome["success"]
        if TERMINATED in numbers:
            outcome["terminated"] = numbers[TERMINATED].reshape(entry.length)[:-1]
        return outcome

    def _labels(self, rows: Any, numbers: Mapping[str, np.ndarray]) -> dict[str, Any]:
        labels: dict[str, Any] = {}
        if self._meta.tasks and self._about.get("has_tasks", True):
            index = rows["task_index"][0].as_py()
            labels["task"] = self._meta.tasks.get(index, f"task {index}")
        if SCENE in numbers:
            values = numbers[SCENE].reshape(len(numbers[SCENE]), -1)[0].tolist()
            names = self._about.get("scene_names", [str(number) for number in range(len(values))])
            labels["scene"] = dict(zip(names, values, strict=False))
        return labels

    def _rows(self, number: int, entry: EpisodeEntry) -> Any:
        """Return the rows of an episode, after checking that they are complete and in order."""
        if entry.data != self._path:
            self._path, self._table = entry.data, read_table(entry.data, self._columns)
            self._index = as_array(self._table["episode_index"], "episode_index")
        found = np.flatnonzero(self._index == number)
        rows = self._table.slice(found[0] if len(found) else 0, entry.length)
        frames = as_array(rows["frame_index"], "frame_index").tolist()
        if (
            len(found) != entry.length
            or found[-1] - found[0] != entry.length - 1
            or frames != list(range(entry.length))
        ):
            raise GCBError(
                f"{entry.data} has {len(found)} frames of episode {number}; accepted: {entry.length}, in order"
            )
        return rows

    def _frames(self, feature: str, entry: EpisodeEntry, rows: Any, name: str) -> np.ndarray:
        """Return the observations that a feature shows in these rows."""
        if feature in entry.videos:
            images = self._videos[feature].read(entry.videos[feature], entry.length, self._size)
        elif self._meta.features[feature]["dtype"] == "image":
            images = _decode(rows[feature], f"{name}: {feature}", self._size)
        else:
            return as_array(rows[feature], f"{name}: {feature}").reshape(len(rows), -1)
        frames = []
        for number, (size, image) in enumerate(images):
            first = self._sizes.setdefault(feature, size)
            if size != first:
                described = f"{_text(size)} pixels, the first one {_text(first)}"
                raise GCBError(f"{name}: frame {number} of {feature} has {described}; accepted: one size")
            if max(image.shape[:2]) > LARGEST_IMAGE:
                raise GCBError(
                    f"{name}: {feature} has {_text(size)} pixels; accepted: up to {LARGEST_IMAGE} a side. Set "
                    "image_size to resize them, for example to 64"
                )
            frames.append(image)
        return np.stack(frames)


def _decode(column: Any, name: str, size: int | None) -> Iterator[tuple[tuple[int, int], np.ndarray]]:
    """Yield the size and the pixels of encoded images; paths to other files are not followed."""
    for number, value in enumerate(column.to_pylist()):
        content = value.get("bytes") if isinstance(value, dict) else None
        if not isinstance(content, bytes):
            raise GCBError(f"{name}: frame {number} has no bytes; accepted: PNG or JPEG files in the column")
        try:
            with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as image:
                if image.mode not in MODES:
                    raise GCBError(f"{name}: frame {number} has mode {image.mode}; accepted: {', '.join(MODES)}")
                small = image if size is None else image.resize((size, size), Image.Resampling.BOX)
                pixels = np.asarray(small).reshape(small.height, small.width, MODES[image.mode])
                yield (image.height, image.width), pixels
        except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise GCBError(f"{name}: frame {number} is not a readable image: {error}") from error


def _text(size: tuple[int, int]) -> str:
    return f"{size[0]}×{size[1]}"
