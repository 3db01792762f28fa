"""One row of results.csv: a run in one mode at one task. No torch here: reading a table takes no time."""

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
"""The task that stands for all of them."""


@dataclass(frozen=True, order=True)
class Row:
    """How one run did. A mode that its method has no answer to has no episodes, and its table says NA."""

    env: str
    video: bool
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
    """Of training."""
    train_seconds: float
    dataset: str
    """The first digits of the dataset's fingerprint."""
    gcb: str
    """Version that evaluated it."""
    config: str
    """The first digits of a hash of all settings but the seed."""
    eval_seed: int
    """Which episodes were played."""
    eval_temperature: float
    """Share of the policy's own spread with which actions were drawn."""

    def rate(self, *, at_end: bool = False) -> Rate:
        return Rate(self.successes_at_end if at_end else self.successes, self.episodes)


RATES = ("rate", "low", "high", "rate_at_end", "low_at_end", "high_at_end")
"""Columns that follow from the others: written for the eye, not read."""
COLUMNS = [field.name for field in fields(Row)]


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write rows as CSV, sorted: equal results give equal bytes."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*COLUMNS, *RATES])
    for row in sorted(rows):
        values = [str(value).lower() if isinstance(value, bool) else value for value in astuple(row)]
        writer.writerow([*values, *_rates(row)])
    with explain_os_errors(path):
        write_atomically(path, text.getvalue().encode())


def read_rows(paths: Sequence[str | os.PathLike[str]]) -> list[Row]:
    """The rows of several files, each once; a row that two files tell differently is an error."""
    found: dict[tuple[Any, ...], Row] = {}
    for path in paths:
        for row in _rows_of(Path(path)):
            key = astuple(row)[:7]
            if found.setdefault(key, row) != row:
                raise GCBError(f"{path} tells another result than a file before it for {' '.join(map(str, key))}.")
    return sorted(found.values())


def _rates(row: Row) -> list[str]:
    texts = []
    for at_end in (False, True):
        rate = row.rate(at_end=at_end)
        numbers = (rate.value, *rate.interval)
        texts += [f"{number:.4f}" if row.episodes else "NA" for number in numbers]
    return texts


def _rows_of(path: Path) -> list[Row]:
    try:
        with open(path, newline="", encoding="utf-8") as handle:
            reader = csv.DictReader(handle)
            if missing := [name for name in COLUMNS if name not in (reader.fieldnames or ())]:
                raise GCBError(f"{path} has no column {missing[0]!r}; accepted: a results.csv that `gcb sweep` wrote.")
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
            raise GCBError(f"{where}: {name} is {getattr(row, name)}; accepted: 0 to {row.episodes}, the episodes.")
    return row


def _value(kind: Any, text: str | None, where: str) -> Any:
    try:
        if text is None:
            raise ValueError("the line is too short")
        return {"true": True, "false": False}[text] if kind is bool else kind(text)
    except (KeyError, ValueError) as error:
        raise GCBError(f"{where} is {text!r}; accepted: {kind.__name__}.") from error
