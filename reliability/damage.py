"""Ways in which files get damaged."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

TEXT = (".json", ".jsonl", ".yaml", ".csv", ".png")
"""Files without a hash: a value that became another valid value goes unnoticed."""


def some(folder: Path, rng: np.random.Generator) -> tuple[str, bool]:
    """Damage one random file in a random way; return what was done, and whether other results may come of it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = files[rng.integers(len(files))]
    way = WAYS[rng.integers(len(WAYS))]
    way(path, files, rng)
    return f"{way.__name__.strip('_').replace('_', ' ')} in {path.relative_to(folder)}", path.suffix in TEXT


def _a_flipped_bit(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    content = bytearray(path.read_bytes())
    if content:
        content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    path.write_bytes(bytes(content))


def _another_digit(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    """The hardest to find: a number becomes another number."""
    content = bytearray(path.read_bytes())
    digits = [place for place, byte in enumerate(content[:100_000]) if chr(byte).isdigit() and byte < 128]
    if digits:
        place = digits[rng.integers(len(digits))]
        content[place] = ord("0") + (content[place] - ord("0") + 1 + int(rng.integers(9))) % 10
    path.write_bytes(bytes(content))


def _a_cut(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    os.truncate(path, int(rng.integers(path.stat().st_size + 1)))


def _nothing_left(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    path.write_bytes(b"")


def _no_file(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    path.unlink()


def _garbage(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    path.write_bytes(rng.bytes(path.stat().st_size))


def _zeros(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    """As a power cut leaves pages that never reached the disk."""
    size = path.stat().st_size
    begin = int(rng.integers(size + 1))
    path.write_bytes(path.read_bytes()[:begin] + bytes(size - begin))


def _more_than_there_was(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    path.write_bytes(path.read_bytes() + rng.bytes(40))


def _another_file(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    """Two files have changed places."""
    other = files[rng.integers(len(files))]
    mine, theirs = path.read_bytes(), other.read_bytes()
    path.write_bytes(theirs)
    other.write_bytes(mine)


def _a_folder(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    path.unlink()
    path.mkdir()


WAYS: tuple[Callable[[Path, list[Path], np.random.Generator], None], ...] = (
    *(_a_flipped_bit, _a_flipped_bit, _another_digit, _another_digit, _a_cut, _nothing_left, _no_file, _garbage),
    *(_zeros, _more_than_there_was, _another_file, _a_folder),
)
