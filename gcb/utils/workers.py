"""Run numbered jobs in several processes and return the results in order."""

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple, Protocol

from gcb.errors import GCBError
from gcb.utils.dataclass_io import check_interval

CONTEXT = multiprocessing.get_context("spawn")
LOOK_AHEAD = 4
"""Jobs per worker that are started before their result is needed: bounds the memory and the discarded work."""
MIN_MAX_WORKERS, PER_CORE = 32, 4
"""The largest number of processes is the larger of the two, the second per core: each takes hundreds of megabytes."""


def check_workers(workers: int) -> None:
    """Raise `GCBError` if there are fewer than 1 or too many processes for this machine."""
    most = max(MIN_MAX_WORKERS, PER_CORE * (os.cpu_count() or 1))
    check_interval("workers", workers, f"[1, {most}]")


class Runner(Protocol):
    """Runs jobs; built once in each process."""

    renderer: str
    """Name of the renderer, for the manifest: renderers differ in their pixels."""

    def run(self, index: int) -> Any: ...

    def close(self) -> None: ...


def run_in_order(make: Callable[[Any], Runner], config: Any, first: int, workers: int) -> Generator[Any, None, None]:
    """Yield the results of jobs first, first + 1, ... without end; `make(config)` builds each process's runner.

    With one worker, jobs run in this process. The caller closes the generator when it has enough; jobs that are still
    running are then killed.
    """
    if workers == 1:
        yield from _run_here(make, config, first)
        return
    pool: list[_Worker] = []
    try:
        for _ in range(workers):
            pool.append(_start_worker(make, config))
        yield from _run_in_pool(pool, first)
    finally:
        for worker in pool:
            worker.process.kill()
        for worker in pool:
            worker.process.join()
            worker.connection.close()


def _run_here(make: Callable[[Any], Runner], config: Any, first: int) -> Generator[Any, None, None]:
    runner = make(config)
    try:
        for index in count(first):
            yield runner.run(index)
    finally:
        runner.close()


class _Worker(NamedTuple):
    process: BaseProcess
    connection: Connection
    """Sends the number of a job, and receives a `_Reply`."""


class _Reply(NamedTuple):
    index: int
    result: Any
    error: Exception | None
    trace: str


class _WorkerTraceback(Exception):
    """The traceback of an error in a worker process, as the cause of the error in this one."""


def _run_in_pool(pool: list[_Worker], first: int) -> Generator[Any, None, None]:
    """Give every idle worker the next job, and yield results in the order of the jobs."""
    busy: dict[Connection, int] = {}
    results: dict[int, Any] = {}
    jobs = count(first)
    for index in count(first):
        while index not in results:
            for worker in pool:
                if worker.connection not in busy and len(busy) + len(results) < LOOK_AHEAD * len(pool):
                    busy[worker.connection] = next(jobs)
                    _exchange(worker.connection.send, busy[worker.connection])
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                reply: _Reply = _exchange(connection.recv)
                if reply.error is not None:
                    raise reply.error from _WorkerTraceback(reply.trace)
                results[busy.pop(connection)] = reply.result
        yield results.pop(index)


def _exchange(function: Callable[..., Any], *message: Any) -> Any:
    """Send a message to a worker or receive its reply."""
    try:
        return function(*message)
    except (EOFError, OSError) as error:
        raise GCBError(
            "a worker process died: it crashed, or was killed, perhaps because memory ran out. What was finished is "
            "kept: run the same command again to resume, if necessary with fewer workers"
        ) from error


def _start_worker(make: Callable[[Any], Runner], config: Any) -> _Worker:
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=_work, args=(theirs, make, config), daemon=True)
    start_process(process)
    theirs.close()
    return _Worker(process, ours)


def start_process(process: BaseProcess) -> None:
    """Start a process that Ctrl-C does not reach: not even in the seconds in which it is still importing modules."""
    resource_tracker.ensure_running()  # otherwise the first start() starts it, which unblocks SIGINT
    with _postponed_interrupt():
        process.start()


@contextmanager
def _postponed_interrupt() -> Iterator[None]:
    """Let Ctrl-C wait until a process is started: one that is left without its data prints a traceback."""
    is_main = threading.current_thread() is threading.main_thread()
    caught: list[int] = []
    # The new process inherits what is blocked. Here another thread, such as NumPy's, may still receive the signal.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    handler = signal.getsignal(signal.SIGINT)
    if is_main and callable(handler):
        signal.signal(signal.SIGINT, lambda number, _: caught.append(number))
    try:
        yield
    finally:
        if is_main and callable(handler):
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if caught:
        signal.raise_signal(signal.SIGINT)


def _work(connection: Connection, make: Callable[[Any], Runner], config: Any) -> None:
    """Run the jobs that arrive, until the parent closes the connection."""
    threading.Thread(target=exit_with_parent, daemon=True).start()
    runner: Runner | None = None
    with suppress(EOFError, BrokenPipeError):
        while True:
            index = connection.recv()
            try:
                runner = runner or make(config)
                reply = _Reply(index, runner.run(index), None, "")
            except Exception as error:
                reply = _Reply(index, None, error, f"\n{traceback.format_exc()}")
            connection.send(reply)


def exit_with_parent() -> None:
    """Exit when the parent process has died: after a kill -9 it cannot stop its workers."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "this is a worker process"
    parent.join()
    os._exit(1)
