"""Run jobs in processes of this machine; ray_pool.py runs them on Ray behind the same interface."""

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import datetime
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Protocol

import torch

from gcb.errors import GCBError
from gcb.sweep.jobs import Job
from gcb.sweep.sweep_dir import SweepDir
from gcb.utils.os_errors import explain_os_errors
from gcb.utils.workers import exit_with_parent, start_process

CONTEXT = multiprocessing.get_context("spawn")
STOPPED = 130


@dataclass(frozen=True)
class Finished:
    """A job whose process has ended."""

    job: Job
    error: str | None
    """Why it failed; None if it succeeded."""
    died: bool = False
    """The process died without reporting an error, so that a retry may help."""


class Pool(Protocol):
    """Runs each job in a process of its own."""

    @property
    def max_workers(self) -> int:
        """How many processes one job may use."""
        ...

    def has_room(self, workers: int = 1) -> bool:
        """Return whether a job with this many processes can start now."""
        ...

    def start(self, job: Job, workers: int = 1) -> None: ...

    def finished(self) -> Iterator[Finished]:
        """Return the jobs that have ended since the last call."""
        ...

    def stop(self, timeout: float) -> None:
        """Ask every job to save its state and end; kill what still runs after `timeout` seconds."""
        ...

    def close(self) -> None:
        """Release all resources, without waiting for jobs."""
        ...


class LocalPool:
    """Processes of this machine, at most `workers` at a time. A process ends with its parent, even on kill -9."""

    def __init__(self, sweep_dir: SweepDir, workers: int) -> None:
        if workers < 1:
            raise GCBError(f"workers is {workers}; it must be at least 1.")
        self.sweep_dir, self.max_workers = sweep_dir, workers
        self._running: list[tuple[Job, int, BaseProcess, Connection]] = []

    def has_room(self, workers: int = 1) -> bool:
        return sum(used for _, used, _, _ in self._running) + workers <= self.max_workers

    def start(self, job: Job, workers: int = 1) -> None:
        receiver, sender = CONTEXT.Pipe(duplex=False)
        process = CONTEXT.Process(target=_main, args=(job, self.sweep_dir.log(job.name), workers, sender))
        start_process(process)
        sender.close()
        self._running.append((job, workers, process, receiver))

    def finished(self) -> Iterator[Finished]:
        for entry in list(self._running):
            job, _, process, receiver = entry
            # A process with a long message ends only when the message is read.
            if process.exitcode is None and not receiver.poll():
                continue
            self._running.remove(entry)
            try:
                finished = Finished(job, receiver.recv())
                process.join()
            except EOFError:
                process.join()
                finished = Finished(job, self._cause_of_death(job, process.exitcode or 0), died=True)
            receiver.close()
            yield finished

    def stop(self, timeout: float) -> None:
        processes = [process for _, _, process, _ in self._running]
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + timeout
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.exitcode is None:
                process.kill()
                process.join()
        self._running.clear()

    def close(self) -> None:
        self.stop(0.0)

    def _cause_of_death(self, job: Job, code: int) -> str:
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
        return f"its process {how}, perhaps out of memory; last line of its log: {self.sweep_dir.last_line(job.name)}"


def run_logged(job: Job, log: Path, workers: int = 1) -> str | None:
    """Run a job with its output appended to `log`; return the reason if it fails.

    `KeyboardInterrupt` propagates: a job that is stopped has not failed.
    """
    with (
        explain_os_errors(log),
        open(log, "a", buffering=1) as stream,
        redirect_stdout(stream),
        redirect_stderr(stream),
    ):
        stream.write(f"{datetime.now().astimezone().isoformat(timespec='seconds')} process {os.getpid()}\n")
        try:
            job.run(workers)
        except Exception as error:  # one job's failure must not stop the others
            traceback.print_exc()
            return str(error) if isinstance(error, GCBError) else f"{type(error).__name__}: {error}"
    return None


def _main(job: Job, log: Path, workers: int, sender: Connection) -> None:
    """Run a job in a worker process."""
    torch.set_num_threads(1)  # processes of one thread each use the cores better than one process of several threads
    os.setsid()  # Ctrl-C goes to the sweep alone, which then asks its workers to stop
    threading.Thread(target=exit_with_parent, daemon=True).start()
    try:
        with explain_os_errors(log), open(log, "ab") as stream:  # for output that bypasses sys.stdout, as of a crash
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        sender.send(run_logged(job, log, workers))
    except GCBError as error:
        sender.send(str(error))
    except KeyboardInterrupt:
        sys.exit(STOPPED)
