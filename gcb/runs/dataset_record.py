"""What a run records about its dataset, in order to recognise it and to build its environment for evaluation."""

import hashlib
import json
import os
import shlex
from dataclasses import dataclass
from typing import Any

import numpy as np

from gcb.data import Dataset
from gcb.data.format import check_origin
from gcb.errors import GCBError
from gcb.methods.base import Shapes
from gcb.utils.dataclass_io import check_fields


@dataclass(frozen=True)
class DatasetRecord:
    """A dataset as described in run.json."""

    path: str | None
    """Where it was when the run began; None if it was in memory, or in an exported agent."""
    fingerprint: str
    """SHA-256 of its contents."""
    shapes: Shapes
    transitions: int
    config: dict[str, Any]
    """How it was collected, as in its manifest."""
    name: str | None = None
    """Name of its directory, in an exported agent."""

    def __post_init__(self) -> None:
        if len(self.shapes.observation) not in (1, 3) or min(*self.shapes.observation, self.shapes.action) < 1:
            raise GCBError(f"shapes is {self.shapes}; accepted: observations of 1 or 3 dimensions, all sizes above 0.")
        check_origin(self.config)
        check_fields(self, transitions="[0, inf)")

    def collect_command(self) -> str | None:
        """Return the command that collects this dataset again, byte for byte; None if it was not collected by one."""
        config, options = self.config, self.config.get("options") or {}
        own_clips = options.get("video") not in (None, "builtin")
        if own_clips or not {"env", "transitions", "seed", "noise"} <= config.keys():
            return None
        parts = ["gcb", "collect", "--env", config["env"], "--transitions", config["transitions"]]
        parts += ["--seed", config["seed"], "--noise", config["noise"], "--image-size", options.get("image_size", 64)]
        return shlex.join([*map(str, parts), *(["--video"] if options.get("video") else []), "--out", "DATA"])


def record_dataset(dataset: Dataset) -> DatasetRecord:
    """Return the description of a dataset for run.json."""
    path = None if dataset.path is None else os.path.abspath(dataset.path)
    return DatasetRecord(path, fingerprint(dataset), shapes_of(dataset), dataset.transitions, dict(dataset.config))


def shapes_of(dataset: Dataset) -> Shapes:
    """Return the shapes of a dataset's observations and actions, or raise an error if no method can use them."""
    observation, name = dataset.frames.shape[1:], dataset.path or "the dataset"
    if len(observation) == 3 and dataset.frames.dtype != np.uint8:
        raise GCBError(f"{name} has images of {dataset.frames.dtype}; accepted: uint8.")
    if dataset.actions.ndim != 2 or not np.issubdtype(dataset.actions.dtype, np.floating):
        shape = dataset.actions.shape
        raise GCBError(f"{name} has actions of {dataset.actions.dtype} {shape}; accepted: floating point, (N, A).")
    return Shapes(tuple(observation), dataset.actions.shape[1])


def fingerprint(dataset: Dataset) -> str:
    """Return one SHA-256 of all arrays of a dataset."""
    if dataset.manifest:
        hashes = {name: entry["sha256"] for name, entry in dataset.manifest["files"].items()}
    else:
        arrays = dataset.arrays().items()
        hashes = {name: hashlib.sha256(np.ascontiguousarray(array).data).hexdigest() for name, array in arrays}
    return hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()
