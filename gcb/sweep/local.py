"""Jobs as processes of this machine, one thread each: several processes use cores better than several threads do."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

from gcb.errors import GCBError
from gcb.sweep.folder import Folder
from gcb.sweep.jobs import Job
from gcb.sweep.pool import Ended
from gcb.sweep.worker import FAILED_CODE

ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}


class LocalPool:
    """At most `workers` processes at a time."""

    def __init__(self, folder: Folder, workers: int) -> None:
        if workers < 1:
            raise GCBError(f"workers is {workers}; it must be at least 1.")
        self.folder, self.workers = folder, workers
        self._running: list[tuple[Job, int, subprocess.Popen]] = []

    @property
    def width(self) -> int:
        return self.workers

    def room(self, processes: int = 1) -> bool:
        return sum(taken for _, taken, _ in self._running) + processes <= self.workers

    def start(self, job: Job, processes: int = 1) -> None:
        words = [str(self.folder.path), job.name, str(processes)]
        with open(self.folder.log(job.name), "ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "gcb.sweep.worker", *words],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, **ONE_THREAD},
                # Ctrl-C goes to the sweep alone, which then lets its workers save what they have.
                start_new_session=True,
            )
        self._running.append((job, processes, process))

    def ended(self) -> Iterator[Ended]:
        for entry in list(self._running):
            job, _, process = entry
            if (code := process.poll()) is not None:
                self._forget(entry)
                yield self._judged(job, code)

    def stop(self, patience: float) -> None:
        for _, _, process in self._running:
            process.terminate()
        deadline = time.monotonic() + patience
        for entry in list(self._running):
            try:
                entry[2].wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                entry[2].kill()
                entry[2].wait()
            self._forget(entry)

    def close(self) -> None:
        """Nothing is left once the jobs have ended."""

    def _forget(self, entry: tuple[Job, int, subprocess.Popen]) -> None:
        self._running.remove(entry)
        if entry[2].stdin is not None:
            entry[2].stdin.close()

    def _judged(self, job: Job, code: int) -> Ended:
        if code == 0:
            return Ended(job, None)
        if code == FAILED_CODE and (reason := self.folder.reason(job.name)) is not None:
            return Ended(job, reason)
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        said = self.folder.last_words(job.name)
        return Ended(job, f"its process {how}, perhaps for want of memory; its last words: {said}", died=True)
