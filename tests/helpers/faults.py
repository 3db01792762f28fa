"""Kill processes at chosen points, and inspect what they leave behind."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from gcb.errors import GCBError


def files_of(directory: Path) -> dict[str, bytes]:
    """Return the content of every file below a directory, to compare datasets byte by byte."""
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()
    }


def in_child(job: Callable[[], object]) -> tuple[int, str]:
    """Run a job in a forked process; return its exit code and the message of its GCBError, if any."""
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
    """Return a job that dies, as by kill -9, at the n-th call of os.fsync or os.replace."""

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
        assert time.monotonic() < deadline, f"not true after {seconds} s"
        time.sleep(0.02)


def children_of(parent: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
