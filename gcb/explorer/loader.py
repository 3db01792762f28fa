"""Loads a run in the background, so that the page opens before the agent is ready."""

import logging
import os
import sys
import threading
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
    """Loads the session of a run, and retries until the run is complete."""

    def __init__(self, run: Path, data: Path | None = None, clips: Path | None = None, device: str = "cpu") -> None:
        """`data` is the dataset if it was moved; `clips` is a directory of background videos."""
        self.run, self._data, self._clips, self._device = run, data, clips, device
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
        status = {"state": self.state, "detail": self.detail, "run": self.run.name, "path": str(self.run)}
        session = self._session
        return status | {"run_deleted": not self.run.is_dir()} | ({} if session is None else session.status())

    def _load(self) -> None:
        while not self._closed.is_set() and self._session is None:
            try:
                self._try_to_load()
            except GCBError as error:
                self.state, self.detail = "failed", str(error)
            except Exception as error:  # if the thread ended here, the page would wait forever
                log.exception("loading %s failed", self.run)
                self.state, self.detail = "failed", f"{type(error).__name__}: {error}"
            if self._session is None:
                self._closed.wait(RETRY_SECONDS)
        if self._session is not None:
            _lower_priority()
            self._session.prepare_map(self._data)

    def _try_to_load(self) -> None:
        from gcb.explorer.session import load_session
        from gcb.runs.run_dir import Run

        if Run(self.run).checkpoint() is None:
            self.state, self.detail = "waiting", f"{self.run} has no checkpoint yet: training has only started."
            return
        self._session = load_session(self.run, self._clips, self._device)
        self.state, self.detail = "ready", ""


def _lower_priority() -> None:
    """Lower this thread's priority, so that computing the map does not slow down an episode."""
    if sys.platform == "linux":  # where each thread has its own priority
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, max(LOW_PRIORITY, os.getpriority(os.PRIO_PROCESS, thread)))
