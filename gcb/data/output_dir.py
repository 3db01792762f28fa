"""The folder a dataset is to stand in: whose it is, and how complete files move into it."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gcb.data.format import FIELDS, MANIFEST, PARTIAL, read_manifest
from gcb.errors import GCBError
from gcb.utils.files import read_json, sync_directory

IDENTITY = "identity.json"
JOURNAL = "journal.json"
OURS = {IDENTITY, JOURNAL, MANIFEST, *(f"{name}.npy" for name in FIELDS)}


def is_finished(out: Path, identity: Mapping[str, Any]) -> bool:
    """Whether the dataset that `identity` describes stands in `out` complete. Nothing is touched.

    Raises where `out` holds something else: another dataset, finished or not, or files that are not gcb's.
    """
    if not out.exists():
        return False
    if not out.is_dir():
        raise GCBError(f"{out} is a file; a dataset needs a new or an empty folder")
    if (out / MANIFEST).exists():
        _check_same(out, "another dataset", {"config": read_manifest(out).get("config")}, identity)
        return True
    if (out / PARTIAL / IDENTITY).is_file():
        _check_same(out, "another, unfinished dataset", read_json(out / PARTIAL / IDENTITY), identity)
    elif strangers := _strangers(out):
        raise GCBError(f"{out} holds other files ({strangers[0]}); name a new or an empty folder")
    return False


def _strangers(out: Path) -> list[str]:
    """What in `out` is not the trace of a collection killed in its first moments."""
    beside = [name for name in sorted(os.listdir(out)) if name != PARTIAL]
    inside = sorted(os.listdir(out / PARTIAL)) if (out / PARTIAL).is_dir() else []
    return beside + [f"{PARTIAL}/{name}" for name in inside if name not in OURS and not name.endswith(".tmp")]


def _check_same(out: Path, what: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Compare what stands in `out` with what is asked, entry by entry, and name the entries that differ."""
    differences = []
    for section, there in theirs.items():
        asked = ours.get(section)
        if not isinstance(there, Mapping) or not isinstance(asked, Mapping):
            raise GCBError(f"{out} holds {what}, of which nothing is known; name another folder")
        for key in sorted(there.keys() | asked.keys()):
            if there.get(key) != asked.get(key):
                differences.append(f"{key} is {there.get(key)!r} there and {asked.get(key)!r} here")
    if differences:
        raise GCBError(f"{out} holds {what}: {'; '.join(differences)}. Name another folder, or delete this one")


def publish(out: Path) -> bool:
    """Rename the complete files from OUT/.partial into OUT, the manifest last; say whether there was anything to do.

    The manifest in OUT/.partial marks that all files are complete: after a kill between two renames, calling this
    again does the rest.
    """
    partial = out / PARTIAL
    if not (partial / MANIFEST).is_file():
        return False
    for name in read_json(partial / MANIFEST)["files"]:
        if (partial / name).is_file():
            os.replace(partial / name, out / name)
    sync_directory(out)
    os.replace(partial / MANIFEST, out / MANIFEST)
    sync_directory(out)
    clear(out)
    return True


def clear(out: Path) -> None:
    """Remove what is left in OUT/.partial once the manifest stands: the identity and the journal."""
    shutil.rmtree(out / PARTIAL, ignore_errors=True)
