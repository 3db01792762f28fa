"""Run numbered jobs in several processes and return the results in order."""

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import count
from multiprocessing import get_context
from typing import Any, Protocol

from gcb.errors import GCBError

LOOK_AHEAD = 4
"""Jobs submitted per worker: bounds the memory, and the work discarded at the end."""
WATCH_SECONDS = 0.5


class Runner(Protocol):
    """Runs jobs; built once in each process."""

    renderer: str
    """Name of the renderer, for the manifest: renderers differ in their pixels."""

    def run(self, index: int) -> Any: ...

    def close(self) -> None: ...


def run_in_order(make: Callable[[Any], Runner], config: Any, first: int, workers: int) -> Generator[Any, None, None]:
    """Yield the results of jobs first, first + 1, ... without end; `make(config)` builds each process's runner.

    With one worker, jobs run in this process. The caller closes the generator when it has enough.
    """
    if workers == 1:
        yield from _run_here(make, config, first)
        return
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _start_worker, (make, config, os.getpid()))
    try:
        jobs = count(first)
        pending = deque(pool.submit(_run_job, next(jobs)) for _ in range(LOOK_AHEAD * workers))
        while True:
            result = pending.popleft().result()
            pending.append(pool.submit(_run_job, next(jobs)))
            yield result
    except BrokenProcessPool as error:
        raise GCBError(
            "a worker process died: it crashed, or was killed, perhaps because memory ran out. What was finished is "
            "kept: run the same command again to resume, if necessary with fewer workers"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _run_here(make: Callable[[Any], Runner], config: Any, first: int) -> Generator[Any, None, None]:
    runner = make(config)
    try:
        for index in count(first):
            yield runner.run(index)
    finally:
        runner.close()


_runner: Runner | None = None


def _start_worker(make: Callable[[Any], Runner], config: Any, parent: int) -> None:
    """Set up a worker process, which ignores Ctrl-C and exits when its parent is gone."""
    global _runner
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()
    _runner = make(config)


def _exit_with_parent(parent: int) -> None:
    """Exit when the parent process has died, which a kill -9 gives it no chance to announce."""
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os._exit(1)


def _run_job(index: int) -> Any:
    assert _runner is not None, "the pool starts every worker with _start_worker"
    return _runner.run(index)
