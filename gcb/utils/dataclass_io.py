"""Configurations as frozen dataclasses: to plain values and back, changed, compared. Nothing is guessed on the way.

A value that does not fit its field's type, or a name that no field has, is an error that names it and what would do.
"""

import math
import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from gcb.errors import GCBError

Config = TypeVar("Config")


def to_dict(value: Any) -> Any:
    """A configuration as mappings, lists, strings, numbers and None: what YAML and JSON can hold."""
    if is_dataclass(value):
        return {field.name: to_dict(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: to_dict(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [to_dict(entry) for entry in value]
    return str(value) if isinstance(value, Path) else value


def from_dict(kind: type[Config], plain: Any, where: str = "", types_of: Mapping[str, Any] | None = None) -> Config:
    """The configuration of class `kind` that `to_dict` turned into `plain`; fields left out keep their defaults.

    `types_of` gives the types of fields whose annotation does not say them.
    """
    if not isinstance(plain, Mapping):
        raise GCBError(f"{where or 'the configuration'} is {plain!r}; accepted: a mapping of {_names(kind)}.")
    hints = {**get_type_hints(kind), **(types_of or {})}
    known = [field.name for field in fields(kind) if field.init]  # pyright: ignore[reportArgumentType]
    values = {}
    for name, value in plain.items():
        if name not in known:
            raise GCBError(f"{_join(where, name)} is not a setting{_hint(name, known)}.")
        values[name] = _converted(hints[name], value, _join(where, name))
    try:
        return kind(**values)
    except TypeError as error:
        raise GCBError(f"{where or 'the configuration'} is incomplete: {error}.") from error


def replace_nested(config: Config, changes: Mapping[str, Any], where: str = "") -> Config:
    """The configuration with some fields changed; a mapping changes the fields of a configuration within it."""
    hints = get_type_hints(type(config))
    known = [field.name for field in fields(config)]  # pyright: ignore[reportArgumentType]
    values = {}
    for name, value in changes.items():
        if name not in known:
            raise GCBError(f"{_join(where, name)} is not a setting{_hint(name, known)}.")
        old = getattr(config, name)
        if is_dataclass(old):
            values[name] = replace_nested(old, value, _join(where, name)) if isinstance(value, Mapping) else value
        else:
            values[name] = _converted(hints[name], value, _join(where, name))
    return replace(config, **values)  # pyright: ignore[reportArgumentType]


def differences(there: Any, here: Any, where: str = "") -> list[str]:
    """Where two plain configurations differ, one sentence for each field."""
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        found = []
        for name in dict.fromkeys([*there, *here]):
            found += differences(there.get(name), here.get(name), _join(where, str(name)))
        return found
    return [] if there == here else [f"{where} is {there!r} there and {here!r} here"]


def _converted(hint: Any, value: Any, where: str) -> Any:
    """The value as its type wants it. A whole number is a number; nothing else is converted."""
    origin, inside = get_origin(hint), get_args(hint)
    if is_dataclass(hint):
        return from_dict(hint, value, where)  # pyright: ignore[reportArgumentType]
    if hint is float and isinstance(value, str):
        value = _number(value)
    if origin in (Union, types.UnionType):
        for choice in inside:
            try:
                return _converted(choice, value, where)
            except GCBError:
                continue
    elif origin is Literal and any(value == choice and type(value) is type(choice) for choice in inside):
        return value
    elif origin is tuple and isinstance(value, list | tuple):
        entries = list(_entries(inside, value, where))
        return tuple(_converted(entry, one, f"{where}[{index}]") for index, (entry, one) in enumerate(entries))
    elif hint is float and isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value):
        return float(value)
    elif hint in (int, bool, str, types.NoneType) and type(value) is hint:
        return value
    raise GCBError(f"{where} is {value!r}; accepted: {_describe(hint)}.")


def _number(text: str) -> float | str:
    """What YAML 1.1 takes for text, a scientist takes for a number: 1e-4."""
    try:
        return float(text)
    except ValueError:
        return text


def _entries(inside: tuple[Any, ...], value: list | tuple, where: str) -> Iterator[tuple[Any, Any]]:
    if len(inside) == 2 and inside[1] is Ellipsis:
        return ((inside[0], one) for one in value)
    if len(inside) != len(value):
        raise GCBError(f"{where} has {len(value)} entries; accepted: {len(inside)}.")
    return iter(zip(inside, value, strict=True))


def _describe(hint: Any) -> str:
    """A type in words."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_describe(choice) for choice in inside)
    if origin is Literal:
        return ", ".join(map(repr, inside))
    if origin is tuple:
        return "a list"
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text", types.NoneType: "null"}
    return words.get(hint, f"a mapping of {_names(hint)}" if is_dataclass(hint) else str(hint))


def _names(kind: Any) -> str:
    return ", ".join(field.name for field in fields(kind))


def _join(where: str, name: str) -> str:
    return f"{where}.{name}" if where else str(name)


def _hint(name: Any, known: list[str]) -> str:
    close = get_close_matches(str(name), known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"
