"""Read and write results.csv: one row for each run, evaluation mode and task.

This module does not import torch, so `gcb table` starts at once.
"""

import csv
import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from gcb.errors import GCBError
from gcb.utils.files import write_atomically
from gcb.utils.os_errors import explain_os_errors
from gcb.utils.statistics import CRITERIA, Criterion, Rate

ALL = "all"
"""The task name of rows that cover all tasks."""


@dataclass(frozen=True)
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
    successes_declared: int | None
    """When declared done; None in older results, which lack it."""
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

    @property
    def key(self) -> tuple[Any, ...]:
        """What distinguishes a row from the others: everything up to the task."""
        return self.env, self.video, self.method, self.variant, self.seed, self.mode, self.task

    def rate(self, criterion: Criterion = "any_step") -> Rate | None:
        """Return the success rate by a criterion; None if the results lack it."""
        successes = getattr(self, SUCCESSES[criterion])
        return None if successes is None else Rate(successes, self.episodes)


NA = "NA"
SUCCESSES: dict[Criterion, str] = {
    "any_step": "successes",
    "at_end": "successes_at_end",
    "declared": "successes_declared",
}
"""The column with the number of successes by each criterion."""
RATES = tuple(
    SUCCESSES[criterion].replace("successes", name) for criterion in CRITERIA for name in ("rate", "low", "high")
)
"""Columns computed from the others, for readers of the file; `read_rows` ignores them."""
COLUMNS = [field.name for field in fields(Row)]
OPTIONAL_COLUMNS = ("successes_declared",)
"""Columns that a file may lack."""


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write rows as CSV, sorted, so that equal results give equal bytes."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*COLUMNS, *RATES])
    for row in sorted(rows, key=lambda row: row.key):
        writer.writerow([*map(_text, astuple(row)), *_rates(row)])
    with explain_os_errors(path):
        write_atomically(path, text.getvalue().encode())


def read_rows(paths: Sequence[str | os.PathLike[str]]) -> list[Row]:
    """Read the rows of several files, sorted and without duplicates; raise an error if two files disagree on a row."""
    rows: dict[tuple[Any, ...], Row] = {}
    for path in paths:
        for row in _read_file(Path(path)):
            if rows.setdefault(row.key, row) != row:
                raise GCBError(f"{path} has a different result than an earlier file for {' '.join(map(str, row.key))}.")
    return [rows[key] for key in sorted(rows)]


def parse_run_name(name: str, method: str, seed: int) -> tuple[str, bool, str] | None:
    """Return env, video and variant of a run in a sweep: <env>[_video]-<method>[-<variant>]-s<seed>.

    None if the name is another one.
    """
    parts = re.fullmatch(rf"([^-]+?)(_video)?-{re.escape(method)}(?:-(.+))?-s{seed}", name)
    return None if parts is None else (parts[1], parts[2] is not None, parts[3] or "")


def _text(value: Any) -> str:
    if value is None:
        return NA
    return str(value).lower() if isinstance(value, bool) else str(value)


def _rates(row: Row) -> list[str]:
    """Return the rate by each criterion with the ends of its interval."""
    texts = []
    for criterion in CRITERIA:
        rate = row.rate(criterion)
        numbers = (rate.value, *rate.interval) if rate and rate.trials else ()
        texts += [f"{number:.4f}" for number in numbers] or [NA] * 3
    return texts


def _read_file(path: Path) -> list[Row]:
    try:
        with open(path, newline="", encoding="utf-8") as handle:
            reader = csv.DictReader(handle)
            required = (name for name in COLUMNS if name not in OPTIONAL_COLUMNS)
            if missing := [name for name in required if name not in (reader.fieldnames or ())]:
                raise GCBError(f"{path} has no column {missing[0]!r}; accepted: a results.csv written by `gcb sweep`.")
            return [_row(entry, f"{path}, line {reader.line_num}") for entry in reader]
    except OSError as error:
        raise GCBError(f"{path} could not be read: {error.strerror}.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise GCBError(f"{path} is not a CSV file: {error}.") from error


def _row(entry: Mapping[str, Any], where: str) -> Row:
    entry = {**dict.fromkeys(OPTIONAL_COLUMNS, NA), **entry}
    values = {field.name: _value(field.type, entry[field.name], f"{where}: {field.name}") for field in fields(Row)}
    row = Row(**values)
    for name in SUCCESSES.values():
        count = getattr(row, name)
        if count is not None and not 0 <= count <= row.episodes:
            raise GCBError(f"{where}: {name} is {count}; accepted: 0 to {row.episodes}, the number of episodes.")
    return row


def _value(kind: Any, text: str | None, where: str) -> Any:
    if kind == int | None:
        return None if text == NA else _value(int, text, where)
    try:
        if text is None:
            raise ValueError("the line is too short")
        return {"true": True, "false": False}[text] if kind is bool else kind(text)
    except (KeyError, ValueError) as error:
        raise GCBError(f"{where} is {text!r}; accepted: {kind.__name__}.") from error
