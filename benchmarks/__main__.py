"""Measure every group, or those named on the command line; exit code 1 when a limit is broken."""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.rows import Row

GROUPS = ("envs", "goals", "sampler", "training", "methods", "theory", "analysis", "explorer")
WIDTH_OF_LOGS = 140


def _groups() -> dict[str, Callable[[], Sequence[Row]]]:
    """The groups that are there, each by the `run` of its module, which is imported when it is needed."""

    def load(name: str) -> Callable[[], Sequence[Row]]:
        return lambda: importlib.import_module(f"benchmarks.{name}").run()

    return {name: load(name) for name in GROUPS if importlib.util.find_spec(f"benchmarks.{name}")}


def main(arguments: Sequence[str], groups: Mapping[str, Callable[[], Sequence[Row]]] | None = None) -> int:
    groups = _groups() if groups is None else groups
    unknown = [name for name in arguments if name not in groups]
    if unknown:
        print(f"benchmarks: there is no group {unknown[0]!r}; there are {', '.join(groups)}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for name in arguments or groups:
        print(f"measuring: {name}", file=sys.stderr)
        rows += groups[name]()
    Console(width=None if sys.stdout.isatty() else WIDTH_OF_LOGS).print(_table(rows))
    return 0 if all(row.ok for row in rows) else 1


def _table(rows: Sequence[Row]) -> Table:
    table = Table("measurement", "value", "limit", "", "remark")
    for column in (1, 2):
        table.columns[column].justify = "right"
        table.columns[column].no_wrap = True
    for row in rows:
        verdict = "" if row.limit is None else "[green]ok" if row.ok else "[bold red]FAIL"
        table.add_row(row.name, f"{row.value:,.4g}", row.bound, verdict, row.text)
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
