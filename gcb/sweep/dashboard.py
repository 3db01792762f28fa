"""Show the progress of a sweep: a live table on a terminal, lines elsewhere."""

import math
import time
from collections.abc import Mapping, Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table

LINES_EVERY = 60.0
TABLE_EVERY = 2.0


class Dashboard:
    """A log of events, with the running jobs below it."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        self._shown = time.monotonic() if self._live is None else -math.inf

    def __enter__(self) -> "Dashboard":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def log(self, line: str) -> None:
        """Print a line with the time."""
        self.console.print(f"{time.strftime('%H:%M:%S')} {escape(line)}", highlight=False, soft_wrap=True)

    def is_due(self) -> bool:
        """Return whether it is time for `show`: every 2 seconds on a terminal, every minute elsewhere."""
        return time.monotonic() - self._shown >= (LINES_EVERY if self._live is None else TABLE_EVERY)

    def show(self, summary: str, running: Sequence[tuple[str, str, str]], failures: Mapping[str, str]) -> None:
        """Show the running jobs as (name, time, last line of the log), and the reasons of failures by name."""
        self._shown = time.monotonic()
        if self._live is None:
            self.log(summary)
            for name, _, line in running:
                self.log(f"  {name}: {line}")
            return
        table = Table(title=summary, title_justify="left", expand=True)
        table.add_column("running", no_wrap=True)
        table.add_column("time", justify="right")
        table.add_column("last line of the log", no_wrap=True, overflow="ellipsis", ratio=1)
        for name, seconds, line in running:
            table.add_row(escape(name), seconds, escape(" ".join(line.split())))
        lines = [f"[red]{escape(name)} failed: {escape(reason)}" for name, reason in failures.items()]
        self._live.update(Group(table, *lines), refresh=True)
