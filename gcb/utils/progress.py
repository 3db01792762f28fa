"""Progress of long jobs: how much is done, the rate, and the time left."""

import sys
import time
from collections.abc import Callable
from typing import Any, TextIO


class Progress:
    """A progress bar in a terminal; elsewhere (a log file, CI) a line of text every few seconds.

    ```python
    with Progress("collecting", total=50_000, unit="transitions") as bar:
        bar.advance(75, success=0.8)
    ```
    """

    def __init__(
        self,
        label: str,
        total: int,
        unit: str = "steps",
        *,
        start: int = 0,
        quiet: bool = False,
        every: float = 10.0,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`start` is the work done by earlier sessions, which does not count towards the rate."""
        self.label, self.total, self.unit = label, total, unit
        self.start, self.done = start, start
        self.stream = stream if stream is not None else sys.stderr
        self.quiet, self.every = quiet or self.stream is None, every  # Python has no stderr if it was closed
        self.clock = clock
        self.metrics: dict[str, float] = {}
        self._began = self._last_line = clock()
        self._written = -1
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> "Progress":
        self._began = self._last_line = self.clock()
        if not self.quiet and self.stream.isatty():
            self._open_bar()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, status=self.status())
            self._bar.stop()
        elif not self.quiet and self._written != self.done:
            self._write_line()

    def advance(self, count: int = 1, **metrics: float) -> None:
        """Report that `count` more units are done; `metrics` (a loss, a success rate) are shown beside the rate."""
        self.done += count
        self.metrics.update(metrics)
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, status=self.status())
        elif not self.quiet and self.clock() - self._last_line >= self.every:
            self._write_line()

    def status(self) -> str:
        """Return one line with the progress, the rate, the time left (or taken, at the end) and the latest metrics."""
        elapsed = self.clock() - self._began
        rate = (self.done - self.start) / elapsed if elapsed > 0 else 0.0
        parts = [f"{self.done:,}/{self.total:,} {self.unit}"]
        if rate > 0:
            parts.append(f"{_short(rate)}/s")
        if self.done >= self.total:
            parts.append(f"took {duration(elapsed)}")
        elif rate > 0:
            parts.append(f"{duration((self.total - self.done) / rate)} left")
        parts += [f"{name} {_short(value)}" for name, value in self.metrics.items()]
        return "  ".join(parts)

    def _write_line(self) -> None:
        self._last_line, self._written = self.clock(), self.done
        percent = 100 * self.done // max(self.total, 1)
        try:
            self.stream.write(f"{self.label} {percent:3d} %  {self.status()}\n")
            self.stream.flush()
        except (OSError, ValueError):  # the stream is closed: continue without output
            self.quiet = True

    def _open_bar(self) -> None:
        # Imported here because most uses of the package never show a bar.
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        columns = (TextColumn("{task.description}"), BarColumn(bar_width=30), TextColumn("{task.fields[status]}"))
        self._bar = RichProgress(*columns, console=Console(file=self.stream))
        self._task = self._bar.add_task(self.label, total=self.total, completed=self.done, status=self.status())
        self._bar.start()


def duration(seconds: float) -> str:
    """Return seconds as 0:07, 12:34 or 1:02:03."""
    minutes, second = divmod(round(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02d}:{second:02d}" if hour else f"{minute}:{second:02d}"


def _short(value: float) -> str:
    """Return a number with three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
