"""OGBench's files: observations, actions and terminals in one .npz, trajectory after trajectory.

                   |<- trajectory 0 ->|<- trajectory 1 …
    observations     s0   s1   s2   s3   s0
    actions          a0   a1   a2   a3   a0        a3 has no next observation: it leads nowhere, and is not kept
    terminals         0    0    0    1    0        1 at the last observation, whether a goal was reached or not

So four rows are three transitions. NAME.npz is to be trained on, NAME-val.npz beside it to be validated on. Other
arrays of as many rows (qpos, qvel, button_states) become the hidden state. What a dataset knows beyond that (goals,
rewards, tasks) is exported under names that begin with gcb_, which OGBench's own loader passes over.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gcb.data.formats.episodes import Parts, Source
from gcb.data.formats.npz import Archive, Pieces, write_npz
from gcb.data.store import Dataset
from gcb.errors import GCBError
from gcb.utils.files import atomic_file, explain_os_errors, sha256
from gcb.utils.progress import Progress

NEEDED = ("observations", "actions", "terminals")
ABOUT = "gcb_about"
CHUNK = 1024
"""Frames in memory at once."""


def ogbench_source(path: Path) -> Source:
    """The trajectories of a file as OGBench publishes it, or as `write_ogbench` has written it."""
    archive = Archive(path)
    _check_arrays(path, archive)
    ends = _ends(path, archive.array("terminals"))
    about = _about(path, archive)
    hidden, left_out = _hidden(archive)
    config = {**about.get("config", {}), "source": {"format": "ogbench", "name": path.name, "sha256": sha256(path)}}
    if hidden:
        named = [(name, archive.entries[name]) for name in hidden]
        config["states"] = [[name, list(entry.shape[1:]), str(entry.dtype)] for name, entry in named]

    def parts() -> Iterator[tuple[str, Parts]]:
        known = {name: archive.array(name) for name in archive.entries if name not in ("observations", *left_out)}
        if hidden:
            known["gcb_states"] = _side_by_side(path, {name: known[name] for name in hidden})
        with archive.rows("observations") as observations:
            first = 0
            for number, last in enumerate(ends.tolist()):
                name = f"trajectory {number} of {path}"
                try:
                    arrays = _one_of(known, about, number, first, last)
                except (IndexError, KeyError, TypeError, ValueError) as error:
                    raise GCBError(f"{name}: the arrays named gcb_… do not go together ({error!r})") from error
                yield name, {"observations": observations.read(last + 1 - first), **arrays}
                first = last + 1

    return Source(config, len(ends), parts, left_out)


def _check_arrays(path: Path, archive: Archive) -> None:
    """What must be there is there, and of one length."""
    entries = archive.entries
    if missing := [name for name in NEEDED if name not in entries]:
        raise GCBError(f"{path} has no {', '.join(missing)}; it has {', '.join(entries) or 'nothing'}")
    if "next_observations" in entries:
        raise GCBError(f"{path} has next_observations: it was saved after loading. Accepted: the file as published")
    shapes = {name: entries[name].shape for name in NEEDED}
    if len({shape[:1] for shape in shapes.values()}) > 1 or () in shapes.values():
        found = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise GCBError(f"{path} has arrays of different lengths: {found}")


def _ends(path: Path, terminals: np.ndarray) -> np.ndarray:
    """The row of each trajectory's last observation."""
    if terminals.ndim != 1 or not np.isin(terminals, (0, 1)).all():
        raise GCBError(f"{path}: terminals are {terminals.dtype} {terminals.shape}; accepted: (N,), each 0 or 1")
    if not len(terminals) or not terminals[-1]:
        raise GCBError(f"{path}: the last trajectory has no end: the last of terminals must be 1")
    ends = np.flatnonzero(terminals)
    rows = np.diff(ends, prepend=-1)
    if rows.min() < 2:
        raise GCBError(f"{path}: trajectory {int(rows.argmin())} has one observation; a transition needs two")
    return ends


def _hidden(archive: Archive) -> tuple[list[str], tuple[str, ...]]:
    """The arrays that are part of the hidden state, and those that find no place in a dataset."""
    entries, rows = archive.entries, archive.entries["actions"].shape[0]
    others = [name for name in entries if name not in NEEDED and not name.startswith("gcb_")]
    hidden = [name for name in others if entries[name].shape[:1] == (rows,) and entries[name].dtype.kind in "biuf"]
    return hidden, tuple(name for name in others if name not in hidden)


def _side_by_side(path: Path, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """Several arrays as one of single precision, if that loses nothing."""
    for name, array in arrays.items():
        if not np.array_equal(array.astype(np.float32).astype(array.dtype), array, equal_nan=True):
            raise GCBError(f"{path}: {name} does not fit into single precision without a loss")
    return np.concatenate([array.reshape(len(array), -1).astype(np.float32) for array in arrays.values()], axis=1)


def _about(path: Path, archive: Archive) -> dict[str, Any]:
    """What an exported file says of itself."""
    if ABOUT not in archive.entries:
        return {}
    try:
        return dict(json.loads(str(archive.array(ABOUT))))
    except (TypeError, ValueError) as error:
        raise GCBError(f"{path}: {ABOUT} is not a JSON object: {error}") from error


def _one_of(known: Mapping[str, np.ndarray], about: Mapping[str, Any], number: int, first: int, last: int) -> Parts:
    """All but the observations of the trajectory in these rows; one transition less than rows for each before it."""
    steps, rows = slice(first - number, last - number), slice(first, last + 1)
    places = {"rewards": steps, "terminated": steps, "states": rows, "task": number, "success": number}
    found: dict[str, Any] = {"actions": known["actions"][first:last]}
    found.update({key: known[f"gcb_{key}"][place] for key, place in places.items() if f"gcb_{key}" in known})
    if "gcb_goal" in known and (goal := int(known["gcb_goal_of"][number])) >= 0:
        found.update({key: known[f"gcb_{key}"][goal] for key in ("goal", "goal_state") if f"gcb_{key}" in known})
    if "gcb_scene" in known:
        found["scene"] = dict(zip(about["scene_names"], known["gcb_scene"][number].tolist(), strict=True))
    return found


def write_ogbench(dataset: Dataset, out: Path, episodes: range, *, quiet: bool = False) -> None:
    """Write these episodes as one OGBench file, whole or not at all."""
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
    arrays |= _states(dataset, frame) | _by_episode(dataset, chosen)
    about = {"config": dict(dataset.config), "scene_names": list(dataset.scene_names)}
    arrays[ABOUT] = np.array(json.dumps(about))
    pieces = _fetched(dataset.frames, frame, quiet)
    observations = Pieces((len(frame), *dataset.frames.shape[1:]), dataset.frames.dtype, pieces)
    with explain_os_errors(out), atomic_file(out) as handle:
        write_npz(handle, {"observations": observations, **arrays})


def _fetched(frames: np.ndarray, index: np.ndarray, quiet: bool) -> Iterator[np.ndarray]:
    """These frames, some at a time."""
    with Progress("exporting", len(index), "frames", quiet=quiet) as bar:
        for at in range(0, len(index), CHUNK):
            piece = frames[index[at : at + CHUNK]]
            yield piece
            bar.advance(len(piece))


def _states(dataset: Dataset, frame: np.ndarray) -> dict[str, np.ndarray]:
    """The hidden states of these frames, under the names and types that an import found."""
    if dataset.states is None:
        return {}
    states, named = dataset.states[frame], dataset.config.get("states")
    if named is None:
        return {"gcb_states": states}
    columns = np.cumsum([0, *(int(np.prod(shape, dtype=int)) for _, shape, _ in named)])
    return {
        name: states[:, low:high].reshape(-1, *shape).astype(dtype)
        for (name, shape, dtype), low, high in zip(named, columns[:-1], columns[1:], strict=True)
    }


def _by_episode(dataset: Dataset, chosen: slice) -> dict[str, np.ndarray]:
    """Goals, tasks and what else belongs to whole episodes."""
    found: dict[str, np.ndarray] = {}
    goal = np.asarray(dataset.episode_goal_frame)[chosen]
    if (goal >= 0).any():
        found["gcb_goal_of"] = np.where(goal >= 0, np.cumsum(goal >= 0) - 1, -1)
        found["gcb_goal"] = dataset.frames[goal[goal >= 0]]
        if dataset.states is not None:
            found["gcb_goal_state"] = dataset.states[goal[goal >= 0]]
    if dataset.episode_task is not None:
        found["gcb_task"] = np.array(dataset.task_names)[dataset.episode_task[chosen]]
    for name, array in (("gcb_success", dataset.episode_success), ("gcb_scene", dataset.episode_scene)):
        if array is not None:
            found[name] = array[chosen]
    return found
