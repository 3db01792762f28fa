"""Rules for the arguments of all commands: how None is written, and which numbers and paths are accepted."""

from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from gcb.utils.dataclass_io import NONE_WORDS, check_interval
from gcb.utils.os_errors import check_path

REGISTRY = ConstructorRegistry()
"""How tyro reads values, where it differs from tyro's own rules."""


@REGISTRY.primitive_rule
def _none(type_info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec | None:
    if type_info.type is not NoneType:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=NONE_WORDS[0],
        choices=NONE_WORDS,
        instance_from_str=lambda words: None,
        is_instance=lambda value: value is None,
        str_from_instance=lambda value: [NONE_WORDS[0]],
    )


@dataclass(frozen=True)
class Within:
    """Marks the type of an option whose value must lie in an interval: Annotated[int, Within("[1, 100]")]."""

    interval: str


def check_arguments(command: Any) -> None:
    """Raise `GCBError` if a path of a command cannot exist, or a number marked by `Within` is out of its interval."""
    hints = get_type_hints(type(command), include_extras=True)
    for field in fields(command):
        value = getattr(command, field.name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Path):
                check_path(field.name, part)
        for interval in _intervals(hints[field.name]):
            check_interval(field.name, getattr(command, field.name), interval)
        if is_dataclass(value):
            check_arguments(value)


def _intervals(hint: Any) -> list[str]:
    """Return the intervals that a type is marked with, also inside `X | None`."""
    marked = [mark.interval for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Within)]
    inner = get_args(hint)[:1] if get_origin(hint) is Annotated else get_args(hint)
    return marked + [interval for part in inner if not isinstance(part, Within) for interval in _intervals(part)]
