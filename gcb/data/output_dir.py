"""The output directory of a dataset: whether it may be written to, and how complete files move into it."""

import os
import platform
import shutil
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import gcb
from gcb.data.format import FIELDS, MANIFEST, PARTIAL, read_manifest
from gcb.errors import GCBError
from gcb.utils.files import sync_directory
from gcb.utils.os_errors import explain_os_errors
from gcb.utils.text_files import read_json

IDENTITY = "identity.json"
JOURNAL = "journal.json"
OWN_FILES = {IDENTITY, JOURNAL, MANIFEST, *(f"{name}.npy" for name in FIELDS)}


def make_identity(config: Mapping[str, Any], *packages: str) -> dict[str, Any]:
    """Return everything that determines the bytes of a dataset: its configuration and the versions of packages."""
    versions = {name: installed_version(name) for name in packages}
    return {"config": config, "versions": {"python": platform.python_version(), "gcb": gcb.__version__, **versions}}


def installed_version(package: str) -> str | None:
    """Return the version of a package, or None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def is_complete(out: Path, identity: Mapping[str, Any]) -> bool:
    """Return whether `out` holds the complete dataset that `identity` describes. Nothing is changed.

    Raises if `out` holds anything else: another dataset, complete or not, or files that are not gcb's.
    """
    with explain_os_errors(out, "Nothing was changed"):
        if not out.exists():
            return False
        if not out.is_dir():
            raise GCBError(f"{out} is a file; a dataset needs a new or empty directory")
        if (out / MANIFEST).exists():
            _check_same(out, "another dataset", {"config": read_manifest(out).get("config")}, identity)
            return not (out / PARTIAL).exists()
        if (out / PARTIAL / IDENTITY).is_file():
            _check_same(out, "another, unfinished dataset", read_json(out / PARTIAL / IDENTITY), identity)
        elif unexpected := _unexpected_files(out):
            raise GCBError(f"{out} holds other files ({unexpected[0]}); name a new or empty directory")
        return False


def _unexpected_files(out: Path) -> list[str]:
    """Return the files in `out` that a collection killed at its very start would not have left."""
    others = [name for name in sorted(os.listdir(out)) if name != PARTIAL]
    partial = sorted(os.listdir(out / PARTIAL)) if (out / PARTIAL).is_dir() else []
    return others + [f"{PARTIAL}/{name}" for name in partial if name not in OWN_FILES and not name.endswith(".tmp")]


def _check_same(out: Path, description: str, existing: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
    """Raise if what `out` holds differs from `identity`, naming the entries that differ."""
    differences = []
    for section, old in existing.items():
        new = identity.get(section)
        if not isinstance(old, Mapping) or not isinstance(new, Mapping):
            raise GCBError(f"{out} holds {description} of unknown configuration; name another directory")
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                differences.append(f"{key} is {old.get(key)!r} there and {new.get(key)!r} here")
    if differences:
        raise GCBError(f"{out} holds {description}: {'; '.join(differences)}. Name another directory")


def publish(out: Path) -> bool:
    """Rename the complete files from OUT/.partial into OUT, the manifest last; return whether OUT is complete.

    A manifest in OUT/.partial means that all files are complete. After a kill between two renames, calling this
    again does the rest.
    """
    partial = out / PARTIAL
    if not (out / MANIFEST).is_file():
        if not (partial / MANIFEST).is_file():
            return False
        for name in read_json(partial / MANIFEST)["files"]:
            if (partial / name).is_file():
                os.replace(partial / name, out / name)
        sync_directory(out)
        os.replace(partial / MANIFEST, out / MANIFEST)
        sync_directory(out)
    shutil.rmtree(partial, ignore_errors=True)
    return True
