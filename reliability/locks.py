"""Two processes in one folder: the second is told so, and what both may write is not lost."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gcb.analysis.analyse import ANALYSIS_DIR, analyse
from gcb.envs.spec import EnvSpec
from gcb.evaluation.evaluate import EvalResult, write_result
from gcb.evaluation.rollouts import Outcome
from gcb.runs.run_dir import Run, read_results
from gcb.sweep.sweep_dir import SweepDir
from gcb.training.trainer import train
from gcb.utils.files import directory_lock
from reliability import stage
from reliability.attempts import attempt
from reliability.rows import Row, row

PATIENCE = 120.0
WRITERS, ENTRIES = 4, 25


def run(folder: Path, quick: bool) -> Iterator[Row]:
    """Every folder that only one process may write to."""
    data = stage.slide_data(folder / "data" / "slide")
    made = stage.trained(folder / "made", data, steps=1)

    def collecting() -> None:
        stage.collect_numbers(folder / "numbers", 4000, pause=0.02)

    def training() -> None:
        train(stage.small_config(steps=100_000, checkpoint_every=1000), data, folder / "run", quiet=True)

    yield _second_is_told("dataset folder", collecting, collecting, folder / "numbers" / ".partial" / "journal.json")
    yield _second_is_told("run folder", training, training, folder / "run" / "metrics.jsonl")
    sweep = folder / "sweep"
    yield _second_is_told(
        "sweep folder", lambda: _hold_sweep(sweep), lambda: stage.sweep(sweep, data.parent), sweep / ".held"
    )
    analysis = made / ANALYSIS_DIR
    yield _second_is_told(
        "analysis of one run",
        lambda: _hold(analysis),
        lambda: analyse(made, size=stage.LITTLE, workers=1, quiet=True),
        analysis / ".held",
    )
    yield _evaluations_at_once(made)


def _second_is_told(name: str, first: Callable[[], object], second: Callable[[], object], sign: Path) -> Row:
    """`sign` is there once the first process is at work."""
    with _at_work(first, sign):
        tried = attempt(second)
    wrong = [] if tried.told and "in use" in tried.said else [f"code {tried.code}: {tried.said[-300:]}"]
    return row("two at once", name, 1, "the second was told that the folder is in use, and touched nothing", wrong)


@contextmanager
def _at_work(job: Callable[[], object], sign: Path) -> Iterator[None]:
    """A job in a process that ends with the block."""
    child = os.fork()
    if child == 0:
        try:
            job()
        finally:
            os._exit(0)
    deadline = time.monotonic() + PATIENCE
    while not sign.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _hold_sweep(path: Path) -> None:
    with SweepDir(path).lock():
        (path / ".held").touch()
        time.sleep(PATIENCE)


def _hold(path: Path) -> None:
    path.mkdir(exist_ok=True)
    with directory_lock(path):
        (path / ".held").touch()
        time.sleep(PATIENCE)


def _evaluations_at_once(made: Path) -> Row:
    """Several processes add their modes to one eval.json."""
    one = Outcome("task", 1, True)

    def write(writer: int) -> None:
        for entry in range(ENTRIES):
            write_result(Run(made), EvalResult(f"mode-{writer}-{entry}", EnvSpec("none"), 0, 1, [one]))

    children = []
    for writer in range(WRITERS):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                write(writer)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    codes = [os.waitpid(child, 0)[1] for child in children]
    there, count = len(read_results(made)), WRITERS * ENTRIES
    wrong = [] if there == count and not any(codes) else [f"{there} of {count} are there; exit codes {codes}"]
    said = f"all {count} results are in eval.json"
    return row("two at once", f"{WRITERS} evaluations of one run, {ENTRIES} results each", count, said, wrong)
