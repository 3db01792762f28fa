"""The directory of a sweep: the lock on it, the logs of its jobs and the reasons of failures."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gcb.errors import GCBError, utf8
from gcb.utils.files import directory_lock, write_atomically
from gcb.utils.os_errors import explain_os_errors

RUNS, LOGS, FAILED, DATA, RESULTS = "runs", "logs", "failed", "data", "results.csv"


class SweepDir:
    """A directory for sweeps; one with unexpected files is refused."""

    def __init__(self, path: Path) -> None:
        self.path, self.runs, self.results = path, path / RUNS, path / RESULTS
        if path.exists() and not path.is_dir():
            raise GCBError(f"{path} is a file; a sweep needs a directory")
        names = sorted(entry.name for entry in path.iterdir()) if path.exists() else []
        expected = {RUNS, LOGS, FAILED, DATA, RESULTS}
        if unexpected := [name for name in names if name not in expected and not name.startswith(".")]:
            raise GCBError(f"{path} holds other files ({unexpected[0]}); use a new or an empty directory")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Create the directory and keep other sweeps out of it."""
        with explain_os_errors(self.path):
            for name in (RUNS, LOGS, FAILED):
                (self.path / name).mkdir(parents=True, exist_ok=True)
        with directory_lock(self.path):
            yield

    def log(self, name: str) -> Path:
        """Return the path of a job's log, to which every attempt appends."""
        return self.path / LOGS / f"{name}.log"

    def last_line(self, name: str) -> str:
        """Return the last line of a job's log, which shows its progress."""
        with suppress(OSError), open(self.log(name), "rb") as log:
            log.seek(0, 2)
            log.seek(max(0, log.tell() - 2000))
            lines = log.read().decode(errors="replace").strip().splitlines()
            return lines[-1] if lines else ""
        return ""

    def write_failure(self, name: str, reason: str) -> None:
        """Keep the reason why a job failed."""
        with explain_os_errors(self._failure(name)):
            write_atomically(self._failure(name), utf8(f"{reason}\n"))

    def clear_failure(self, name: str) -> None:
        """Forget an earlier failure of a job."""
        with explain_os_errors(self._failure(name)):
            self._failure(name).unlink(missing_ok=True)

    def _failure(self, name: str) -> Path:
        return self.path / FAILED / f"{name}.txt"
