"""What a job is to those that plan, run and show it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol


@dataclass(frozen=True)
class State:
    """How far a job is, by what lies on the disk."""

    word: Literal["done", "begun", "new", "impossible"]
    share: float = 0.0
    """Of its work that is done, from 0 to 1."""
    reason: str = ""
    """Why it is impossible."""


class Job(Protocol):
    """A piece of work that can be stopped at any moment, and gone on with."""

    @property
    def name(self) -> str:
        """Its name among all jobs of a sweep."""
        ...

    @property
    def needs(self) -> Path | None:
        """Folder of the dataset that must be there before."""
        ...

    def state(self) -> State:
        """How far it is. Nothing is touched."""
        ...

    def work(self, processes: int = 1) -> None:
        """Do what is left of it."""
        ...

    def to_dict(self) -> dict[str, Any]: ...
