"""Read Minari datasets, directories of metadata and HDF5 or Arrow files; `minari_writer.py` writes them.

A dataset whose metadata lack the observation or action space is refused: Minari would build the environment, and so run
the code that its metadata name.
"""

import json
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from gcb.data.episode import EpisodeArrays
from gcb.data.formats.source import EpisodeSource, check_extras, sha256_of_files
from gcb.errors import GCBError
from gcb.utils.text_files import read_json

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
    source |= {"observation": keys[0]} if keys else {}
    config = {**_environment(data_dir, metadata), **extras.get("config", {}), "source": source | _origin(metadata)}

    def episodes() -> Iterator[tuple[str, EpisodeArrays]]:
        stored = iter(storage.get_episodes(range(count)))
        for number in range(count):
            name = f"episode {number} of {path}"
            try:
                arrays = _episode_arrays(next(stored), keys, extras)
            except Exception as error:  # a damaged or crafted file can raise anything
                raise GCBError(f"{name} could not be read: {error or type(error).__name__}") from error
            yield name, arrays

    unused = tuple(sorted(entries.keys() - set(keys)))
    bound = extras.get("action_bound") or _action_bound(storage.action_space)
    return EpisodeSource(config, count, episodes, unused, bound)


def _environment(data_dir: Path, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the environment that the metadata name, for `gcb eval`, without importing anything of it."""
    if "env_spec" not in metadata:
        return {}
    try:
        spec = json.loads(metadata["env_spec"])
        env, options, package = str(spec["id"]), dict(spec["kwargs"]), str(spec["entry_point"]).partition(".")[0]
    except (LookupError, TypeError, ValueError) as error:
        raise GCBError(f"{data_dir / METADATA}: env_spec is not one of Gymnasium's ({error!r})") from error
    # Gymnasium imports the package in front of the colon, which registers the environment.
    known = package in ("gymnasium", "gcb") or ":" in env
    return {"env": env if known else f"{package}:{env}", "options": options, "adapter": "goal"}


def _origin(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return author and algorithm, as far as they are given."""
    author, algorithm = metadata.get("author"), metadata.get("algorithm_name")
    origin: dict[str, Any] = {"author": sorted(map(str, author))} if isinstance(author, list) and author else {}
    return {**origin, "algorithm": str(algorithm)} if algorithm else origin


def _action_bound(space: Any) -> float:
    """Return the bound of the actions if it is the same in every direction, else 1."""
    low, high = getattr(space, "low", np.array(-1)), getattr(space, "high", np.array(1))
    bound = float(high.max())
    return bound if np.isfinite(bound) and bound > 0 and (high == bound).all() and (low == -bound).all() else 1.0


def find_data_dir(path: Path) -> Path:
    """Return the directory that holds a Minari dataset's metadata."""
    for directory in (path, path / "data"):
        if (directory / METADATA).is_file():
            return directory
    raise GCBError(f"{path} is not a Minari dataset: neither it nor its subdirectory data has a {METADATA}")


def _open(data_dir: Path) -> tuple[Any, dict[str, Any]]:
    """Return the storage and its metadata if they can be read without running any code of the dataset."""
    check_installed()
    path = data_dir / METADATA
    metadata = read_json(path)
    if not isinstance(metadata, dict) or not isinstance(metadata.get("total_episodes"), int):
        raise GCBError(f"{path} does not describe a Minari dataset: it has no total_episodes")
    if not all(isinstance(metadata.get(key), str) for key in ("observation_space", "action_space")):
        raise GCBError(
            f"{path} has no observation_space or no action_space; to find them out, Minari would run the environment "
            "that it names. Save the dataset with both spaces"
        )
    check_extras(metadata.get(EXTRAS, {}), f"{path}: {EXTRAS}")
    if metadata.get("data_format") == "hdf5":
        _check_links(data_dir)
    from minari.dataset.minari_storage import MinariStorage

    try:
        return MinariStorage.read(data_dir), metadata
    except Exception as error:  # a damaged or crafted file can raise anything
        raise GCBError(f"{data_dir} could not be opened as a Minari dataset: {error}") from error


def check_installed() -> None:
    """Raise unless Minari can be imported."""
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
        except GCBError:
            raise
        except Exception as error:  # h5py raises OSError, RuntimeError, KeyError and others
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
