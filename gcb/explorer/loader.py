"""Loads a run in the background, so that the page opens before the agent is ready."""

import gc
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gcb.errors import GCBError

# Imported late: torch and the simulator take a second or two.
if TYPE_CHECKING:
    from gcb.explorer.session import Session

RETRY_SECONDS = 2.0
LOW_PRIORITY = 15
log = logging.getLogger(__name__)


class NotLoaded(GCBError):
    """The agent is not loaded yet, or cannot be."""

    status = 503


class RunLoader:
    """Loads the session of one run, or of two side by side, and retries until they are complete."""

    def __init__(
        self,
        runs: Sequence[Path],
        data: Path | None = None,
        clips: Path | None = None,
        device: str = "cpu",
        report: Callable[[str], object] = log.warning,
    ) -> None:
        """`data` is the first run's dataset if it was moved; `clips` is a directory of background videos.

        `report` is called with what the page cannot do and why, once for each message.
        """
        self.runs, self._data, self._clips, self._device, self._report = runs, data, clips, device, report
        self.state: Literal["loading", "waiting", "failed", "ready"] = "loading"
        """"waiting": training has started, but there is no checkpoint yet."""
        self.detail = "the agent is still loading."
        self._session: Session | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._load, name="explorer", daemon=True)

    def start(self) -> None:
        """Start loading in the background."""
        self._thread.start()

    def close(self) -> None:
        """Stop retrying."""
        self._closed.set()

    @property
    def session(self) -> "Session":
        """The loaded session; raises `NotLoaded` with the reason if there is none."""
        if self._session is None:
            raise NotLoaded(self.detail)
        return self._session

    def status(self) -> dict[str, Any]:
        """Return the state of the run; the page polls it."""
        deleted = next((str(run) for run in self.runs if not run.is_dir()), None)
        status = {"state": self.state, "detail": self.detail, "deleted": deleted}
        return status | ({} if self._session is None else self._session.status())

    def _load(self) -> None:
        while not self._closed.is_set() and self._session is None:
            try:
                self._try_to_load()
            except GCBError as error:
                self._fail(str(error))
            except Exception as error:  # if the thread ended here, the page would wait forever
                log.exception("loading %s failed", self.runs)
                self._fail(f"{type(error).__name__}: {error}")
            if self._session is None:
                self._closed.wait(RETRY_SECONDS)
        if self._session is not None and not self._closed.is_set():
            if self._session.unavailable:
                self._report(self._session.unavailable)
            self._session.warm_up()
            _lower_priority()
            self._session.prepare_map(self._data)
            if self._session.map.detail:
                self._report(f"no neighbours and no map: {self._session.map.detail}")

    def _fail(self, detail: str) -> None:
        if detail != self.detail:
            self._report(detail)
        self.state, self.detail = "failed", detail

    def _try_to_load(self) -> None:
        with _no_garbage_collection():  # nearly everything that importing PyTorch creates is kept
            from gcb.explorer.session import load_session
            from gcb.runs.run_dir import Run

        for run in self.runs:
            if Run(run).checkpoint() is None:
                self.state, self.detail = "waiting", f"{run} has no checkpoint yet: training has only started."
                return
        self._session = load_session(self.runs, self._clips, self._device)
        self.state, self.detail = "ready", ""


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _lower_priority() -> None:
    """Lower this thread's priority, so that computing the map does not slow down an episode."""
    if sys.platform == "linux":  # where each thread has its own priority
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, max(LOW_PRIORITY, os.getpriority(os.PRIO_PROCESS, thread)))
