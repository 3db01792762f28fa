"""What a sweep shows while it goes on: a live table on a terminal, elsewhere a line for each event."""

import time
from collections.abc import Iterable

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from gcb.sweep.folder import Folder
from gcb.sweep.jobs import Job, State
from gcb.utils.progress import duration

LINE_SECONDS = 60.0
TABLE_SECONDS = 2.0


class Board:
    """What runs, is done, failed, and remains."""

    def __init__(self, console: Console, folder: Folder, jobs: Iterable[Job], states: dict[str, State]) -> None:
        self.console, self.folder = console, folder
        self.jobs = {job.name: job for job in jobs}
        self.shares = {name: states[name].share for name in self.jobs}
        self.finished = {name for name in self.jobs if states[name].word == "done"}
        self.failures: dict[str, str] = {}
        self.starts: dict[str, float] = {}
        self._began, self._share_before = time.monotonic(), self._share()
        self._shown = 0.0
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> "Board":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._live is not None:
            self._live.stop()

    def began(self, job: Job) -> None:
        self.starts[job.name] = time.monotonic()
        self.say(f"{job.name} began")

    def done(self, job: Job) -> None:
        took = time.monotonic() - self.starts.pop(job.name)
        self.finished.add(job.name)
        self.shares[job.name] = 1.0
        self.say(f"{job.name} is done after {duration(took)}: {self._counts()}")

    def failed(self, job: Job, reason: str) -> None:
        self.starts.pop(job.name, None)
        self.failures[job.name] = reason
        self.say(f"{job.name} FAILED: {reason}")

    def say(self, line: str) -> None:
        """One event."""
        self.console.print(f"{time.strftime('%H:%M:%S')} {escape(line)}", highlight=False, soft_wrap=True)

    def show(self, running: Iterable[str]) -> None:
        """The state of things, if it is time to show it again."""
        now = time.monotonic()
        if now - self._shown < (LINE_SECONDS if self._live is None else TABLE_SECONDS):
            return
        first, self._shown = self._shown == 0.0, now
        running = sorted(running)
        for name in running:
            self.shares[name] = max(self.shares[name], self.jobs[name].state().share)
        if self._live is not None:
            self._live.update(self._table(running), refresh=True)
        elif not first:
            self.say(f"{self._counts()}, {self._left()}")
            for name in running:
                self.say(f"  {name}: {self.folder.last_words(name)}")

    def _table(self, running: list[str]) -> Group:
        table = Table(title=f"{self._counts()}, {self._left()}", title_justify="left", expand=True)
        table.add_column("running", no_wrap=True)
        table.add_column("for", justify="right")
        table.add_column("it says", no_wrap=True, overflow="ellipsis", ratio=1)
        for name in running:
            took = duration(time.monotonic() - self.starts[name])
            table.add_row(escape(name), took, escape(" ".join(self.folder.last_words(name).split())))
        failures = [f"[red]{escape(name)} failed: {escape(reason)}" for name, reason in self.failures.items()]
        return Group(table, *failures)

    def _counts(self) -> str:
        done, failed, running = len(self.finished), len(self.failures), len(self.starts)
        remaining = len(self.jobs) - done - failed - running
        return f"{done} of {len(self.jobs)} done, {running} running, {failed} failed, {remaining} to come"

    def _share(self) -> float:
        return sum(self.shares[name] for name in self.jobs)

    def _left(self) -> str:
        """Time left, if the jobs to come take as long as what was done since the sweep began."""
        gained = self._share() - self._share_before
        to_do = sum(1 - self.shares[name] for name in self.jobs if name not in self.failures)
        seconds = time.monotonic() - self._began
        return f"about {duration(to_do / gained * seconds)} left" if gained > 0 else "time left not known yet"
