"""Training time, without pauses."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class TrainingClock:
    """Counts training time in seconds, continuing from `seconds` of earlier calls."""

    def __init__(self, seconds: float) -> None:
        self._start = time.monotonic() - seconds

    def __call__(self) -> float:
        return time.monotonic() - self._start

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do not count the time in this block."""
        now = time.monotonic()
        try:
            yield
        finally:
            self._start += time.monotonic() - now
