"""A run that is loaded in the background, so that the page is there before the agent is."""

import logging
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gcb.errors import GCBError
from gcb.explorer.errors import NotLoaded

# Torch and the simulator take a second or two to import.
if TYPE_CHECKING:
    from gcb.explorer.session import Session

RETRY_SECONDS = 2.0
LOW_PRIORITY = 15
log = logging.getLogger(__name__)


class RunLoader:
    """A run, and once it is loaded what can be shown of it. A run that is not whole yet is tried again."""

    def __init__(self, run: Path, data: Path | None = None, clips: Path | None = None, device: str = "cpu") -> None:
        """`data` is the dataset's folder if it lies elsewhere now, `clips` a folder of own videos."""
        self.run, self._data, self._clips, self._device = run, data, clips, device
        self.state: Literal["loading", "waiting", "failed", "ready"] = "loading"
        """"waiting": for the first checkpoint of a run that has begun."""
        self.reason = "the agent is still being loaded."
        self._show: Session | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._load, name="explorer", daemon=True)

    def start(self) -> None:
        """Load in the background."""
        self._thread.start()

    def close(self) -> None:
        """Do not try again."""
        self._closed.set()

    @property
    def show(self) -> "Session":
        """What can be shown, or an error that says why nothing can be."""
        if self._show is None:
            raise NotLoaded(self.reason)
        return self._show

    def status(self) -> dict[str, Any]:
        """How things stand; the page asks again and again until all is there."""
        facts = {"state": self.state, "reason": self.reason, "name": self.run.name, "path": str(self.run)}
        show = self._show
        return facts | {"gone": not self.run.is_dir()} | ({} if show is None else show.facts())

    def _load(self) -> None:
        while not self._closed.is_set() and self._show is None:
            try:
                self._try_to_load()
            except GCBError as error:
                self.state, self.reason = "failed", str(error)
            except Exception as error:  # the thread must not end in silence, or the page would wait for ever
                log.exception("loading %s failed", self.run)
                self.state, self.reason = "failed", f"{type(error).__name__}: {error}"
            if self._show is None:
                self._closed.wait(RETRY_SECONDS)
        if self._show is not None:
            _step_back()
            self._show.prepare_map(self._data)

    def _try_to_load(self) -> None:
        from gcb.explorer.session import load_session
        from gcb.runs.run_dir import Run

        if Run(self.run).checkpoint() is None:
            self.state, self.reason = "waiting", f"{self.run} has no checkpoint yet: its training has only begun."
            return
        self._show = load_session(self.run, self._clips, self._device)
        self.state, self.reason = "ready", ""


def _step_back() -> None:
    """Let this thread wait for the others: a map in the making is not to slow down an agent that is being watched."""
    if sys.platform == "linux":  # where threads have a priority of their own
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, max(LOW_PRIORITY, os.getpriority(os.PRIO_PROCESS, thread)))
