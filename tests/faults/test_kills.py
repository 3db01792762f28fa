"""kill -9 at random moments and at every write: saved work is never lost, and resuming gives an undisturbed result."""

import os
import shutil
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from helpers.counting_env import collect_numbers
from helpers.fault_table import in_words
from helpers.faults import AT_WRITE, die_at_write, files_of, run_forked, wait_until
from helpers.small_runs import (
    analyse_small,
    content_of_run,
    results_of_sweep,
    run_gcb,
    small_sweep_args,
    train_small,
)

from gcb.analysis.analyse import ANALYSIS_DIR, FIGURES, read_numbers
from gcb.data import CollectConfig, collect, open_dataset
from gcb.data.format import MANIFEST, PARTIAL
from gcb.data.output_dir import JOURNAL
from gcb.errors import GCBError
from gcb.runs.evaluations import read_results
from gcb.runs.run_dir import CHECKPOINT, RECORD, Run
from gcb.utils.files import directory_lock
from gcb.utils.text_files import read_json

SEED = 7
KILLS_PER_DIRECTORY = 7


class Job(NamedTuple):
    """A job in a directory that can be killed and resumed."""

    name: str
    run: Callable[[Path], object]
    inspect: Callable[[Path], tuple[str, float]]
    """Return the phase that a kill has hit, and how much work is saved. Fails if saved work cannot be read."""
    result: Callable[[Path], Any]
    """Return everything the job has made, to compare with an undisturbed one."""
    prepare: Callable[[Path], object] = lambda out: None


@pytest.fixture
def kill_repeatedly(tmp_path: Path, full: bool, record: Callable) -> Callable[[Job], None]:
    """Kill a job at random moments and resume it until it completes, each directory several times."""

    def kill_repeatedly(job: Job) -> None:
        phases: Counter[str] = Counter()
        rng, kills = np.random.default_rng(SEED), 20 if full else 2
        job.prepare(tmp_path / "whole")
        whole = run_forked(lambda: job.run(tmp_path / "whole"))
        assert whole.code == 0, whole.output
        expected, seconds, directories = job.result(tmp_path / "whole"), whole.seconds, 0
        while phases.total() < kills and directories < 5 * kills:
            out = tmp_path / f"killed-{directories}"
            job.prepare(out)
            planned = min(KILLS_PER_DIRECTORY, kills - phases.total())
            # A job that ends before its first kill is faster than the first: the machine was busier before.
            seconds = min(seconds, _kill_and_resume(job, out, seconds, planned, rng, phases))
            assert job.result(out) == expected, f"resumed after kills {in_words(phases)}"
            shutil.rmtree(out)
            directories += 1
        outcome = f"no saved work lost; {directories} runs resumed to the end match an undisturbed one"
        record("kill -9", job.name, phases.total(), f"{outcome}. Killed: {in_words(phases)}")

    return kill_repeatedly


def _kill_and_resume(
    job: Job, out: Path, seconds: float, kills: int, rng: np.random.Generator, phases: Counter[str]
) -> float:
    """Kill a job up to `kills` times, then let it complete; return how long it takes undisturbed, as far as known."""
    saved_before = 0.0
    for remaining in range(kills, -1, -1):
        ended = run_forked(lambda: job.run(out), rng.uniform(0, seconds) if remaining else None)
        if not ended.killed:
            assert ended.code == 0, ended.output
            return ended.seconds if remaining == kills else seconds
        phase, saved = job.inspect(out)
        assert saved >= saved_before, f"killed {phase}: {saved_before:g} was saved before, {saved:g} is now"
        saved_before = saved
        phases[phase] += 1
    raise AssertionError("the last attempt is not killed")


def inspect_dataset(out: Path) -> tuple[str, float]:
    if (out / MANIFEST).exists():
        return "after completion", float(open_dataset(out).transitions)
    journal = out / PARTIAL / JOURNAL
    saved = float(read_json(journal)["transitions"]) if journal.is_file() else 0.0
    if (out / PARTIAL / MANIFEST).exists():
        return "while files were moved", saved
    return ("between episodes" if saved else "before the first episode"), saved


def inspect_run(out: Path) -> tuple[str, float]:
    if not (out / RECORD).is_file() or not (out / CHECKPOINT).is_file():
        return "before the first checkpoint", 0.0
    run = Run(out)
    _, checkpoint = run.weights()
    run.state()
    current = f"{checkpoint.step:08d}"
    incomplete = [*out.glob(".*.tmp"), *(path for path in out.glob("weights-*") if current not in path.name)]
    return ("while writing a checkpoint" if incomplete else "between checkpoints"), float(checkpoint.step)


def inspect_sweep(out: Path) -> tuple[str, float]:
    """Count the steps and evaluations that are saved, over all runs."""
    runs = sorted((out / "runs").glob("*"))
    for run in runs:
        wait_until(lambda run=run: _is_free(run))  # workers end with their sweep, but not in the same moment
    steps = sum(inspect_run(run)[1] for run in runs)
    evaluations = sum(len(read_results(run)) for run in runs)
    phase = "before the first checkpoint" if not steps else "in training" if not evaluations else "in evaluation"
    return phase, steps + evaluations


def _is_free(directory: Path) -> bool:
    try:
        with directory_lock(directory):
            return True
    except GCBError:
        return False


def test_collection(kill_repeatedly: Callable) -> None:
    def run(out: Path) -> None:
        collect_numbers(out, 300, pause=0.003)

    kill_repeatedly(Job("collection, fake environment", run, inspect_dataset, files_of))


def test_collection_in_pybullet(kill_repeatedly: Callable) -> None:
    pytest.importorskip("pybullet")
    config = CollectConfig("gcb/Drawer-v0", 240, options={"image_size": 16})

    def run(out: Path) -> None:
        collect(config, out, quiet=True, checkpoint_seconds=0)

    kill_repeatedly(Job("collection in PyBullet", run, inspect_dataset, files_of))


def test_training(kill_repeatedly: Callable, data: Path) -> None:
    def run(out: Path) -> None:
        train_small(out, data)

    kill_repeatedly(Job("training, a checkpoint every step", run, inspect_run, content_of_run))


def test_sweep(kill_repeatedly: Callable, data: Path) -> None:
    def run(out: Path) -> None:
        run_gcb(*small_sweep_args(out, data.parent, runs=2))

    kill_repeatedly(Job("sweep, two runs at a time", run, inspect_sweep, results_of_sweep))


def test_analysis(kill_repeatedly: Callable, data: Path, tmp_path: Path) -> None:
    """An analysis that replaces an earlier one, whose files stay until the new ones are complete."""
    original = train_small(tmp_path / "run", data, steps=2)
    analyse_small(original, seed=1)
    before = files_of(original / ANALYSIS_DIR)

    def inspect(out: Path) -> tuple[str, float]:
        now = files_of(out / ANALYSIS_DIR)
        assert before.keys() <= now.keys()
        if read_numbers(out)["about"]["seed"] == 2:
            return "after completion", 2.0
        new = any(now[f"{name}.png"] != before.get(f"{name}.png") for name in FIGURES if f"{name}.png" in now)
        return ("while files were replaced" if new else "in the analysis"), float(new)

    def result(out: Path) -> dict[str, bytes]:
        files = files_of(out / ANALYSIS_DIR)
        return {name: content for name, content in files.items() if not name.startswith(".")}

    def run(out: Path) -> None:
        analyse_small(out, seed=2)

    prepare = lambda out: shutil.copytree(original, out)  # noqa: E731
    kill_repeatedly(Job("analysis that replaces an earlier one", run, inspect, result, prepare))


def _collect_18(out: Path, data: Path) -> None:
    collect_numbers(out, 18)


def _train_2(out: Path, data: Path) -> None:
    train_small(out, data, steps=2)


@pytest.mark.parametrize(
    ("name", "job", "result", "stride"),
    [
        ("collection of 18 transitions", _collect_18, files_of, 1),
        ("training of two steps", _train_2, content_of_run, 7),
    ],
)
def test_death_at_every_write(
    name: str, job: Callable, result: Callable, stride: int, tmp_path: Path, data: Path, full: bool, record: Callable,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """End at each fsync and rename in turn (every `stride`-th in the short form), and resume."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # only a power cut needs it
    job(tmp_path / "whole", data)
    expected, deaths = result(tmp_path / "whole"), 0
    for call in count(1, 1 if full else stride):
        out = tmp_path / str(call)
        ended = run_forked(die_at_write(call, lambda out=out: job(out, data)))
        assert ended.code in (0, AT_WRITE), ended.output
        job(out, data)
        assert result(out) == expected, f"ended at write {call}"
        shutil.rmtree(out)
        if ended.code == 0:
            break
        deaths += 1
    assert deaths * (1 if full else stride) > 20
    record("kill -9", f"{name}, at each fsync and rename in turn", deaths, "every resumed one matches bit for bit")
