"""Grids from YAML and settings from the command line: loaded safely, checked name by name and type by type."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import yaml

from gcb.errors import GCBError
from gcb.sweep.grid import VARIANT_NAME, Grid, Variant, merged
from gcb.utils.dataclass_io import from_dict
from gcb.utils.files import read_yaml


def read_grid(path: str | os.PathLike[str]) -> Grid:
    """The grid that a YAML file describes: a mapping of the fields of `Grid`. Never executes anything."""
    plain = read_yaml(path)
    try:
        return plain_grid(plain)
    except GCBError as error:
        raise GCBError(f"{path}: {error}") from error


def plain_grid(plain: Any) -> Grid:
    """The grid that plain values describe."""
    if not isinstance(plain, Mapping):
        raise GCBError(f"the grid is {plain!r}; accepted: a mapping, such as methods: [gcb, bc].")
    rest = {name: value for name, value in plain.items() if name not in ("set", "variants")}
    grid: Grid = from_dict(Grid, rest)
    if "variants" in plain:
        grid = replace(grid, variants=_variants(plain["variants"]))
    return replace(grid, set=_changes(plain["set"], "set")) if "set" in plain else grid


def parse_settings(texts: Iterable[str]) -> dict[str, Any]:
    """The changes that words like `steps=3000` and `iql.discount=0.95` ask for."""
    changes: dict[str, Any] = {}
    for text in texts:
        name, value = _halves(text)
        changes = merged(changes, _nested(name, _value(text, value)))
    return changes


def parse_variants(texts: Iterable[str]) -> tuple[Variant, ...]:
    """A variant for each combination of words like `method_config.size=32,64`."""
    axes = []
    for text in texts:
        name, values = _halves(text)
        axes.append([(name, value) for value in values.split(",")])
    variants = []
    for choice in product(*axes):
        changes: dict[str, Any] = {}
        for name, value in choice:
            changes = merged(changes, _nested(name, _value(f"{name}={value}", value)))
        label = "+".join(f"{name.rpartition('.')[2]}={value}" for name, value in choice)
        variants.append(Variant(label if VARIANT_NAME.fullmatch(label) else f"v{len(variants)}", changes))
    return tuple(variants)


def _variants(plain: Any) -> tuple[Variant, ...]:
    if not isinstance(plain, list):
        raise GCBError(f"variants is {plain!r}; accepted: a list of mappings of name, set, methods, worlds.")
    found = []
    for index, entry in enumerate(plain):
        where = f"variants[{index}]"
        if not isinstance(entry, Mapping):
            raise GCBError(f"{where} is {entry!r}; accepted: a mapping of name, set, methods, worlds.")
        rest = {name: value for name, value in entry.items() if name != "set"}
        variant: Variant = from_dict(Variant, rest, where)
        found.append(replace(variant, set=_changes(entry.get("set", {}), f"{where}.set")))
    return tuple(found)


def _changes(plain: Any, where: str) -> dict[str, Any]:
    """Changes of a configuration; names may be dotted or nested. What they name is checked with each method."""
    if not isinstance(plain, Mapping):
        raise GCBError(f"{where} is {plain!r}; accepted: a mapping of settings, such as steps: 3000.")
    changes: dict[str, Any] = {}
    for name, value in plain.items():
        changes = merged(changes, _nested(str(name), value))
    return changes


def _nested(name: str, value: Any) -> dict[str, Any]:
    """a.b.c and a value as mappings within each other."""
    first, _, rest = name.partition(".")
    return {first: _nested(rest, value) if rest else value}


def _halves(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise GCBError(f"{text!r} is not a setting; accepted: name=value, such as steps=3000.")
    return name.strip(), value.strip()


def _value(text: str, value: str) -> Any:
    try:
        return yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise GCBError(f"{text!r} has no plain value: {' '.join(str(error).split())}") from error
