"""OGBench files: observations, actions and terminals in one .npz file, trajectory after trajectory.

                   |<- trajectory 0 ->|<- trajectory 1 …
    observations     s0   s1   s2   s3   s0
    actions          a0   a1   a2   a3   a0        a3 has no next observation and is dropped
    terminals         0    0    0    1    0        1 at the last observation, whether or not a goal was reached

Four rows are thus three transitions. NAME.npz is for training, NAME-val.npz beside it for validation. `rewards` and
`masks` (0 where a goal is reached), which the files of single tasks have, belong to the action in their row. Other
arrays with as many rows (qpos, qvel, button_states) become the hidden states. Everything else in a dataset (goals,
rewards, tasks) is exported under names that start with gcb_, which OGBench's own loader ignores.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gcb.data.episode import EpisodeArrays
from gcb.data.formats.npz import Archive, ChunkedArray, write_npz
from gcb.data.formats.source import EpisodeSource, check_extras
from gcb.data.store import Dataset
from gcb.errors import GCBError, short
from gcb.utils.files import output_file, sha256
from gcb.utils.progress import Progress
from gcb.utils.text_files import parse_json

REQUIRED = ("observations", "actions", "terminals")
REWARDS, MASKS = "rewards", "masks"
ABOUT = "gcb_about"
"""Array with a JSON text: the dataset's configuration and names."""
CHUNK = 1024
"""Frames read at once."""


def ogbench_source(path: Path) -> EpisodeSource:
    """Open a file published by OGBench or written by `write_ogbench`."""
    archive = Archive(path)
    _check_arrays(path, archive)
    ends = _last_rows(path, archive.array("terminals"))
    about = _about(path, archive)
    states, unused = _split_arrays(archive)
    config = {**about.get("config", {}), "source": {"format": "ogbench", "name": path.name, "sha256": sha256(path)}}
    if states:
        entries = [(name, archive.entries[name]) for name in states]
        config["states"] = [[name, list(entry.shape[1:]), str(entry.dtype)] for name, entry in entries]

    def episodes() -> Iterator[tuple[str, EpisodeArrays]]:
        arrays = {name: archive.array(name) for name in archive.entries if name not in ("observations", *unused)}
        _check_masks(path, arrays.get(MASKS))
        if states:
            arrays["gcb_states"] = _concatenate_states(path, {name: arrays[name] for name in states})
        with archive.rows("observations") as observations:
            first = 0
            for number, last in enumerate(ends.tolist()):
                name = f"trajectory {number} of {path}"
                try:
                    trajectory = _trajectory(arrays, about, number, first, last)
                except (IndexError, KeyError, TypeError, ValueError) as error:
                    raise GCBError(f"{name}: the arrays named gcb_… are inconsistent ({error!r})") from error
                yield name, {"observations": observations.read(last + 1 - first), **trajectory}
                first = last + 1

    return EpisodeSource(config, len(ends), episodes, unused)


def _check_arrays(path: Path, archive: Archive) -> None:
    """Check that the required arrays are present and have the same length."""
    entries = archive.entries
    if missing := [name for name in REQUIRED if name not in entries]:
        raise GCBError(f"{path} has no {', '.join(missing)}; it has {', '.join(entries) or 'nothing'}")
    if "next_observations" in entries:
        raise GCBError(f"{path} has next_observations: it was saved after loading. Accepted: the file as published")
    shapes = {name: entries[name].shape for name in (*REQUIRED, REWARDS, MASKS) if name in entries}
    if len({shape[:1] for shape in shapes.values()}) > 1 or () in shapes.values():
        described = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise GCBError(f"{path} has arrays of different lengths: {described}")


def _check_masks(path: Path, masks: np.ndarray | None) -> None:
    if masks is not None and (masks.ndim != 1 or not np.isin(masks, (0, 1)).all()):
        raise GCBError(
            f"{path}: masks are {masks.dtype} {masks.shape}; accepted: (N,), 0 where a goal is reached, else 1"
        )


def _last_rows(path: Path, terminals: np.ndarray) -> np.ndarray:
    """Return the row of each trajectory's last observation."""
    if terminals.ndim != 1 or not np.isin(terminals, (0, 1)).all():
        raise GCBError(f"{path}: terminals are {terminals.dtype} {terminals.shape}; accepted: (N,), each 0 or 1")
    if not len(terminals) or not terminals[-1]:
        raise GCBError(f"{path}: the last trajectory has no end; the last entry of terminals must be 1")
    ends = np.flatnonzero(terminals)
    rows = np.diff(ends, prepend=-1)
    if rows.min() < 2:
        raise GCBError(f"{path}: trajectory {int(rows.argmin())} has one observation; it needs at least two")
    return ends


def _split_arrays(archive: Archive) -> tuple[list[str], tuple[str, ...]]:
    """Return the optional arrays that are part of the states, and those that a dataset has no field for."""
    entries, rows = archive.entries, archive.entries["actions"].shape[0]
    known = (*REQUIRED, REWARDS, MASKS)
    others = [name for name in entries if name not in known and not name.startswith("gcb_")]
    states = [name for name in others if entries[name].shape[:1] == (rows,) and entries[name].dtype.kind in "biuf"]
    return states, tuple(name for name in others if name not in states)


def _concatenate_states(path: Path, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """Concatenate arrays in single precision; raise if that loses precision."""
    for name, array in arrays.items():
        if not np.array_equal(array.astype(np.float32).astype(array.dtype), array, equal_nan=True):
            raise GCBError(f"{path}: {name} does not fit into single precision without loss")
    return np.concatenate([array.reshape(len(array), -1).astype(np.float32) for array in arrays.values()], axis=1)


def _about(path: Path, archive: Archive) -> dict[str, Any]:
    """Return the configuration and names in a file that `write_ogbench` wrote."""
    if ABOUT not in archive.entries:
        return {}
    try:
        about = parse_json(str(archive.array(ABOUT)))
    except (ValueError, RecursionError) as error:
        raise GCBError(f"{path}: {ABOUT} is not readable JSON: {error}") from error
    check_extras(about, f"{path}: {ABOUT}")
    return about


def _trajectory(
    arrays: Mapping[str, np.ndarray], about: Mapping[str, Any], number: int, first: int, last: int
) -> EpisodeArrays:
    """Return all but the observations of the trajectory in these rows.

    Each earlier trajectory has one transition less than rows, hence the offset `number`.
    """
    steps, rows = slice(first - number, last - number), slice(first, last + 1)
    indices = {"rewards": steps, "terminated": steps, "states": rows, "task": number, "success": number}
    trajectory: dict[str, Any] = {"actions": arrays["actions"][first:last]}
    if REWARDS in arrays:
        trajectory["rewards"] = arrays[REWARDS][first:last]
    if MASKS in arrays:
        trajectory["terminated"] = arrays[MASKS][first:last] == 0
    trajectory |= {key: arrays[f"gcb_{key}"][index] for key, index in indices.items() if f"gcb_{key}" in arrays}
    if "gcb_goal" in arrays and (goal := int(arrays["gcb_goal_of"][number])) >= 0:
        trajectory |= {key: arrays[f"gcb_{key}"][goal] for key in ("goal", "goal_state") if f"gcb_{key}" in arrays}
    if "gcb_scene" in arrays:
        trajectory["scene"] = dict(zip(about["scene_names"], arrays["gcb_scene"][number].tolist(), strict=True))
    return trajectory


def write_ogbench(dataset: Dataset, out: Path, episodes: range, *, quiet: bool = False) -> None:
    """Write these episodes to one OGBench file, completely or not at all."""
    chosen = slice(episodes.start, episodes.stop)
    length, first = np.asarray(dataset.episode_length)[chosen], np.asarray(dataset.episode_first_frame)[chosen]
    ends = np.cumsum(length + 1) - 1
    frame = np.arange(ends[-1] + 1) + np.repeat(first - (ends - length), length + 1)
    last = np.zeros(len(frame), bool)
    last[ends] = True
    start = int(dataset.first_transition[chosen.start])
    steps = slice(start, start + int(length.sum()))
    actions = np.zeros((len(frame), *dataset.actions.shape[1:]), dataset.actions.dtype)
    actions[~last] = dataset.actions[steps]
    arrays: dict[str, np.ndarray] = {"actions": actions, "terminals": last, "gcb_terminated": dataset.terminated[steps]}
    if dataset.rewards is not None:
        arrays["gcb_rewards"] = dataset.rewards[steps]
    arrays |= _states(dataset, frame) | _episode_fields(dataset, chosen)
    about = {"config": dict(dataset.config), "scene_names": list(dataset.scene_names)}
    arrays[ABOUT] = np.array(json.dumps(about))
    chunks = _chunks(dataset.frames, frame, quiet)
    observations = ChunkedArray((len(frame), *dataset.frames.shape[1:]), dataset.frames.dtype, chunks)
    with output_file(out) as handle:
        write_npz(handle, {"observations": observations, **arrays})


def _chunks(frames: np.ndarray, indices: np.ndarray, quiet: bool) -> Iterator[np.ndarray]:
    """Yield these frames in chunks."""
    with Progress("exporting", len(indices), "frames", quiet=quiet) as bar:
        for start in range(0, len(indices), CHUNK):
            chunk = frames[indices[start : start + CHUNK]]
            yield chunk
            bar.advance(len(chunk))


def _states(dataset: Dataset, frame: np.ndarray) -> dict[str, np.ndarray]:
    """Return the states of these frames, under their original names and dtypes if they were imported."""
    if dataset.states is None:
        return {}
    states, entries = dataset.states[frame], dataset.config.get("states")
    if entries is None:
        return {"gcb_states": states}
    columns = np.cumsum([0, *(int(np.prod(shape, dtype=int)) for _, shape, _ in entries)])
    try:
        return {
            name: states[:, low:high].reshape(-1, *shape).astype(dtype)
            for (name, shape, dtype), low, high in zip(entries, columns[:-1], columns[1:], strict=True)
        }
    except (TypeError, ValueError) as error:
        raise GCBError(f"config.states is {short(entries)}, but the states have {states.shape[1]} columns") from error


def _episode_fields(dataset: Dataset, chosen: slice) -> dict[str, np.ndarray]:
    """Return goals, tasks, successes and scenes of the episodes."""
    arrays: dict[str, np.ndarray] = {}
    goal = np.asarray(dataset.episode_goal_frame)[chosen]
    if (goal >= 0).any():
        arrays["gcb_goal_of"] = np.where(goal >= 0, np.cumsum(goal >= 0) - 1, -1)
        arrays["gcb_goal"] = dataset.frames[goal[goal >= 0]]
        if dataset.states is not None:
            arrays["gcb_goal_state"] = dataset.states[goal[goal >= 0]]
    if dataset.episode_task is not None:
        arrays["gcb_task"] = np.array(dataset.task_names)[dataset.episode_task[chosen]]
    for name, array in (("gcb_success", dataset.episode_success), ("gcb_scene", dataset.episode_scene)):
        if array is not None:
            arrays[name] = array[chosen]
    return arrays
