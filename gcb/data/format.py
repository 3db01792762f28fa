"""The dataset format on disk: file names, .npy headers and the manifest.

DIR/manifest.json               written last; a directory without it is not a dataset
DIR/frames.npy                  one .npy file per field of FIELDS
DIR/.partial/                   files of an unfinished dataset; see gcb.data.writer
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any, Literal

import numpy as np

from gcb.errors import GCBError
from gcb.utils.dataclass_io import check_entries, check_interval
from gcb.utils.files import sha256
from gcb.utils.text_files import read_json

FORMAT = "gcb-dataset"
VERSION = 1
MANIFEST = "manifest.json"
PARTIAL = ".partial"
HEADER_BYTES = 128
"""Length of every .npy header, so that rows can be appended before their number is known."""
NPY_HEADER_ERRORS = (ValueError, TypeError, SyntaxError, TokenError, OverflowError)
"""Exceptions of numpy for a damaged header, which it parses as a Python literal."""


@dataclass(frozen=True)
class Field:
    """One .npy file: what a row stands for, whether it is required, and its dtype if that is fixed."""

    along: Literal["frames", "transitions", "episodes"]
    required: bool = True
    dtype: str | None = None


@dataclass(frozen=True)
class FileEntry:
    """What the manifest says about one file."""

    shape: tuple[int, ...]
    dtype: str
    bytes: int
    sha256: str


Names = tuple[str, ...]
MANIFEST_TYPES: dict[str, Any] = {
    "counts": dict[str, int],
    "files": dict[str, FileEntry],
    "task_names": Names,
    "scene_names": Names,
    "versions": dict[str, Any],
    "renderer": str,
}
ORIGIN_TYPES: dict[str, Any] = {
    "env": str | None,
    "options": dict[str, Any] | None,
    "adapter": str,
    "transitions": int,
    "seed": int,
    "noise": float,
    "source": dict[str, Any] | str,
    "states": tuple[tuple[str, tuple[int, ...], str], ...],
    "action_bound": float,
    "reward_offset": float,
}
"""Types of the entries that gcb reads in a dataset's configuration; a user may add others."""
FIELDS: dict[str, Field] = {
    "frames": Field("frames"),
    "states": Field("frames", required=False, dtype="<f4"),
    "actions": Field("transitions"),
    "rewards": Field("transitions", required=False, dtype="<f4"),
    "terminated": Field("transitions", dtype="|b1"),
    "episode_first_frame": Field("episodes", dtype="<i8"),
    "episode_length": Field("episodes", dtype="<i8"),
    "episode_goal_frame": Field("episodes", dtype="<i8"),
    "episode_task": Field("episodes", required=False, dtype="|i1"),
    "episode_success": Field("episodes", required=False, dtype="|b1"),
    "episode_scene": Field("episodes", required=False, dtype="<f4"),
}


def npy_header(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    """Return the header of a version 1.0 .npy file, padded to HEADER_BYTES."""
    text = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': {tuple(int(n) for n in shape)!r}, }}"
    room = HEADER_BYTES - 10 - 1  # magic (6), version (2), length (2); a newline at the end
    if len(text) > room:
        raise GCBError(f"an array of shape {shape} has too many axes for a dataset; at most 6 are possible")
    length = struct.pack("<H", HEADER_BYTES - 10)
    return b"\x93NUMPY\x01\x00" + length + text.ljust(room).encode("latin1") + b"\n"


def file_entry(path: Path, dtype: np.dtype, shape: tuple[int, ...]) -> dict[str, Any]:
    """Return the manifest's entry for one file."""
    return {
        "shape": [int(n) for n in shape],
        "dtype": dtype.str,
        "bytes": path.stat().st_size,
        "sha256": sha256(path),
    }


def make_manifest(
    origin: Mapping[str, Any],
    counts: Mapping[str, int],
    names: Mapping[str, Sequence[str]],
    files: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the manifest of a dataset.

    `origin` says how it was made (configuration, versions), `counts` is the number of episodes, transitions and
    frames, `names` has the names of tasks and scene numbers, and `files` one entry per file.
    """
    header = {"format": FORMAT, "version": VERSION, "counts": dict(counts), "files": dict(files)}
    return {**origin, **{key: list(value) for key, value in names.items()}, **header}


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest of a complete dataset; the error says what the directory holds instead."""
    if not path.is_dir():
        raise GCBError(f"{path} is not a directory; a dataset is a directory written by `gcb collect --out`")
    if not (path / MANIFEST).is_file():
        if (path / PARTIAL).is_dir():
            raise GCBError(f"{path} holds an unfinished dataset; run the command that started it again to resume")
        raise GCBError(f"{path} is not a dataset: it has no {MANIFEST}")
    manifest = read_json(path / MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise GCBError(f"{path / MANIFEST} does not describe a dataset: its format is not {FORMAT!r}")
    if manifest.get("version") != VERSION:
        raise GCBError(f"{path} has format version {manifest.get('version')!r}; this gcb reads version {VERSION}")
    try:
        check_entries(manifest, MANIFEST_TYPES)
        check_origin(manifest.get("config", {}))
        if missing := [name for name in ("files", "counts") if name not in manifest]:
            raise GCBError(f"it has no {missing[0]}")
    except GCBError as error:
        raise GCBError(f"{path / MANIFEST} is damaged: {error}") from error
    return manifest


def check_origin(config: Any, name: str = "config") -> None:
    """Raise `GCBError` unless the configuration of a dataset, which a file holds, has entries of the right types."""
    check_entries(config, ORIGIN_TYPES, name)
    check_interval(f"{name}.action_bound", config.get("action_bound"), "(0, inf)")
