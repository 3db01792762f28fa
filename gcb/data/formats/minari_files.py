"""Minari's datasets: a folder of metadata and HDF5 (or Arrow), read and written with the package `minari`.

Images are written without Minari's default JPEG, which changes pixels. A dataset without a gymnasium space for
observations and actions is refused: Minari would build its environment, and so run whatever its metadata name.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from gcb.data.formats.episodes import Parts, Source, episode_of
from gcb.data.store import Dataset
from gcb.errors import GCBError
from gcb.utils.files import read_json, sha256, staged_dir
from gcb.utils.progress import Progress

METADATA = "metadata.json"
OBSERVATION, GOAL = "observation", "desired_goal"
"""Keys of goal-conditioned environments' observations."""
ABOUT = "gcb"


def minari_source(path: Path, observation: str | None = None) -> Source:
    """The episodes of a Minari dataset: its folder, or the folder `data` in it.

    Of observations that are a Dict, `observation` names the entry that the agent is to see; the goal is its
    desired_goal, if that looks like one.
    """
    folder = data_folder(path)
    storage, metadata = _open(folder)
    keys = _keys(path, storage.observation_space, observation)
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    hashes = {str(file.relative_to(folder)): sha256(file) for file in files}
    digest = hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()
    about = metadata.get(ABOUT, {})
    source = {"format": "minari", "name": str(metadata.get("dataset_id", path.name)), "sha256": digest}
    config = {**about.get("config", {}), "source": {**source, **({"observation": keys[0]} if keys else {})}}

    def parts() -> Iterator[tuple[str, Parts]]:
        episodes = iter(storage.get_episodes(range(metadata["total_episodes"])))
        for number in range(metadata["total_episodes"]):
            name = f"episode {number} of {path}"
            try:
                found = _parts(next(episodes), keys, about)
            except Exception as error:  # whatever a damaged or crafted file provokes
                raise GCBError(f"{name} could not be read: {error or type(error).__name__}") from error
            yield name, found

    return Source(config, metadata["total_episodes"], parts, tuple(sorted(set(_names(storage)) - set(keys))))


def data_folder(path: Path) -> Path:
    """The folder that holds a Minari dataset's metadata."""
    for folder in (path, path / "data"):
        if (folder / METADATA).is_file():
            return folder
    raise GCBError(f"{path} is not a Minari dataset: neither it nor its folder data has a {METADATA}")


def _open(folder: Path) -> tuple[Any, dict[str, Any]]:
    """The storage and its metadata, if they can be read without running anything."""
    _check_installed()
    metadata = read_json(folder / METADATA)
    if not isinstance(metadata, dict) or not isinstance(metadata.get("total_episodes"), int):
        raise GCBError(f"{folder / METADATA} does not describe a Minari dataset: it has no total_episodes")
    if not all(isinstance(metadata.get(f"{kind}_space"), str) for kind in ("observation", "action")):
        raise GCBError(
            f"{folder / METADATA} does not say its observation_space and action_space; to find them out, Minari would "
            "have to run the environment that it names. Save the dataset with both spaces"
        )
    if not isinstance(metadata.get(ABOUT, {}), dict):
        raise GCBError(f"{folder / METADATA}: {ABOUT} is not a JSON object")
    if metadata.get("data_format") == "hdf5":
        _check_links(folder)
    from minari.dataset.minari_storage import MinariStorage

    try:
        return MinariStorage.read(folder), metadata
    except Exception as error:  # whatever a damaged or crafted file provokes
        raise GCBError(f"{folder} could not be opened as a Minari dataset: {error}") from error


def _check_installed() -> None:
    if find_spec("minari") is None:
        raise GCBError("Minari is not installed: pip install 'gcb[minari]'.")


def _check_links(folder: Path) -> None:
    """An HDF5 file may point to other files; one from elsewhere is not to."""
    import h5py

    def look(group: Any) -> None:
        for name in group:
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise GCBError(f"{group.file.filename}: {group.name}/{name} is a link to elsewhere: refused")
            one = group[name]
            if isinstance(one, h5py.Group):
                look(one)
            elif one.external or one.is_virtual:
                raise GCBError(f"{group.file.filename}: {one.name} keeps its data in another file: refused")

    for path in folder.glob("*.hdf5"):
        try:
            with h5py.File(path, "r") as file:
                look(file)
        except OSError as error:
            raise GCBError(f"{path} is damaged or not an HDF5 file: {error}") from error


def _names(storage: Any) -> tuple[str, ...]:
    """The entries of observations that are a Dict."""
    spaces = getattr(storage.observation_space, "spaces", {})
    return tuple(spaces) if isinstance(spaces, Mapping) else ()


def _keys(path: Path, space: Any, wanted: str | None) -> tuple[str, ...]:
    """The entries of a Dict observation that are the agent's observation and (if there is one) its goal."""
    if not isinstance(getattr(space, "spaces", None), Mapping):
        if wanted is not None:
            raise GCBError(f"observation is {wanted!r}, but the observations of {path} are no Dict: leave it out")
        return ()
    chosen = wanted or OBSERVATION
    if chosen not in space.spaces:
        raise GCBError(f"observation is {chosen!r}; {path} has {', '.join(space.spaces)}")
    if GOAL not in space.spaces:
        return (chosen,)
    seen, goal = space[chosen].shape, space[GOAL].shape
    if seen != goal:
        alike = [name for name, one in space.spaces.items() if one.shape == goal and name != GOAL]
        raise GCBError(
            f"{path}: {chosen} has shape {seen} and {GOAL} {goal}; a goal must look like an observation. "
            f"Choose what the agent sees: observation {' or '.join(alike) or '(none looks like the goal)'}"
        )
    return (chosen, GOAL)


def _parts(episode: Mapping[str, Any], keys: tuple[str, ...], about: Mapping[str, Any]) -> Parts:
    """One episode as `make_episode` takes it."""
    observations = episode["observations"]
    parts: dict[str, Any] = {"observations": observations[keys[0]] if keys else observations}
    if len(keys) > 1:
        parts["goal"] = observations[keys[1]][0]
    parts |= {"actions": episode["actions"], "terminated": episode["terminations"]}
    infos = episode.get("infos") or {}
    if about.get("rewards", True):
        parts["rewards"] = episode["rewards"]
    for key in ("states", "goal_state", "success"):
        if f"{ABOUT}_{key}" in infos:
            parts[key] = infos[f"{ABOUT}_{key}"] if key == "states" else infos[f"{ABOUT}_{key}"][0]
    if f"{ABOUT}_task" in infos:
        parts["task"] = about["task_names"][int(infos[f"{ABOUT}_task"][0])]
    if f"{ABOUT}_scene" in infos:
        parts["scene"] = dict(zip(about["scene_names"], infos[f"{ABOUT}_scene"][0].tolist(), strict=True))
    return parts


def write_minari(dataset: Dataset, out: Path, *, quiet: bool = False) -> None:
    """Write a dataset as a Minari dataset to a new folder, whole or not at all.

    What the folder is called is its id: a name, then -v and a number.
    """
    _check_installed()
    from minari.dataset.minari_dataset import parse_dataset_id

    try:
        parse_dataset_id(out.name)
    except (TypeError, ValueError) as error:
        raise GCBError(f"{out.name} is not the id of a Minari dataset; accepted: such as {out.name}-v0") from error
    if out.exists():
        raise GCBError(f"{out} is there already; name a new folder")
    goals = np.asarray(dataset.episode_goal_frame) >= 0
    if goals.any() and not goals.all():
        raise GCBError(f"{int(goals.sum())} of {len(goals)} episodes have a goal; Minari needs one in all or in none")
    with staged_dir(out) as staging:
        _write(dataset, staging / "data", out.name, bool(goals.all()), quiet)


def _write(dataset: Dataset, folder: Path, name: str, goals: bool, quiet: bool) -> None:
    import minari
    from gymnasium.spaces import Box, Dict
    from minari.dataset.minari_storage import MinariStorage

    low, high = (0, 255) if dataset.frames.dtype == np.uint8 else (-np.inf, np.inf)
    space = Box(low, high, dataset.frames.shape[1:], dataset.frames.dtype.type)
    observations = Dict({OBSERVATION: space, GOAL: space}) if goals else space
    bound = max(1.0, float(np.abs(dataset.actions).max()))
    actions = Box(-bound, bound, dataset.actions.shape[1:], dataset.actions.dtype.type)
    storage = MinariStorage.new(folder, observations, actions, data_format="hdf5", jpeg_encoding=False)
    with Progress("exporting", dataset.episodes, "episodes", quiet=quiet) as bar:
        for number in range(dataset.episodes):
            storage.update_episodes([_buffer(dataset, number)])
            bar.advance()
    names = {"task_names": list(dataset.task_names), "scene_names": list(dataset.scene_names)}
    about = {"config": dict(dataset.config), "rewards": dataset.rewards is not None, **names}
    storage.update_metadata({"dataset_id": name, "minari_version": minari.__version__, ABOUT: about})


def _buffer(dataset: Dataset, number: int) -> Any:
    """One episode as Minari takes it; what it has no place for goes into the infos, the same at every step."""
    from minari.data_collector import EpisodeBuffer

    one = episode_of(dataset, number)
    rows, late = len(one.frames), np.zeros(one.length, bool)
    late[-1] = not one.terminated[-1]
    whole: dict[str, Any] = {"goal_state": one.goal_state, "success": one.success}
    if one.task is not None:
        whole["task"] = dataset.task_names.index(one.task)
    if one.scene:
        whole["scene"] = np.array([*one.scene.values()], np.float32)
    infos = {key: _repeated(np.asarray(value), rows) for key, value in whole.items() if value is not None}
    if one.states is not None:
        infos["states"] = np.asarray(one.states)
    frames = np.asarray(one.frames)
    arrays: dict[str, Any] = {
        "observations": frames,
        "actions": np.asarray(one.actions),
        "rewards": np.zeros(one.length, np.float32) if one.rewards is None else np.asarray(one.rewards),
        "terminations": np.asarray(one.terminated),
        "truncations": late,
        "infos": {f"{ABOUT}_{key}": value for key, value in infos.items()},
    }
    if one.goal_frame is not None:
        arrays["observations"] = {OBSERVATION: frames, GOAL: _repeated(one.goal_frame, rows)}
    return EpisodeBuffer(id=number, **arrays)


def _repeated(value: np.ndarray, rows: int) -> np.ndarray:
    return np.repeat(np.asarray(value)[None], rows, axis=0)
