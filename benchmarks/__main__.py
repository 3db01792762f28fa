"""Run all groups of benchmarks, or those named on the command line; exit with code 1 if a limit is exceeded."""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.rows import Row

GROUPS = ("envs", "goals", "sampler", "training", "methods", "theory", "analysis", "explorer")
LOG_WIDTH = 140


def _groups() -> dict[str, Callable[[], Sequence[Row]]]:
    """Return the `run` function of each group; its module is imported when it is called."""

    def load(name: str) -> Callable[[], Sequence[Row]]:
        return lambda: importlib.import_module(f"benchmarks.{name}").run()

    return {name: load(name) for name in GROUPS}


def main(arguments: Sequence[str], groups: Mapping[str, Callable[[], Sequence[Row]]] | None = None) -> int:
    """Print the measurements of the groups and return the exit code."""
    groups = _groups() if groups is None else groups
    if unknown := [name for name in arguments if name not in groups]:
        print(f"benchmarks: unknown group {unknown[0]!r}; accepted: {', '.join(groups)}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for name in arguments or groups:
        print(f"measuring: {name}", file=sys.stderr)
        rows += groups[name]()
    Console(width=None if sys.stdout.isatty() else LOG_WIDTH).print(_table(rows))
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
