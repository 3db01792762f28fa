"""Frozen dataclasses as configurations: check, change and compare them; convert them to plain values and back.

Reading is strict: an unknown name, a value of the wrong type and a number out of range are errors that name it.
"""

import math
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from gcb.errors import GCBError, suggestion

Config = TypeVar("Config")


def check_fields(config: Any, prefix: str = "", **intervals: str) -> None:
    """Raise `GCBError` if a field lies outside its interval: check_fields(self, steps="[1, inf)", tau="(0, 1]").

    None passes: whether a field may be None is a matter of its type.
    """
    for name, interval in intervals.items():
        check_interval(prefix + name, getattr(config, name), interval)


def check_interval(name: str, value: float | None, interval: str) -> None:
    """Raise `GCBError` if a number lies outside an interval such as "(0, 1]" or "[1, inf)"; None passes."""
    low, high = (float(bound) for bound in interval[1:-1].split(","))
    if value is None or low < value < high or (value == low and "[" in interval) or (value == high and "]" in interval):
        return
    accepted = f"in {interval}"
    if high == math.inf:
        accepted = f"{'at least' if '[' in interval else 'above'} {low:g}{' and finite' if value == high else ''}"
    raise GCBError(f"{name} is {value!r}; it must be {accepted}.")


def to_dict(value: Any) -> Any:
    """Return a configuration as the mappings, lists, strings, numbers and None that YAML and JSON can hold."""
    if is_dataclass(value):
        return {field.name: to_dict(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: to_dict(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [to_dict(entry) for entry in value]
    return str(value) if isinstance(value, Path) else value


def from_dict(cls: type[Config], values: Any, name: str = "", types_of: Mapping[str, Any] | None = None) -> Config:
    """Return the instance of `cls` that `to_dict` converted to `values`; missing fields keep their defaults.

    `name` is prepended to the fields in messages. `types_of` gives the types of fields whose annotation does not.
    """
    if not isinstance(values, Mapping):
        raise GCBError(f"{name or 'the configuration'} is {values!r}; accepted: {_describe(cls)}.")
    hints = {**get_type_hints(cls), **(types_of or {})}
    known = [field.name for field in fields(cls) if field.init]  # pyright: ignore[reportArgumentType]
    converted = {}
    for key, value in values.items():
        _check_known(key, known, name)
        converted[key] = _convert(hints[key], value, _join(name, key))
    if missing := [field.name for field in _required(cls) if field.name not in converted]:
        raise GCBError(f"{_join(name, missing[0])} is missing.")
    return cls(**converted)


def replace_nested(config: Config, changes: Mapping[str, Any], name: str = "") -> Config:
    """Return the configuration with some fields changed; a mapping changes fields of a nested configuration."""
    hints = get_type_hints(type(config))
    known = [field.name for field in fields(config)]  # pyright: ignore[reportArgumentType]
    converted = {}
    for key, value in changes.items():
        _check_known(key, known, name)
        old = getattr(config, key)
        if not is_dataclass(old):
            converted[key] = _convert(hints[key], value, _join(name, key))
        else:
            converted[key] = replace_nested(old, value, _join(name, key)) if isinstance(value, Mapping) else value
    return replace(config, **converted)  # pyright: ignore[reportArgumentType]


class Difference(NamedTuple):
    """A field in which two configurations differ."""

    name: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.name} is {self.old!r}, not {self.new!r}"


def differences(old: Any, new: Any, name: str = "") -> list[Difference]:
    """Return where two configurations, as `to_dict` gives them, differ."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = dict.fromkeys([*old, *new])
        return [found for key in keys for found in differences(old.get(key), new.get(key), _join(name, key))]
    return [] if old == new else [Difference(name, old, new)]


def _convert(hint: Any, value: Any, name: str) -> Any:
    """Return the value as its type wants it: integers become floats and lists tuples; nothing else is converted."""
    origin, choices = get_origin(hint), get_args(hint)
    if is_dataclass(hint):
        return from_dict(hint, value, name)  # pyright: ignore[reportArgumentType]
    if hint is float and isinstance(value, str):
        value = _number(value)
    if origin in (Union, types.UnionType):
        for choice in choices:
            try:
                return _convert(choice, value, name)
            except GCBError:
                continue
    elif origin is Literal and any(value == choice and type(value) is type(choice) for choice in choices):
        return value
    elif origin is tuple and isinstance(value, list | tuple):
        return _convert_tuple(choices, value, name)
    elif hint is float and isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value):
        return float(value)
    elif (origin or hint) in (int, bool, str, dict, types.NoneType) and type(value) is (origin or hint):
        return value
    raise GCBError(f"{name} is {value!r}; accepted: {_describe(hint)}.")


def _number(text: str) -> float | str:
    """Return the number that a text spells, if any: YAML 1.1 takes 1e-4 for text."""
    try:
        return float(text)
    except ValueError:
        return text


def _convert_tuple(hints: tuple[Any, ...], values: Sequence[Any], name: str) -> tuple[Any, ...]:
    if len(hints) == 2 and hints[1] is Ellipsis:
        hints = hints[:1] * len(values)
    if len(hints) != len(values):
        raise GCBError(f"{name} has {len(values)} entries; accepted: {len(hints)}.")
    pairs = zip(hints, values, strict=True)
    return tuple(_convert(hint, value, f"{name}[{index}]") for index, (hint, value) in enumerate(pairs))


def _describe(hint: Any) -> str:
    """Return a type in words."""
    origin, choices = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(map(_describe, choices))
    if origin is Literal:
        return ", ".join(map(repr, choices))
    if origin in (tuple, dict):
        return "a list" if origin is tuple else "a mapping"
    if is_dataclass(hint):
        return f"a mapping of {', '.join(field.name for field in fields(hint))}"
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text", types.NoneType: "null"}
    return words.get(hint, str(hint))


def _required(cls: Any) -> list[Field]:
    return [field for field in fields(cls) if field.init and field.default is field.default_factory is MISSING]


def _join(name: str, key: Any) -> str:
    return f"{name}.{key}" if name else str(key)


def _check_known(key: Any, known: list[str], name: str) -> None:
    if key not in known:
        raise GCBError(f"{_join(name, key)} is not a setting; {suggestion(str(key), known)}")
