"""Ways to make processes die and disks fill up, and to see what they leave behind."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from gcb.errors import GCBError


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, to compare whole datasets byte by byte."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def in_child(job: Callable[[], object]) -> tuple[int, str]:
    """Run a job in a forked process; return its exit code and the message of the GCBError it raised, if any."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 0
        try:
            job()
        except GCBError as error:
            os.write(writing, str(error).encode())
            code = 3
        except BaseException:
            code = 4
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        message = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), message


def dying_at(call: int, job: Callable[[], object]) -> Callable[[], None]:
    """The job, in a process that vanishes, as by kill -9, at the n-th time it makes sure of bytes or renames a file."""

    def run() -> None:
        calls = 0

        def counted(real: Callable) -> Callable:
            def step(*arguments: object) -> object:
                nonlocal calls
                calls += 1
                if calls == call:
                    os._exit(9)
                return real(*arguments)

            return step

        os.fsync, os.replace = counted(os.fsync), counted(os.replace)
        job()

    return run


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def children_of(parent: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
