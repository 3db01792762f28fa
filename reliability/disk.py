"""Full disks: a message, nothing lost, and the same command goes on once there is room."""

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from gcb.agent.agent import Agent
from gcb.agent.export import export_run
from gcb.analysis.analyse import ANALYSIS_DIR, analyse
from gcb.data import export_data, open_dataset
from gcb.evaluation.evaluate import evaluate_run
from gcb.report.report import write_report
from gcb.runs.run_dir import EVAL, Run
from gcb.training.trainer import train
from reliability import stage
from reliability.attempts import attempt
from reliability.rows import Row, row

MEGABYTES = 24
WHEN = datetime(2024, 1, 1)
BALLAST = "ballast"


class Disk:
    """A small disk that can be filled up: a tmpfs of its own, or else a limit on the size of files."""

    def __init__(self, path: Path, mounted: bool) -> None:
        self.path, self.mounted = path, mounted

    @property
    def name(self) -> str:
        return "a full disk (tmpfs)" if self.mounted else "no more room in any file (RLIMIT_FSIZE, for want of a tmpfs)"

    def fill(self, room: int = 0) -> None:
        """Leave no more than `room` bytes; the limit on files holds for the process that calls this."""
        if not self.mounted:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
            return
        free = os.statvfs(self.path).f_bavail * os.statvfs(self.path).f_frsize
        with open(self.path / BALLAST, "wb") as ballast:
            os.posix_fallocate(ballast.fileno(), 0, free - room)

    def free(self) -> None:
        (self.path / BALLAST).unlink(missing_ok=True)


@contextmanager
def small_disk(path: Path) -> Iterator[Disk]:
    """A tmpfs of a few megabytes at `path`, where mounting is allowed."""
    path.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "gcb-faults", str(path)]
    mounted = os.geteuid() == 0 and subprocess.run(words, capture_output=True, check=False).returncode == 0
    try:
        yield Disk(path, mounted)
    finally:
        if mounted:
            subprocess.run(["umount", str(path)], check=True)


class Case(NamedTuple):
    """A job that meets a full disk."""

    name: str
    do: Callable[[Callable[[], None]], object]
    """The job; it is given what fills the disk, to be called when the worst moment is there."""
    kept: Callable[[], Any]
    """What was there before, and must still be there when it has failed."""
    result: Callable[[], Any]
    """What there is in the end."""
    expected: Any


def run(folder: Path, quick: bool) -> Iterator[Row]:
    """Every command that writes, on a disk that is full when it wants to."""
    data = stage.slide_data(folder / "data" / "slide")
    with small_disk(folder / "disk") as disk:
        cases = (_collecting(folder, disk), _training(folder, disk, data), _looking(folder, disk, data, quick))
        for case in chain.from_iterable(cases):  # each is prepared when those before it are through
            yield _tried(case, disk)


def _tried(case: Case, disk: Disk) -> Row:
    kept, wrong = case.kept(), []
    full = attempt(lambda: case.do(disk.fill))
    disk.free()
    if not full.told:
        wrong.append(f"no message but code {full.code}: {full.said[-300:]}")
    if case.kept() != kept:
        wrong.append("what was there before is not there any more")
    again = attempt(lambda: case.do(lambda: None))
    if again.code:
        wrong.append(f"with room again, code {again.code}: {again.said[-300:]}")
    elif case.result() != case.expected:
        wrong.append("with room again, it came to another result")
    told = full.said.strip().rpartition("gcb: ")[2].replace(f"{disk.path}/", "")
    said = f"“{' '.join(told.split())}” What was there stayed; with room again it came to the undisturbed result"
    return row(disk.name, case.name, 1, said, wrong)


def _collecting(folder: Path, disk: Disk) -> Iterator[Case]:
    def do(fill: Callable[..., None]) -> None:
        if fill == disk.fill:
            disk.fill(200_000)
        stage.collect_numbers(disk.path / "data", 200, side=32)

    stage.collect_numbers(folder / "whole", 200, side=32)
    expected = stage.files_of(folder / "whole")
    yield Case("collection", do, lambda: None, lambda: stage.files_of(disk.path / "data"), expected)


def _training(folder: Path, disk: Disk, data: Path) -> Iterator[Case]:
    out, config = disk.path / "run", stage.small_config(steps=4, checkpoint_every=2)
    train(config, data, folder / "run", quiet=True)

    def do(fill: Callable[[], None]) -> None:
        def at_checkpoint(agent: Agent, step: int) -> dict[str, float]:
            fill()
            return {}

        train(config, data, out, quiet=True, on_checkpoint=at_checkpoint)

    def kept() -> Any:
        """Before, there is nothing; after the failure, the checkpoint before it must be whole."""
        if out.exists():
            assert Run(out).weights()[1].step == 2
            Run(out).state()

    yield Case(
        "training, at its second checkpoint", do, kept, lambda: stage.learned(out), stage.learned(folder / "run")
    )


def _looking(folder: Path, disk: Disk, data: Path, quick: bool) -> Iterator[Case]:
    """What is made of a finished run and of a dataset; `run` was trained on the small disk before."""
    out, other = disk.path / "run", folder / "run"

    def case(name: str, do: Callable[[Path, int], object], path: str) -> Case:
        def content(run: Path) -> Any:
            found = run / path
            return stage.files_of(found) if found.is_dir() else found.read_bytes() if found.exists() else None

        def filled(fill: Callable[[], None]) -> None:
            fill()
            do(out, 1)

        do(out, 0)
        do(other, 0)
        do(other, 1)
        return Case(name, filled, lambda: content(out), lambda: content(out), content(other))

    def looked(run: Path, seed: int) -> None:
        analyse(run, size=stage.LITTLE, seed=seed, workers=1, quiet=True)

    def played(run: Path, seed: int) -> None:
        evaluate_run(run, ["goal"], episodes=3, batch=3, seed=seed, videos=False, quiet=True)

    def reported(run: Path, number: int) -> None:
        write_report([other], run / "report.html", title=str(number), when=WHEN)

    yield case("evaluation", played, EVAL)
    if not quick:
        yield case("analysis", looked, ANALYSIS_DIR)
    yield case("report", reported, "report.html")
    yield from _giving_away(folder, disk, data)


def _giving_away(folder: Path, disk: Disk, data: Path) -> Iterator[Case]:
    def dataset(fill: Callable[[], None]) -> None:
        fill()
        export_data(open_dataset(data), disk.path / "data.npz", quiet=True)

    def agent(fill: Callable[[], None]) -> None:
        fill()
        export_run(folder / "run", disk.path / "agent")

    def sweep(fill: Callable[[], None]) -> None:
        fill()
        stage.sweep(disk.path / "sweep", data.parent, seeds=1, workers=1)

    export_data(open_dataset(data), folder / "data.npz", quiet=True)
    yield Case(
        "export of a dataset",
        dataset,
        _nothing,
        (disk.path / "data.npz").read_bytes,
        (folder / "data.npz").read_bytes(),
    )
    export_run(folder / "run", folder / "agent")
    files = stage.files_of(folder / "agent")
    yield Case("export of an agent", agent, _nothing, lambda: stage.files_of(disk.path / "agent"), files)
    attempt(lambda: stage.sweep(folder / "sweep", data.parent, seeds=1, workers=1))
    expected = stage.rows_of_sweep(folder / "sweep")
    yield Case("sweep", sweep, _nothing, lambda: stage.rows_of_sweep(disk.path / "sweep"), expected)


def _nothing() -> None:
    """There was nothing before."""
