"""The folder of a sweep: what was asked of each job, what it said, and why it failed."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import yaml

from gcb.errors import GCBError
from gcb.sweep.data_job import DataJob
from gcb.sweep.jobs import Job
from gcb.sweep.run_job import RUNS, RunJob
from gcb.utils.files import directory_lock, explain_os_errors, write_atomically

JOBS, LOGS, FAILED, DATA, RESULTS = "jobs", "logs", "failed", "data", "results.csv"
OURS = {JOBS, LOGS, FAILED, DATA, RESULTS, RUNS}
KINDS = {"data": DataJob.from_dict, "run": RunJob.from_dict}


class Folder:
    """A sweep's folder, made if it is not there; another's is left alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.exists() and not path.is_dir():
            raise GCBError(f"{path} is a file; a sweep needs a folder")
        names = sorted(one.name for one in path.iterdir()) if path.exists() else []
        if strangers := [name for name in names if name not in OURS and not name.startswith(".")]:
            raise GCBError(f"{path} holds other files ({strangers[0]}); name a new or an empty folder")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make what a sweep writes into, and keep other sweeps out of it."""
        with explain_os_errors(self.path):
            for name in (JOBS, LOGS, FAILED):
                (self.path / name).mkdir(parents=True, exist_ok=True)
        with directory_lock(self.path):
            yield

    def write_job(self, job: Job) -> None:
        """Keep what is asked of a job."""
        with explain_os_errors(self.path / JOBS):
            content = yaml.safe_dump(job.to_dict(), sort_keys=False, allow_unicode=True)
            write_atomically(self._job(job.name), content.encode())

    def read_job(self, name: str) -> Job:
        """The job of this name."""
        path = self._job(name)
        try:
            plain = yaml.safe_load(self.job_bytes(name))
            job = KINDS[plain["kind"]](plain, self.path)
            if job.name != name:
                raise ValueError(f"it is that of {job.name}")
            return job
        except (AttributeError, yaml.YAMLError, KeyError, TypeError, ValueError, RecursionError) as error:
            reason = " ".join(str(error).split())
            raise GCBError(f"{path} does not describe a job ({reason}); delete it, and sweep again") from error

    def job_bytes(self, name: str) -> bytes:
        """What was asked of a job, as it was written."""
        try:
            return self._job(name).read_bytes()
        except OSError as error:
            raise GCBError(f"{self._job(name)} could not be read: {error.strerror}") from error

    def job_names(self) -> list[str]:
        """Every job that was ever asked for in this folder, sorted."""
        return [path.stem for path in sorted((self.path / JOBS).glob("*.yaml"))]

    def log(self, name: str) -> Path:
        """What a job says, all its sittings."""
        return self.path / LOGS / f"{name}.log"

    def last_words(self, name: str) -> str:
        """The last line of a job's log: how far it is, by its own account."""
        with suppress(OSError), open(self.log(name), "rb") as log:
            log.seek(0, 2)
            log.seek(max(0, log.tell() - 2000))
            lines = log.read().decode(errors="replace").strip().splitlines()
            return lines[-1] if lines else ""
        return ""

    def fail(self, name: str, reason: str) -> None:
        """Keep why a job failed."""
        with explain_os_errors(self._failure(name)):
            write_atomically(self._failure(name), f"{reason}\n".encode())

    def forget_failure(self, name: str) -> None:
        """A job that is tried again, or was done elsewhere, has not failed."""
        with explain_os_errors(self._failure(name)):
            self._failure(name).unlink(missing_ok=True)

    def reason(self, name: str) -> str | None:
        """Why a job failed, if it did."""
        try:
            return self._failure(name).read_text().strip()
        except FileNotFoundError:
            return None

    def _job(self, name: str) -> Path:
        return self.path / JOBS / f"{name}.yaml"

    def _failure(self, name: str) -> Path:
        return self.path / FAILED / f"{name}.txt"
