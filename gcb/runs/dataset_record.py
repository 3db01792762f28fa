"""What a run remembers of its dataset: enough to know it again, and to build its world for an evaluation."""

import hashlib
import json
import os
from dataclasses import asdict
from typing import Any

import numpy as np

from gcb.data import Dataset
from gcb.errors import GCBError
from gcb.methods import Shapes
from gcb.utils.dataclass_io import to_dict


def shapes_of(dataset: Dataset) -> Shapes:
    """What a method must know of a dataset."""
    observation, name = dataset.frames.shape[1:], dataset.path or "the dataset"
    if len(observation) == 3 and dataset.frames.dtype != np.uint8:
        raise GCBError(f"{name} has images of {dataset.frames.dtype}; accepted: uint8.")
    if dataset.actions.ndim != 2 or not np.issubdtype(dataset.actions.dtype, np.floating):
        shape = dataset.actions.shape
        raise GCBError(f"{name} has actions of {dataset.actions.dtype} {shape}; accepted: floating point, (N, A).")
    return Shapes(tuple(observation), dataset.actions.shape[1])


def data_record(dataset: Dataset) -> dict[str, Any]:
    """What a run remembers of its dataset: enough to know it again, and to build its world for an evaluation."""
    return {
        "path": None if dataset.path is None else os.path.abspath(dataset.path),
        "fingerprint": fingerprint(dataset),
        "shapes": to_dict(asdict(shapes_of(dataset))),
        "transitions": dataset.transitions,
        "config": dict(dataset.config),
    }


def fingerprint(dataset: Dataset) -> str:
    """One hash for all bytes of a dataset, wherever it lies."""
    if dataset.manifest:
        hashes = {name: entry["sha256"] for name, entry in dataset.manifest["files"].items()}
    else:
        arrays = dataset.arrays().items()
        hashes = {name: hashlib.sha256(np.ascontiguousarray(array).data).hexdigest() for name, array in arrays}
    return hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()
