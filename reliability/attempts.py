"""Jobs in processes of their own, which may be killed at any moment; what they said and how they ended."""

import multiprocessing
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, NoReturn

from gcb.errors import GCBError

TOLD, BROKEN = 2, 70
"""Exit codes: a message for the user; anything else that was raised."""


class Attempt(NamedTuple):
    """How a process ended."""

    code: int
    said: str
    seconds: float

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    @property
    def told(self) -> bool:
        """It ended with a message to the user, and no traceback."""
        return self.code == TOLD and "gcb: " in self.said and "Traceback" not in self.said


def attempt(job: Callable[[], object], seconds: float | None = None) -> Attempt:
    """Do a job in a forked process; after `seconds` it gets kill -9, if it has not ended by then."""
    # A pipe, not a file: where no file can be written, it can still say so.
    reading, writing = os.pipe()
    began, child = time.monotonic(), os.fork()
    if child == 0:
        _be(job, writing)
    os.close(writing)
    said = _listen(child, reading, None if seconds is None else began + seconds)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(reading)
    return Attempt(code, said.decode(errors="replace"), time.monotonic() - began)


def _listen(child: int, reading: int, deadline: float | None) -> bytes:
    """What a process says until it ends, or is killed at the deadline."""
    said, process, over = bytearray(), os.pidfd_open(child), False
    os.set_blocking(reading, False)
    while not over:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready = select.select([process, reading], [], [], left)[0]
        if not ready:
            os.kill(child, signal.SIGKILL)
            deadline = None
        over = process in ready
        with suppress(BlockingIOError):
            while part := os.read(reading, 1 << 16):
                said += part
            if reading in ready and not over:
                select.select([process], [], [])  # it has closed what it spoke through
                over = True
    os.close(process)
    return bytes(said)


def command(*words: object) -> Callable[[], None]:
    """A command of `gcb` as a job."""

    def run() -> None:
        from gcb.cli.main import main

        main([str(word) for word in words])

    return run


def _be(job: Callable[[], object], said: int) -> NoReturn:
    """Be the process that does the job. As on the command line, a GCBError is a message."""
    os.dup2(said, 1)
    os.dup2(said, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    code = 0
    try:
        job()
    except GCBError as error:
        print(f"gcb: {error}", file=sys.stderr)
        code = TOLD
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        code = BROKEN
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class ForkedProcess(multiprocessing.get_context("fork").Process):
    """A worker of a sweep that is forked instead of spawned, which saves the seconds that imports take."""

    def run(self) -> None:
        # Close what a spawned process does not inherit, such as the lock on the sweep's directory.
        parent, connection = multiprocessing.parent_process(), self._args[-1]  # pyright: ignore[reportAttributeAccessIssue]
        needed = {0, 1, 2, connection.fileno(), parent._sentinel}  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]
        for descriptor in {int(name) for name in os.listdir("/proc/self/fd")} - needed:
            with suppress(OSError):
                os.close(descriptor)
        super().run()
