"""Where the jobs of a sweep run, as its conductor sees it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from gcb.sweep.jobs import Job


@dataclass(frozen=True)
class Ended:
    """A job whose process is over."""

    job: Job
    reason: str | None
    """Why it failed; None if it is done."""
    died: bool = False
    """It was the process that came to an end, not the job: going on with it may help."""


class Pool(Protocol):
    """Processes that do one job each."""

    @property
    def width(self) -> int:
        """Processes that one job may spread over."""
        ...

    def room(self, processes: int = 1) -> bool:
        """Whether a job that takes so many processes can start now."""
        ...

    def start(self, job: Job, processes: int = 1) -> None: ...

    def ended(self) -> Iterator[Ended]:
        """The jobs that are over since the last call."""
        ...

    def stop(self, patience: float) -> None:
        """Let every job save what it has, and end; after `patience` seconds without asking."""
        ...

    def close(self) -> None:
        """Give back what the pool itself has taken."""
        ...
