"""Read untrusted JSON and YAML: plain values only, of bounded size."""

import json
import math
import os
from typing import Any

import yaml

from gcb.errors import GCBError, short
from gcb.utils.os_errors import read_bytes

MAX_JSON_BYTES, MAX_YAML_BYTES = 1 << 28, 1 << 20
MAX_YAML_NODES, MAX_DEPTH = 20_000, 50
"""Values in a YAML file with every alias written out, and levels of nesting."""


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file."""
    content = read_bytes(path, MAX_JSON_BYTES)
    try:
        return parse_json(content)
    except (ValueError, RecursionError) as error:
        raise GCBError(f"{path} is not readable JSON ({error})") from error


def parse_json(text: str | bytes) -> Any:
    """Parse JSON, strictly: NaN, Infinity and 1e999, which Python would accept, raise a ValueError."""
    return json.loads(text, parse_constant=_finite, parse_float=_finite)


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{short(text)} is not a finite number")
    return value


def read_yaml(path: str | os.PathLike[str]) -> Any:
    """Read the plain values of a YAML file; tags that would execute code are refused."""
    return parse_yaml(read_bytes(path, MAX_YAML_BYTES), str(path))


def parse_yaml(text: str | bytes, name: str) -> Any:
    """Parse the plain values of a YAML text; `name` is its name in messages.

    The values are counted, with every alias written out, before any of them is built: a few lines of nested aliases
    can expand to billions of values.
    """
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        if _size(node, {}, 0) > MAX_YAML_NODES:
            raise GCBError(f"{name} has more than {MAX_YAML_NODES:,} values, with its aliases written out")
        return loader.construct_document(node)
    except GCBError:
        raise
    except Exception as error:  # PyYAML raises more than its own errors: KeyError for `!!bool x`
        raise GCBError(f"{name} is not plain YAML: {' '.join(str(error).split())}") from error


def _size(node: yaml.Node, known: dict[int, int], depth: int) -> int:
    """Return the number of values in a node, each alias counted in full."""
    if depth > MAX_DEPTH:
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in known:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [part for pair in node.value for part in pair]
        known[id(node)] = 1 + sum(_size(part, known, depth + 1) for part in parts)
    return known[id(node)]
