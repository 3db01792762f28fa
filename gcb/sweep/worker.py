"""A process that does one job of a sweep: `python -m gcb.sweep.worker DIR NAME PROCESSES`.

Its standard input is a pipe that says nothing: when it ends, the sweep is gone, and the worker ends as well.
"""

import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from datetime import datetime
from pathlib import Path

from gcb.errors import GCBError

FAILED_CODE, STOPPED_CODE = 1, 130


def do(out: Path, name: str, processes: int = 1) -> str | None:
    """Do a job, its words in its log; return the reason if it failed, which DIR/failed keeps as well.

    `KeyboardInterrupt` comes through: a job that was stopped has not failed.
    """
    from gcb.sweep.folder import Folder

    folder = Folder(out)
    with _logged(folder.log(name)):
        try:
            folder.read_job(name).work(processes)
        except Exception as error:  # whatever it is: it is one job's failure, and the others go on
            traceback.print_exc()
            reason = str(error) if isinstance(error, GCBError) else f"{type(error).__name__}: {error}"
            folder.fail(name, reason)
            return reason
    return None


@contextmanager
def _logged(path: Path) -> Iterator[None]:
    with open(path, "a", buffering=1) as log, redirect_stdout(log), redirect_stderr(log):
        log.write(f"{datetime.now().astimezone().isoformat(timespec='seconds')} process {os.getpid()}\n")
        yield


def _end_with_the_sweep() -> None:
    # Not sys.stdin, whose lock a thread must not hold when the interpreter ends.
    while os.read(0, 1):
        pass
    os._exit(STOPPED_CODE)


def main() -> None:
    """The job that the command line names; the exit code says how it ended."""
    threading.Thread(target=_end_with_the_sweep, daemon=True).start()
    out, name, processes = sys.argv[1:]
    try:
        sys.exit(FAILED_CODE if do(Path(out), name, int(processes)) is not None else 0)
    except KeyboardInterrupt:
        sys.exit(STOPPED_CODE)


if __name__ == "__main__":
    main()
