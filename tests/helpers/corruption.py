"""Ways in which files are corrupted, chosen at random."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

WITHOUT_HASH = (".json", ".jsonl", ".yaml", ".csv", ".png")
"""Here a value that is replaced by another valid one cannot be detected."""
WRONG_TYPES = (None, True, -1, 1e300, "text", [], {}, [[1]], {"a": 1})

Corrupt = Callable[[Path, list[Path], np.random.Generator], None]


class Corruption(NamedTuple):
    """What was done to which file."""

    path: Path
    function: Corrupt

    def __str__(self) -> str:
        return f"{self.function.__name__} in {self.path.name}"

    @property
    def detectable(self) -> bool:
        """Whether a different result without a message is an error."""
        if self.path.suffix not in WITHOUT_HASH:
            return True
        if self.path.suffix in (".png", ".jsonl"):  # metrics that lost their end look like those of a shorter run
            return False
        return self.function not in (flip_bit, change_digit, *STRUCTURED)


def corrupt_one(directory: Path, rng: np.random.Generator) -> Corruption:
    """Corrupt a random file below a directory in a random way."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    path = files[rng.integers(len(files))]
    function = FUNCTIONS[rng.integers(len(FUNCTIONS))]
    if function in STRUCTURED and path.suffix not in (".json", ".jsonl", ".yaml"):
        function = write_garbage
    function(path, files, rng)
    return Corruption(path, function)


def flip_bit(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    content = bytearray(path.read_bytes())
    if content:
        content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    path.write_bytes(bytes(content))


def change_digit(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    """Turn a number into another number, the hardest corruption to detect."""
    content = bytearray(path.read_bytes())
    digits = [index for index, byte in enumerate(content[:100_000]) if byte in b"0123456789"]
    if digits:
        index = digits[rng.integers(len(digits))]
        content[index] = ord("0") + (content[index] - ord("0") + 1 + int(rng.integers(9))) % 10
    path.write_bytes(bytes(content))


def truncate(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    os.truncate(path, int(rng.integers(path.stat().st_size + 1)))


def make_empty(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    path.write_bytes(b"")


def delete(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    path.unlink()


def write_garbage(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    path.write_bytes(rng.bytes(path.stat().st_size))


def write_zeros(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    """Replace the end by zeros, as a power cut does with pages that were not written."""
    size = path.stat().st_size
    start = int(rng.integers(size + 1))
    path.write_bytes(path.read_bytes()[:start] + bytes(size - start))


def append_garbage(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    path.write_bytes(path.read_bytes() + rng.bytes(40))


def swap_files(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    other = files[rng.integers(len(files))]
    content, other_content = path.read_bytes(), other.read_bytes()
    path.write_bytes(other_content)
    other.write_bytes(content)


def replace_by_directory(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    path.unlink()
    path.mkdir()


def remove_key(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    _edit(path, rng, lambda container, key: container.pop(key))


def set_wrong_type(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    def change(container: Any, key: Any) -> None:
        values = [value for value in WRONG_TYPES if type(value) is not type(container[key])]
        container[key] = values[rng.integers(len(values))]

    _edit(path, rng, change)


def _edit(path: Path, rng: np.random.Generator, change: Callable[[Any, Any], object]) -> None:
    """Change a random entry of a JSON, JSON Lines or YAML file."""
    text = path.read_text()
    if path.suffix == ".yaml":
        content = yaml.safe_load(text)
    else:
        content = [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)
    entries = list(entries_of(content))
    if entries:
        change(*entries[rng.integers(len(entries))])
    if path.suffix == ".yaml":
        path.write_text(yaml.safe_dump(content))
    else:
        lines = content if path.suffix == ".jsonl" else [content]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def entries_of(value: Any) -> Iterator[tuple[Any, Any]]:
    """Return every entry of nested mappings and lists, as its container and its key or index."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in items:
        yield value, key
        yield from entries_of(entry)


STRUCTURED = (remove_key, set_wrong_type)
FUNCTIONS: tuple[Corrupt, ...] = (
    *(flip_bit, flip_bit, change_digit, change_digit, truncate, make_empty, delete, write_garbage),
    *(write_zeros, append_garbage, swap_files, replace_by_directory, *STRUCTURED, *STRUCTURED),
)
