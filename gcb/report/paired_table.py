"""Tables of paired differences: text for the terminal and the report, Markdown and CSV. Does not import torch."""

import csv
import io
from collections.abc import Sequence
from typing import Any

from gcb.report.paired import Comparison, PairedRow
from gcb.report.table import MODE_NAMES, markdown_line, method_name, span
from gcb.utils.statistics import CRITERIA

DIFFERENCE = "difference [interval]"
"""The heading of the differences."""


def table_headings(comparison: Comparison) -> tuple[str, ...]:
    """Return the headings of `table_rows`."""
    name = comparison.reference
    columns = ("environment", "task given by", "method", "success", f"success of {name}", DIFFERENCE)
    return *columns, "seeds × episodes", f"result for {name}"


def table_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """Return the rows as text."""
    return [
        (
            _env_text(row, comparison.rows),
            MODE_NAMES[row.mode],
            method_name(row.method, row.variant),
            f"{row.success:.3f}",
            f"{row.reference_success:.3f}",
            f"{_signed(row.difference.value)} [{', '.join(map(_signed, row.difference.interval))}]",
            f"{_seeds_text(row)} × {row.difference.samples:,}",
            row.result,
        )
        for row in comparison.rows
    ]


def caption(comparison: Comparison) -> list[str]:
    """Return paragraphs that explain the numbers, so that the table can be read on its own."""
    name, rows = comparison.reference, comparison.rows
    what = (
        f"Success {CRITERIA[comparison.criterion]}, and the success of {name} minus that of the method in the same "
        "episodes: environment, evaluation seed and evaluation temperature are the same. In every episode success is "
        "averaged over training seeds first; the numbers of seeds may differ, and then the method's is given first."
    )
    if comparison.criterion == "declared":
        what += " If the agent never declares the task done, it is judged at the end of the episode."
    interval = (
        "In brackets the 95 % interval of the difference over episodes (normal approximation, too narrow if only a few "
        "episodes differ): the uncertainty about other episodes with these particular agents. It does not cover the "
        f"variation between training seeds. {name} is ahead or behind where the interval excludes 0; by chance alone "
        "that happens in about one of twenty comparisons of equals."
    )
    seeds = span({row.evaluation.seed for row in rows})
    temperatures = ", ".join(f"{number:g}" for number in sorted({row.evaluation.eval_temperature for row in rows}))
    steps = span(set().union(*(row.steps for row in rows)) or {0})
    versions = ", ".join(sorted(set().union(*(row.gcb_versions for row in rows))))
    evaluation = f"Evaluation seed: {seeds}; evaluation temperature: {temperatures}"
    return [what, interval, f"{evaluation}; training steps: {steps}; gcb {versions}."]


def markdown(comparison: Comparison, command: str) -> str:
    """Return the table in Markdown, with its caption, its notes and the command that made it."""
    headings = table_headings(comparison)
    lines = [headings, ["---"] * len(headings), *table_rows(comparison)]
    notes = [f"- {note}" for note in comparison.notes]
    paragraphs = [*caption(comparison), *(["\n".join(notes)] if notes else []), f"Made by `{command}`."]
    return "\n\n".join(["\n".join(map(markdown_line, lines)), *paragraphs]) + "\n"


def csv_text(comparison: Comparison) -> str:
    """Return the rows as CSV; `low` and `high` are the ends of the difference's interval."""
    rows = [_csv_row(comparison, row) for row in comparison.rows]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _csv_row(comparison: Comparison, row: PairedRow) -> dict[str, Any]:
    low, high = row.difference.interval
    return {
        "env": row.evaluation.env,
        "video": str(row.evaluation.video).lower(),
        "trained_on": row.trained_on,
        "mode": row.mode,
        "method": row.method,
        "variant": row.variant,
        "reference": comparison.reference,
        "criterion": comparison.criterion,
        "success": _number(row.success, 4),
        "reference_success": _number(row.reference_success, 4),
        "difference": _number(row.difference.value, 4),
        "low": _number(low, 4),
        "high": _number(high, 4),
        "result": row.result,
        "seeds": row.seeds,
        "reference_seeds": row.reference_seeds,
        "episodes": row.difference.samples,
        "eval_seed": row.evaluation.seed,
        "eval_temperature": row.evaluation.eval_temperature,
    }


def _env_text(row: PairedRow, rows: Sequence[PairedRow]) -> str:
    """Return the environment, with the rest of the evaluation if there are several of the environment and mode."""
    place = row.env_title, row.mode
    evaluations = {other.evaluation for other in rows if (other.env_title, other.mode) == place}
    return row.env_title if len(evaluations) == 1 else f"{row.env_title} ({row.evaluation})"


def _seeds_text(row: PairedRow) -> str:
    return str(row.seeds) if row.seeds == row.reference_seeds else f"{row.seeds} and {row.reference_seeds}"


def _number(number: float, digits: int, sign: str = "") -> str:
    return f"{round(number, digits) + 0.0:{sign}.{digits}f}"  # the sum with 0 turns -0 into 0


def _signed(number: float) -> str:
    return _number(number, 3, "+")
