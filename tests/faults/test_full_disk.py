"""A full disk: a clear message, nothing lost, and the same command completes once there is space."""

import json
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.counting_env import collect_numbers
from helpers.faults import files_of, run_forked
from helpers.small_runs import (
    analyse_small,
    content_of_run,
    results_of_sweep,
    run_gcb,
    small_sweep_args,
    train_small,
)

from gcb.agent.agent import Agent
from gcb.agent.export import export_run
from gcb.analysis.analyse import ANALYSIS_DIR
from gcb.data import export_data, import_data, open_dataset
from gcb.errors import GCBError
from gcb.evaluation.evaluate import evaluate_run
from gcb.report.report import write_report
from gcb.runs.run_dir import EVAL, Run

MEGABYTES = 24
WHEN = datetime(2024, 1, 1)

Fill = Callable[..., None]


class Disk:
    """A small disk that can be filled: a tmpfs of its own, or a limit on the size of files if it cannot be mounted."""

    def __init__(self, path: Path, mounted: bool) -> None:
        self.path, self.ballast, self.mounted = path, path / "ballast", mounted

    def fill(self, free: int = 0) -> None:
        """Leave `free` bytes. Without a tmpfs this limits the files of the calling process."""
        if not self.mounted:
            resource.setrlimit(resource.RLIMIT_FSIZE, (free, resource.RLIM_INFINITY))
            return
        status = os.statvfs(self.path)
        with open(self.ballast, "wb") as ballast:
            os.posix_fallocate(ballast.fileno(), 0, status.f_bavail * status.f_frsize - free)


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    path = tmp_path_factory.mktemp("disk")
    command = ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "gcb-faults", str(path)]
    mounted = os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    yield Disk(path, mounted)
    if mounted:
        subprocess.run(["umount", str(path)], check=True)


@pytest.fixture
def fill_during(disk: Disk, record: Callable) -> Callable[..., None]:
    """Run a job, which calls its argument to fill the disk; then run it again with space."""

    def fill_during(name: str, job: Callable[[Fill], object], result: Callable[[], Any], expected: Any) -> None:
        failed = run_forked(lambda: job(disk.fill))
        disk.ballast.unlink(missing_ok=True)
        assert failed.message, failed.output
        repeated = run_forked(lambda: job(lambda *_: None))
        assert repeated.code == 0, repeated.output
        assert result() == expected
        message = failed.message.replace(f"{disk.path}/", "")
        kind = "full disk (tmpfs)" if disk.mounted else "full disk (RLIMIT_FSIZE)"
        record(kind, name, 1, f"“{message}” Nothing lost; with space, the result matches an undisturbed one")

    return fill_during


@pytest.fixture(scope="module")
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_small(tmp_path_factory.mktemp("undisturbed") / "run", data, steps=4, checkpoint_every=2)


def test_collection(fill_during: Callable, disk: Disk, tmp_path: Path) -> None:
    out = disk.path / "data"

    def job(fill: Fill) -> None:
        saved = 0
        if (out / ".partial").exists():
            saved = json.loads((out / ".partial/journal.json").read_bytes())["transitions"]
            assert 0 < saved < 200
            with pytest.raises(GCBError, match="unfinished"):
                open_dataset(out)
        fill(200_000)
        assert collect_numbers(out, 200, side=32).start_transitions == saved

    collect_numbers(tmp_path / "data", 200, side=32)
    fill_during("collection", job, lambda: files_of(out), files_of(tmp_path / "data"))


def test_training(fill_during: Callable, disk: Disk, data: Path, run: Path) -> None:
    """The second checkpoint cannot be written; the first one stays."""
    out = disk.path / "run"

    def job(fill: Fill) -> None:
        def on_checkpoint(agent: Agent, step: int) -> Mapping[str, float]:
            fill()
            return {}

        if out.exists():
            assert Run(out).weights()[1].step == 2
            Run(out).state()
        train_small(out, data, on_checkpoint, steps=4, checkpoint_every=2)

    fill_during("training, at its second checkpoint", job, lambda: content_of_run(out), content_of_run(run))


def _evaluate(run: Path, seed: int) -> None:
    evaluate_run(run, ["goal"], episodes=3, batch=3, seed=seed, videos=False, quiet=True)


def _report(run: Path, number: int) -> None:
    write_report([run], run / "report.html", title=str(number), when=WHEN)


@pytest.mark.parametrize(
    ("name", "function", "output"),
    [("evaluation", _evaluate, EVAL), ("analysis", analyse_small, ANALYSIS_DIR), ("report", _report, "report.html")],
)
def test_commands_that_replace_files(
    name: str, function: Callable[[Path, int], None], output: str, fill_during: Callable, disk: Disk, run: Path,
    tmp_path: Path, full: bool,
) -> None:  # fmt: skip
    """A second call replaces the files of the first, which must stay when it fails."""
    if name == "analysis" and not full:
        pytest.skip("only in the long form")
    runs = [path / f"{name}-run" for path in (tmp_path, disk.path)]
    for path in runs:
        shutil.copytree(run, path)
        function(path, 0)
    function(runs[0], 1)
    before = files_of(runs[1])

    def job(fill: Fill) -> None:
        assert files_of(runs[1]) == before
        fill()
        function(runs[1], 1)

    def content(path: Path) -> Any:
        if path.is_dir():
            return files_of(path)
        return re.sub(rb'"date": "[^"]*"', b"", path.read_bytes()).replace(bytes(path.parent), b"RUN")

    fill_during(name, job, lambda: content(runs[1] / output), content(runs[0] / output))


def test_export_of_a_dataset(fill_during: Callable, disk: Disk, data: Path, tmp_path: Path) -> None:
    def job(fill: Fill) -> None:
        fill()
        export_data(open_dataset(data), disk.path / "data.npz", quiet=True)

    export_data(open_dataset(data), tmp_path / "data.npz", quiet=True)
    expected = (tmp_path / "data.npz").read_bytes()
    fill_during("export of a dataset", job, lambda: (disk.path / "data.npz").read_bytes(), expected)


def test_export_of_a_dataset_to_minari(fill_during: Callable, disk: Disk, data: Path, tmp_path: Path) -> None:
    pytest.importorskip("minari")
    out = disk.path / "full-v0"

    def job(fill: Fill) -> None:
        fill(1_500_000)  # enough for some of the episodes
        export_data(open_dataset(data), out, quiet=True)

    def content() -> Any:
        return import_data(out, tmp_path / "back", quiet=True).dataset.arrays()["frames"].tobytes()

    fill_during("export of a dataset to Minari", job, content, np.asarray(open_dataset(data).frames).tobytes())


def test_export_of_an_agent(fill_during: Callable, disk: Disk, run: Path, tmp_path: Path) -> None:
    def job(fill: Fill) -> None:
        fill()
        export_run(run, disk.path / "agent")

    export_run(run, tmp_path / "agent")
    fill_during("export of an agent", job, lambda: files_of(disk.path / "agent"), files_of(tmp_path / "agent"))


def test_sweep(fill_during: Callable, disk: Disk, data: Path, tmp_path: Path) -> None:
    def job(fill: Fill, out: Path = disk.path / "sweep") -> None:
        fill()
        run_gcb(*small_sweep_args(out, data.parent))

    assert run_forked(lambda: job(lambda: None, tmp_path / "sweep")).code == 0
    expected = results_of_sweep(tmp_path / "sweep")
    fill_during("sweep", job, lambda: results_of_sweep(disk.path / "sweep"), expected)
