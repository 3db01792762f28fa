"""Make an atlas, or read the one that was kept in the run's folder."""

import io
import json
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path

import numpy as np

from gcb.agent.agent import Agent
from gcb.analysis.embed import Tasks, sample_tasks
from gcb.analysis.projection import tsne
from gcb.data import Dataset
from gcb.data.format import NPY_HEADER_ERRORS
from gcb.errors import GCBError
from gcb.explorer.task_index import TaskIndex
from gcb.runs.dataset_record import fingerprint
from gcb.utils.files import explain_os_errors, write_atomically

COUNT = 1500
"""Tasks on the map: as many as the paper's figure has, and a map in seconds."""
SEED = 0
KEPT = Path("analysis", "explorer.npz")
ZIP_FAULTS = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)
"""What damaged archives provoke."""

Report = Callable[[str, float], object]


def prepare(agent: Agent, dataset: Dataset, report: Report, count: int = COUNT) -> TaskIndex:
    """Embed tasks of the dataset, or read what was kept of the same weights and data; `report` is told how far it is.

    The map still has to be drawn: `draw_map`.
    """
    kept = _read(agent, dataset, count)
    if kept is not None:
        return kept
    done = 0

    def advance(more: int) -> None:
        nonlocal done
        done += more
        report("embedding tasks of the dataset", done / count)

    return TaskIndex(agent, dataset, sample_tasks(agent, dataset, count, SEED, advance=advance))


def draw_map(atlas: TaskIndex, count: int = COUNT) -> None:
    """Place the tasks on a map by t-SNE of φ, and keep everything in the run's folder if that can be written."""
    if atlas.places is not None or atlas.tasks.phi is None:
        return
    atlas.places = tsne(atlas.tasks.phi, SEED)
    _write(atlas, count)


def _key(agent: Agent, dataset: Dataset, count: int) -> str:
    """Other weights, other data or another count are another map."""
    checkpoint = agent.run.checkpoint() if agent.run else None
    if checkpoint is None or checkpoint.step != agent.step:
        raise GCBError("the run has gone on since the agent was loaded: its map is not kept")
    weights = checkpoint.files["weights"]["sha256"]
    return json.dumps({"weights": weights, "data": fingerprint(dataset), "count": count, "seed": SEED, "version": 1})


def _read(agent: Agent, dataset: Dataset, count: int) -> TaskIndex | None:
    """What was kept, if it is whole and of these weights and data; whatever else is there is made anew."""
    assert agent.run is not None, "the explorer's agent is loaded from a run"
    try:
        with np.load(agent.run.path / KEPT, allow_pickle=False) as file:
            if str(file["key"]) != _key(agent, dataset, count):
                return None
            parts: Mapping[str, np.ndarray] = {name: file[name] for name in file.files}
        names = [one.name for one in fields(Tasks) if one.name in parts]
        return TaskIndex(agent, dataset, Tasks(**{name: parts[name] for name in names}), parts["places"])
    except (OSError, KeyError, IndexError, GCBError, *ZIP_FAULTS, *NPY_HEADER_ERRORS):
        return None


def _write(atlas: TaskIndex, count: int) -> None:
    """Keep the atlas; a folder that cannot be written only costs time at the next start."""
    assert atlas.agent.run is not None, "the explorer's agent is loaded from a run"
    assert atlas.places is not None, "draw_map comes first"
    parts = {one.name: getattr(atlas.tasks, one.name) for one in fields(Tasks)}
    buffer = io.BytesIO()
    np.savez(
        buffer,
        key=np.array(_key(atlas.agent, atlas.dataset, count)),
        places=atlas.places,
        **{name: part for name, part in parts.items() if part is not None},
    )
    path = atlas.agent.run.path / KEPT
    with explain_os_errors(path):
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, buffer.getvalue())
