"""Read and write results.csv: one row for each run, evaluation mode and task.

This module does not import torch, so `gcb table` starts at once.
"""

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from gcb.errors import GCBError
from gcb.utils.files import explain_os_errors, write_atomically
from gcb.utils.statistics import Rate

ALL = "all"
"""The task name of rows that cover all tasks."""


@dataclass(frozen=True, order=True)
class Row:
    """The result of one run in one mode on one task.

    A mode that the method does not support has 0 episodes; tables show it as NA.
    """

    env: str
    video: bool
    """Whether there are video distractors."""
    method: str
    variant: str
    seed: int
    mode: str
    task: str
    episodes: int
    successes: int
    """At any step."""
    successes_at_end: int
    steps: int
    """Training steps."""
    train_seconds: float
    dataset_hash: str
    """First digits of the dataset's fingerprint."""
    gcb_version: str
    """Version of gcb that evaluated the run."""
    config_hash: str
    """First digits of a hash of the configuration without the seed."""
    eval_seed: int
    """Seed of the evaluation episodes."""
    eval_temperature: float
    """Factor on the policy's standard deviation when actions are sampled."""

    def rate(self, *, at_end: bool = False) -> Rate:
        """Return the success rate at any step, or at the end of the episode."""
        return Rate(self.successes_at_end if at_end else self.successes, self.episodes)


RATES = ("rate", "low", "high", "rate_at_end", "low_at_end", "high_at_end")
"""Columns computed from the others, for readers of the file; `read_rows` ignores them."""
COLUMNS = [field.name for field in fields(Row)]


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write rows as CSV, sorted, so that equal results give equal bytes."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*COLUMNS, *RATES])
    for row in sorted(rows):
        values = [str(value).lower() if isinstance(value, bool) else value for value in astuple(row)]
        writer.writerow([*values, *_rates(row)])
    with explain_os_errors(path):
        write_atomically(path, text.getvalue().encode())


def read_rows(paths: Sequence[str | os.PathLike[str]]) -> list[Row]:
    """Read the rows of several files, sorted and without duplicates; raise an error if two files disagree on a row."""
    rows: dict[tuple[Any, ...], Row] = {}
    for path in paths:
        for row in _read_file(Path(path)):
            key = astuple(row)[:7]
            if rows.setdefault(key, row) != row:
                raise GCBError(f"{path} has a different result than an earlier file for {' '.join(map(str, key))}.")
    return sorted(rows.values())


def _rates(row: Row) -> list[str]:
    texts = []
    for at_end in (False, True):
        rate = row.rate(at_end=at_end)
        texts += [f"{number:.4f}" if row.episodes else "NA" for number in (rate.value, *rate.interval)]
    return texts


def _read_file(path: Path) -> list[Row]:
    try:
        with open(path, newline="", encoding="utf-8") as handle:
            reader = csv.DictReader(handle)
            if missing := [name for name in COLUMNS if name not in (reader.fieldnames or ())]:
                raise GCBError(f"{path} has no column {missing[0]!r}; accepted: a results.csv written by `gcb sweep`.")
            return [_row(entry, f"{path}, line {reader.line_num}") for entry in reader]
    except OSError as error:
        raise GCBError(f"{path} could not be read: {error.strerror}.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise GCBError(f"{path} is not a CSV file: {error}.") from error


def _row(entry: Mapping[str, Any], where: str) -> Row:
    values = {field.name: _value(field.type, entry[field.name], f"{where}: {field.name}") for field in fields(Row)}
    row = Row(**values)
    for name in ("successes", "successes_at_end"):
        if not 0 <= getattr(row, name) <= row.episodes:
            raise GCBError(
                f"{where}: {name} is {getattr(row, name)}; accepted: 0 to {row.episodes}, the number of episodes."
            )
    return row


def _value(kind: Any, text: str | None, where: str) -> Any:
    try:
        if text is None:
            raise ValueError("the line is too short")
        return {"true": True, "false": False}[text] if kind is bool else kind(text)
    except (KeyError, ValueError) as error:
        raise GCBError(f"{where} is {text!r}; accepted: {kind.__name__}.") from error
