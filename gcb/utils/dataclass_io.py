"""Frozen dataclasses as configurations: check, change and compare them; convert them to plain values and back.

Reading is strict: an unknown name, a value of the wrong type and a number out of range are errors that name it.
Types are checked by `convert`, ranges by `check_interval`, for configurations, JSON files and the command line alike.
"""

import math
import numbers
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from gcb.errors import MAX_VALUE, GCBError, short, suggestion

Config = TypeVar("Config")
SEED = f"[0, {2**32 - 1}]"
"""The interval of every random seed."""
EPISODES = "[1, 1000000]"
"""The interval of a number of episodes to play."""
NONE_WORDS = ("none", "None", "null")
"""How a user may write None; messages and help texts use the first."""


def check_fields(config: Any, prefix: str = "", **intervals: str) -> None:
    """Raise `GCBError` if a field lies outside its interval: check_fields(self, steps="[1, inf)", tau="(0, 1]").

    None passes: whether a field may be None is a matter of its type.
    """
    for name, interval in intervals.items():
        check_interval(prefix + name, getattr(config, name), interval)


def check_interval(name: str, value: float | None, interval: str) -> None:
    """Raise `GCBError` if a number lies outside an interval such as "(0, 1]" or "[1, inf)"; None passes."""
    if value is None:
        return
    low, high = (float(bound) for bound in interval[1:-1].split(","))
    if isinstance(value, numbers.Real) and (
        low < value < high or (value == low and "[" in interval) or (value == high and "]" in interval)
    ):
        return
    accepted = f"in {interval}"
    if -low == high == math.inf:
        accepted = "finite"
    elif high == math.inf:
        accepted = f"{'at least' if '[' in interval else 'above'} {low:g}{' and finite' if value == high else ''}"
    raise GCBError(f"{name} is {short(value)}; it must be {accepted}.")


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
        raise GCBError(f"{name or 'the configuration'} is {short(values)}; accepted: {_describe(cls)}.")
    hints = {**get_type_hints(cls), **(types_of or {})}
    known = [field.name for field in fields(cls) if field.init]  # pyright: ignore[reportArgumentType]
    converted = {}
    for key, value in values.items():
        _check_known(key, known, name)
        converted[key] = convert(hints[key], value, _join(name, key))
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
            converted[key] = convert(hints[key], value, _join(name, key))
        elif isinstance(value, Mapping):
            converted[key] = replace_nested(old, value, _join(name, key))
        else:
            converted[key] = convert(type(old), value, _join(name, key))
    return replace(config, **converted)  # pyright: ignore[reportArgumentType]


class Difference(NamedTuple):
    """A field in which two configurations differ."""

    name: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.name} is {short(self.old)}, not {short(self.new)}"


def differences(old: Any, new: Any, name: str = "") -> list[Difference]:
    """Return where two configurations, as `to_dict` gives them, differ."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = dict.fromkeys([*old, *new])
        return [found for key in keys for found in differences(old.get(key), new.get(key), _join(name, key))]
    return [] if old == new else [Difference(name, old, new)]


def check_entries(values: Any, types_of: Mapping[str, Any], name: str = "") -> None:
    """Raise `GCBError` unless `values` is a mapping whose entries with these names, if any, have these types."""
    if not isinstance(values, Mapping):
        raise GCBError(f"{name or 'the content'} is {short(values)}; accepted: a mapping.")
    for key, hint in types_of.items():
        if key in values:
            convert(hint, values[key], _join(name, key))


def convert(hint: Any, value: Any, name: str) -> Any:
    """Return a value converted to a type: integers become floats and lists become tuples, the rest must match."""
    origin, choices = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if is_dataclass(hint):
        return value if isinstance(value, hint) else from_dict(hint, value, name)  # pyright: ignore[reportArgumentType]
    if hint is float and isinstance(value, str):
        value = _number(value)
    if origin in (Union, types.UnionType):
        for choice in choices:
            try:
                return convert(choice, value, name)
            except GCBError:
                continue
    elif origin is Literal and any(value == choice and type(value) is type(choice) for choice in choices):
        return value
    elif origin is tuple and isinstance(value, list | tuple):
        return _convert_tuple(choices, value, name)
    elif hint is float and isinstance(value, int | float) and not isinstance(value, bool) and _is_number(value):
        return float(value)
    elif origin is dict and isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: convert(choices[1], entry, _join(name, key)) for key, entry in value.items()}
    elif hint is types.NoneType and value in NONE_WORDS:
        return None
    elif hint in (int, bool, str, dict, types.NoneType) and type(value) is hint:
        return value
    raise GCBError(f"{name} is {short(value)}; accepted: {_describe(hint)}.")


def _is_number(value: float) -> bool:
    """Return whether a number is not NaN and fits into a float."""
    try:
        return not math.isnan(float(value))
    except OverflowError:
        return False


def _number(text: str) -> float | str:
    """Return the number that a text spells, else the text: YAML 1.1 reads 1e-4 as text."""
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
    return tuple(convert(hint, value, f"{name}[{index}]") for index, (hint, value) in enumerate(pairs))


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
    words = {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "text",
        types.NoneType: NONE_WORDS[0],
    }
    return words.get(hint, str(hint))


def _required(cls: Any) -> list[Field]:
    return [field for field in fields(cls) if field.init and field.default is field.default_factory is MISSING]


def _join(name: str, key: Any) -> str:
    return f"{name}.{key}" if name else str(key)


def _check_known(key: Any, known: list[str], name: str) -> None:
    if key not in known:
        key = key if isinstance(key, str) and len(key) <= MAX_VALUE else short(key)
        raise GCBError(f"{_join(name, key)} is not a setting; {suggestion(key, known)}")
