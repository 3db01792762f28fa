"""Minari datasets: a directory of metadata and HDF5 (or Arrow) files, read and written with the package `minari`.

Images are written without Minari's default JPEG encoding, which changes pixels. A dataset whose metadata lack the
observation or action space is refused: Minari would build the environment, and so run the code that its metadata name.
"""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from gcb.data.episode import EpisodeArrays
from gcb.data.formats.source import EpisodeSource, sha256_of_files
from gcb.data.store import Dataset
from gcb.errors import GCBError
from gcb.utils.files import read_json, staged_dir
from gcb.utils.progress import Progress

METADATA = "metadata.json"
OBSERVATION, GOAL = "observation", "desired_goal"
"""Keys in the observations of goal-conditioned environments."""
EXTRAS = "gcb"
"""Metadata entry, and prefix of the infos, for what Minari has no field for."""


def minari_source(path: Path, observation: str | None = None) -> EpisodeSource:
    """Open a Minari dataset, given its directory or the directory `data` in it.

    If observations are a Dict, `observation` names the entry that the agent sees. The goal is desired_goal if it has
    the same shape.
    """
    data_dir = find_data_dir(path)
    storage, metadata = _open(data_dir)
    spaces = getattr(storage.observation_space, "spaces", None)
    entries = dict(spaces) if isinstance(spaces, Mapping) else {}
    keys = _select_entries(path, entries, observation)
    count, extras = metadata["total_episodes"], metadata.get(EXTRAS, {})
    digest = sha256_of_files(data_dir, sorted(file for file in data_dir.rglob("*") if file.is_file()))
    source = {"format": "minari", "name": str(metadata.get("dataset_id", path.name)), "sha256": digest}
    config = {**extras.get("config", {}), "source": {**source, **({"observation": keys[0]} if keys else {})}}

    def episodes() -> Iterator[tuple[str, EpisodeArrays]]:
        stored = iter(storage.get_episodes(range(count)))
        for number in range(count):
            name = f"episode {number} of {path}"
            try:
                arrays = _episode_arrays(next(stored), keys, extras)
            except Exception as error:  # a damaged or crafted file can raise anything
                raise GCBError(f"{name} could not be read: {error or type(error).__name__}") from error
            yield name, arrays

    return EpisodeSource(config, count, episodes, tuple(sorted(entries.keys() - set(keys))))


def find_data_dir(path: Path) -> Path:
    """Return the directory that holds a Minari dataset's metadata."""
    for directory in (path, path / "data"):
        if (directory / METADATA).is_file():
            return directory
    raise GCBError(f"{path} is not a Minari dataset: neither it nor its subdirectory data has a {METADATA}")


def _open(data_dir: Path) -> tuple[Any, dict[str, Any]]:
    """Return the storage and its metadata if they can be read without running any code of the dataset."""
    _check_installed()
    path = data_dir / METADATA
    metadata = read_json(path)
    if not isinstance(metadata, dict) or not isinstance(metadata.get("total_episodes"), int):
        raise GCBError(f"{path} does not describe a Minari dataset: it has no total_episodes")
    if not all(isinstance(metadata.get(key), str) for key in ("observation_space", "action_space")):
        raise GCBError(
            f"{path} has no observation_space or no action_space; to find them out, Minari would run the environment "
            "that it names. Save the dataset with both spaces"
        )
    if not isinstance(metadata.get(EXTRAS, {}), dict):
        raise GCBError(f"{path}: {EXTRAS} is not a JSON object")
    if metadata.get("data_format") == "hdf5":
        _check_links(data_dir)
    from minari.dataset.minari_storage import MinariStorage

    try:
        return MinariStorage.read(data_dir), metadata
    except Exception as error:  # a damaged or crafted file can raise anything
        raise GCBError(f"{data_dir} could not be opened as a Minari dataset: {error}") from error


def _check_installed() -> None:
    if find_spec("minari") is None:
        raise GCBError("Minari is not installed: pip install 'gcb[minari]'.")


def _check_links(data_dir: Path) -> None:
    """Refuse HDF5 files that refer to other files: they could read anything on this machine."""
    import h5py

    def check(group: Any) -> None:
        for name in group:
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise GCBError(f"{group.file.filename}: {group.name}/{name} is a link to another file: refused")
            item = group[name]
            if isinstance(item, h5py.Group):
                check(item)
            elif item.external or item.is_virtual:
                raise GCBError(f"{group.file.filename}: {item.name} stores its data in another file: refused")

    for path in data_dir.glob("*.hdf5"):
        try:
            with h5py.File(path, "r") as file:
                check(file)
        except OSError as error:
            raise GCBError(f"{path} is damaged or not an HDF5 file: {error}") from error


def _select_entries(path: Path, entries: Mapping[str, Any], observation: str | None) -> tuple[str, ...]:
    """Return the names of the observation and (if there is one) the goal among the entries of a Dict space."""
    if not entries:
        if observation is not None:
            raise GCBError(f"observation is {observation!r}, but the observations of {path} are not a Dict")
        return ()
    chosen = observation or OBSERVATION
    if chosen not in entries:
        raise GCBError(f"observation is {chosen!r}; {path} has {', '.join(entries)}")
    if GOAL not in entries:
        return (chosen,)
    shape, goal_shape = entries[chosen].shape, entries[GOAL].shape
    if shape != goal_shape:
        matching = [name for name, space in entries.items() if space.shape == goal_shape and name != GOAL]
        raise GCBError(
            f"{path}: {chosen} has shape {shape} and {GOAL} {goal_shape}; they must have the same shape. "
            f"Set observation to an entry with the goal's shape: {' or '.join(matching) or 'there is none'}"
        )
    return (chosen, GOAL)


def _episode_arrays(episode: Mapping[str, Any], keys: tuple[str, ...], extras: Mapping[str, Any]) -> EpisodeArrays:
    """Return one episode as `make_episode` takes it."""
    observations = episode["observations"]
    arrays: dict[str, Any] = {"observations": observations[keys[0]] if keys else observations}
    if len(keys) > 1:
        arrays["goal"] = observations[keys[1]][0]
    arrays |= {"actions": episode["actions"], "terminated": episode["terminations"]}
    infos = episode.get("infos") or {}
    if extras.get("rewards", True):
        arrays["rewards"] = episode["rewards"]
    for key in ("states", "goal_state", "success"):
        if f"{EXTRAS}_{key}" in infos:
            arrays[key] = infos[f"{EXTRAS}_{key}"] if key == "states" else infos[f"{EXTRAS}_{key}"][0]
    if f"{EXTRAS}_task" in infos:
        arrays["task"] = extras["task_names"][int(infos[f"{EXTRAS}_task"][0])]
    if f"{EXTRAS}_scene" in infos:
        arrays["scene"] = dict(zip(extras["scene_names"], infos[f"{EXTRAS}_scene"][0].tolist(), strict=True))
    return arrays


def write_minari(dataset: Dataset, out: Path, *, quiet: bool = False) -> None:
    """Write a Minari dataset to a new directory, completely or not at all.

    The directory's name is the dataset's id: a name followed by -v and a number.
    """
    _check_installed()
    from minari.dataset.minari_dataset import parse_dataset_id

    try:
        parse_dataset_id(out.name)
    except (TypeError, ValueError) as error:
        raise GCBError(f"{out.name} is not a Minari dataset id; accepted: for example {out.name}-v0") from error
    if out.exists():
        raise GCBError(f"{out} already exists; name a new directory")
    goals = np.asarray(dataset.episode_goal_frame) >= 0
    if goals.any() and not goals.all():
        raise GCBError(f"{int(goals.sum())} of {len(goals)} episodes have a goal; Minari needs it in all or in none")
    with staged_dir(out) as staging:
        _write(dataset, staging / "data", out.name, bool(goals.all()), quiet)


def _write(dataset: Dataset, data_dir: Path, dataset_id: str, goals: bool, quiet: bool) -> None:
    import minari
    from gymnasium.spaces import Box, Dict
    from minari.dataset.minari_storage import MinariStorage

    low, high = (0, 255) if dataset.frames.dtype == np.uint8 else (-np.inf, np.inf)
    space = Box(low, high, dataset.frames.shape[1:], dataset.frames.dtype.type)
    observations = Dict({OBSERVATION: space, GOAL: space}) if goals else space
    bound = max(1.0, float(np.abs(dataset.actions).max()))
    actions = Box(-bound, bound, dataset.actions.shape[1:], dataset.actions.dtype.type)
    storage = MinariStorage.new(data_dir, observations, actions, data_format="hdf5", jpeg_encoding=False)
    with Progress("exporting", dataset.episodes, "episodes", quiet=quiet) as bar:
        for number in range(dataset.episodes):
            storage.update_episodes([_buffer(dataset, number)])
            bar.advance()
    names = {"task_names": list(dataset.task_names), "scene_names": list(dataset.scene_names)}
    extras = {"config": dict(dataset.config), "rewards": dataset.rewards is not None, **names}
    storage.update_metadata({"dataset_id": dataset_id, "minari_version": minari.__version__, EXTRAS: extras})


def _buffer(dataset: Dataset, number: int) -> Any:
    """Return one episode as a Minari buffer. What Minari has no field for goes into the infos of every step."""
    from minari.data_collector import EpisodeBuffer

    episode = dataset.episode(number)
    rows, truncations = len(episode.frames), np.zeros(episode.length, bool)
    truncations[-1] = not episode.terminated[-1]
    constants: dict[str, Any] = {"goal_state": episode.goal_state, "success": episode.success}
    if episode.task is not None:
        constants["task"] = dataset.task_names.index(episode.task)
    if episode.scene:
        constants["scene"] = np.array([*episode.scene.values()], np.float32)
    infos = {key: _repeat(value, rows) for key, value in constants.items() if value is not None}
    if episode.states is not None:
        infos["states"] = np.asarray(episode.states)
    frames = np.asarray(episode.frames)
    arrays: dict[str, Any] = {
        "observations": frames,
        "actions": np.asarray(episode.actions),
        "rewards": np.zeros(episode.length, np.float32) if episode.rewards is None else np.asarray(episode.rewards),
        "terminations": np.asarray(episode.terminated),
        "truncations": truncations,
        "infos": {f"{EXTRAS}_{key}": value for key, value in infos.items()},
    }
    if episode.goal_frame is not None:
        arrays["observations"] = {OBSERVATION: frames, GOAL: _repeat(episode.goal_frame, rows)}
    return EpisodeBuffer(id=number, **arrays)


def _repeat(value: Any, rows: int) -> np.ndarray:
    return np.repeat(np.asarray(value)[None], rows, axis=0)
