"""Fault injection: run jobs in forked processes, kill them at chosen points, and inspect what they leave behind."""

import multiprocessing
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple, NoReturn
from unittest import mock

from gcb.errors import GCBError

ERROR, UNEXPECTED, AT_WRITE = 2, 70, 9
"""Exit codes: a GCBError, any other exception, the end of `die_at_write`."""
TIMEOUT = 300.0


class Ended(NamedTuple):
    """How a process ended, and what it printed."""

    code: int
    output: str
    seconds: float

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    @property
    def message(self) -> str:
        """The error message for the user; empty without one, or with a traceback."""
        clean = self.code == ERROR and "Traceback" not in self.output
        return " ".join(self.output.rpartition("gcb: ")[2].split()) if clean else ""


def run_forked(job: Callable[[], object], kill_after: float | None = None) -> Ended:
    """Run a job in a forked process; send kill -9 if it has not ended after `kill_after` seconds."""
    reading, writing = os.pipe()  # not a file, which could not be written on a full disk
    start, child = time.monotonic(), os.fork()
    if child == 0:
        _run_as_child(job, writing)
    os.close(writing)
    output = _read_output(child, reading, None if kill_after is None else start + kill_after)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(reading)
    return Ended(code, output.decode(errors="replace"), time.monotonic() - start)


def _read_output(child: int, reading: int, deadline: float | None) -> bytes:
    """Return what a process prints until it ends or is killed at the deadline; its own children may live longer."""
    output, process = bytearray(), os.pidfd_open(child)
    sources = [process, reading]
    while process in sources:
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready = select.select(sources, [], [], timeout)[0]
        if not ready:
            os.kill(child, signal.SIGKILL)
            deadline = None
        if reading in ready:
            chunk = os.read(reading, 1 << 16)
            output += chunk
            if not chunk:
                sources.remove(reading)
        elif process in ready:  # everything it printed has been read
            sources.remove(process)
    os.close(process)
    return bytes(output)


def _run_as_child(job: Callable[[], object], output: int) -> NoReturn:
    """Run the job and exit; print a GCBError as the command line does."""
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    code = 0
    try:
        job()
    except GCBError as error:
        print(f"gcb: {error}", file=sys.stderr)
        code = ERROR
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
        code = UNEXPECTED
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@contextmanager
def running(job: Callable[[], object], started: Callable[[], bool]) -> Iterator[None]:
    """Run a job in a process that is killed at the end of the block, which begins once `started` is true."""
    child = os.fork()
    if child == 0:
        try:
            job()
        finally:
            os._exit(0)
    try:
        wait_until(started)
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def die_at_write(call: int, job: Callable[[], object]) -> Callable[[], None]:
    """Return a job that ends, as by kill -9, at the n-th call of os.fsync or os.replace."""

    def run() -> None:
        calls = 0

        def counted(function: Callable) -> Callable:
            def count_and_call(*arguments: object) -> object:
                nonlocal calls
                calls += 1
                if calls == call:
                    os._exit(AT_WRITE)
                return function(*arguments)

            return count_and_call

        os.fsync, os.replace = counted(os.fsync), counted(os.replace)
        job()

    return run


class ForkedProcess(multiprocessing.get_context("fork").Process):
    """A worker of a sweep that is forked instead of spawned, which saves the seconds of its imports."""

    def run(self) -> None:
        # Close what a spawned process does not inherit, such as the lock on the sweep's directory.
        parent, connection = multiprocessing.parent_process(), self._args[-1]  # pyright: ignore[reportAttributeAccessIssue]
        needed = {0, 1, 2, connection.fileno(), parent._sentinel}  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]
        for descriptor in {int(name) for name in os.listdir("/proc/self/fd")} - needed:
            with suppress(OSError):
                os.close(descriptor)
        super().run()


@contextmanager
def forked_workers() -> Iterator[None]:
    """Make `gcb sweep` fork its workers."""
    context = SimpleNamespace(Pipe=multiprocessing.Pipe, Process=ForkedProcess)
    with mock.patch("gcb.sweep.pools.CONTEXT", context):
        yield


def files_of(directory: Path) -> dict[str, bytes]:
    """Return the content of every file below a directory, to compare two directories byte by byte."""
    paths = (path for path in sorted(directory.rglob("*")) if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


def wait_until(condition: Callable[[], bool], seconds: float = TIMEOUT) -> None:
    """Wait for a condition. The long limit is for busy machines; a second or two are usually enough."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"still false after {seconds} seconds"
        time.sleep(0.02)


def children_of(parent: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def blocks_interrupts(process: int) -> bool:
    """Whether SIGINT is blocked or ignored in this process."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return bool((int(fields["SigBlk"], 16) | int(fields["SigIgn"], 16)) & 1 << (signal.SIGINT - 1))
