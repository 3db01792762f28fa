"""The dataset's format on disk: the names of its files, their headers, and its manifest.

DIR/manifest.json               written last: a folder without it is not a dataset
DIR/frames.npy                  one .npy per field of FIELDS
DIR/.partial/                   where a collection appends until it is complete; see gcb.data.writer
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any, Literal

import numpy as np

from gcb.errors import GCBError
from gcb.utils.files import read_json, sha256

FORMAT = "gcb-dataset"
VERSION = 1
MANIFEST = "manifest.json"
PARTIAL = ".partial"
HEADER_BYTES = 128
"""Every .npy header has this length, so that rows can be appended before their number is known."""
HEADER_FAULTS = (ValueError, TypeError, SyntaxError, TokenError, OverflowError)
"""What numpy raises at a damaged header, which it reads as a piece of Python."""


@dataclass(frozen=True)
class Field:
    """One .npy file: what its rows run along, whether every dataset has it, and its dtype where that is fixed."""

    along: Literal["frames", "transitions", "episodes"]
    required: bool = True
    dtype: str | None = None


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
    """The header of a version 1.0 .npy file, padded to HEADER_BYTES."""
    text = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': {tuple(int(n) for n in shape)!r}, }}"
    room = HEADER_BYTES - 10 - 1  # magic (6), version (2), length (2); a newline at the end
    if len(text) > room:
        raise GCBError(f"an array of shape {shape} has too many axes for a dataset; at most 6 are possible")
    length = struct.pack("<H", HEADER_BYTES - 10)
    return b"\x93NUMPY\x01\x00" + length + text.ljust(room).encode("latin1") + b"\n"


def file_entry(path: Path, dtype: np.dtype, shape: tuple[int, ...]) -> dict[str, Any]:
    """What the manifest says about one file."""
    return {
        "shape": [int(n) for n in shape],
        "dtype": dtype.str,
        "bytes": path.stat().st_size,
        "sha256": sha256(path),
    }


def make_manifest(head: Mapping[str, Any], counts: Mapping[str, int], files: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest: `head` is what only the maker knows (configuration, versions, names)."""
    return {**head, "format": FORMAT, "version": VERSION, "counts": dict(counts), "files": dict(files)}


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a finished dataset, or an error that says what lies there instead."""
    if not folder.is_dir():
        raise GCBError(f"{folder} is not a folder; a dataset is a folder that `gcb collect --out` has written")
    if not (folder / MANIFEST).is_file():
        if (folder / PARTIAL).is_dir():
            raise GCBError(f"{folder} holds an unfinished dataset; run the command that began it again to go on")
        raise GCBError(f"{folder} is not a dataset: it has no {MANIFEST}")
    manifest = read_json(folder / MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise GCBError(f"{folder / MANIFEST} does not describe a dataset: its format is not {FORMAT!r}")
    if manifest.get("version") != VERSION:
        raise GCBError(f"{folder} has format version {manifest.get('version')!r}; this gcb reads version {VERSION}")
    return manifest
