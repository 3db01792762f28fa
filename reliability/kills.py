"""kill -9 at random moments: what was sure stays, and what is gone on with ends as if nothing had happened."""

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gcb.analysis.analyse import ANALYSIS_DIR, FIGURES, NUMBERS, analyse, read_numbers
from gcb.data import CollectConfig, collect, open_dataset
from gcb.data.format import MANIFEST, PARTIAL
from gcb.data.output_dir import JOURNAL
from gcb.errors import GCBError
from gcb.runs.run_dir import CHECKPOINT, RECORD, Run, read_results
from gcb.training.trainer import train
from gcb.utils.files import directory_lock, read_json
from reliability import stage
from reliability.attempts import attempt
from reliability.rows import Row, counted, row

SEED = 7
KILLS = {False: 20, True: 2}
IN_ONE_FOLDER = 7
"""Kills before a job is left to come to its end."""
PATIENCE = 30.0


class Work(NamedTuple):
    """A job in a folder that can be killed and gone on with."""

    name: str
    do: Callable[[Path], object]
    look: Callable[[Path], tuple[str, float]]
    """Where a kill has hit it, and how much of it is sure by now; raises if what is sure cannot be read."""
    result: Callable[[Path], Any]
    """All that it has made, to compare with an undisturbed one."""
    prepare: Callable[[Path], object] = lambda out: None


def run(folder: Path, quick: bool) -> Iterator[Row]:
    """Every job that takes long, killed at moments drawn over the time that it takes undisturbed."""
    data = stage.slide_data(folder / "data" / "slide")
    rng = np.random.default_rng(SEED)
    for number, work in enumerate((_collection(), _real_collection(), _training(data), _sweep(data), _analysis(data))):
        yield killed_often(work, folder / str(number), KILLS[quick], rng)
    yield _at_every_write(data, folder / "writes", 7 if quick else 1)


def killed_often(work: Work, folder: Path, kills: int, rng: np.random.Generator) -> Row:
    """Kill and go on, again and again; every now and then let it end, and compare."""
    phases: Counter[str] = Counter()
    ended = compared = 0
    wrong: list[str] = []
    whole = _place(work, folder / "whole")
    first = attempt(lambda: work.do(whole))
    if first.code:
        return row("kill -9", work.name, 0, "", [f"undisturbed it ended with code {first.code}: {first.said[-200:]}"])
    expected, seconds = work.result(whole), first.seconds
    for number in count():
        if phases.total() >= kills or wrong or ended > 5 * kills:
            break
        out = _place(work, folder / f"killed-{number}")
        faults, took = _one_folder(work, out, seconds, min(IN_ONE_FOLDER, kills - phases.total()), rng, phases)
        # What ends before its first kill is faster than thought: the machine had more to do before.
        wrong, seconds = wrong + faults, min(seconds, took)
        compared, ended = compared + 1, ended + 1
        if not wrong and work.result(out) != expected:
            wrong.append("gone on with, it came to another result than undisturbed")
        shutil.rmtree(out)
    hit = counted(phases.items())
    said = f"nothing sure was lost; {compared} gone on with to the end, equal to undisturbed. Hit: {hit}"
    return row("kill -9", work.name, phases.total(), said, wrong)


def _one_folder(
    work: Work, out: Path, seconds: float, kills: int, rng: np.random.Generator, phases: Counter[str]
) -> tuple[list[str], float]:
    """Kill a job so often, unless it ends before, then let it end: what went wrong, how long it takes undisturbed."""
    sure = 0.0
    for left in range(kills, -1, -1):
        tried = attempt(lambda: work.do(out), rng.uniform(0, seconds) if left else None)
        if not tried.killed:
            wrong = [] if tried.code == 0 else [f"code {tried.code}: {tried.said[-300:]}"]
            return wrong, tried.seconds if left == kills else seconds
        try:
            phase, now = work.look(out)
        except GCBError as error:
            return [f"after a kill: {error}"], seconds
        if now < sure:
            return [f"{phase}: {sure:g} was sure before a kill, and {now:g} after it"], seconds
        sure = now
        phases[phase] += 1
    return ["unreachable: the last attempt is not killed"], seconds


def _place(work: Work, out: Path) -> Path:
    out.parent.mkdir(parents=True, exist_ok=True)
    work.prepare(out)
    return out


def _collection() -> Work:
    def do(out: Path) -> None:
        stage.collect_numbers(out, 300, workers=1, pause=0.003)

    return Work("collection, counted pictures", do, _look_at_dataset, stage.files_of)


def _real_collection() -> Work:
    config = CollectConfig("gcb/Drawer-v0", 240, options={"image_size": 16})

    def do(out: Path) -> None:
        collect(config, out, quiet=True, checkpoint_seconds=0)

    return Work("collection in PyBullet", do, _look_at_dataset, stage.files_of)


def _look_at_dataset(out: Path) -> tuple[str, float]:
    if (out / MANIFEST).exists():
        return "when all was in place", float(open_dataset(out).transitions)
    journal = out / PARTIAL / JOURNAL
    sure = float(read_json(journal)["transitions"]) if journal.is_file() else 0.0
    if (out / PARTIAL / MANIFEST).exists():
        return "while files were moved", sure
    return ("between episodes" if sure else "before the first episode"), sure


def _training(data: Path) -> Work:
    def do(out: Path) -> None:
        train(stage.small_config(), data, out, quiet=True)

    return Work("training, a checkpoint every step", do, _look_at_run, stage.learned)


def _look_at_run(out: Path) -> tuple[str, float]:
    if not (out / RECORD).is_file() or not (out / CHECKPOINT).is_file():
        return "before the first checkpoint", 0.0
    found = Run(out)
    _, checkpoint = found.weights()
    found.state()
    halves = list(out.glob(".*.tmp")) + [
        one for one in out.glob("weights-*") if f"{checkpoint.step:08d}" not in one.name
    ]
    return ("while a checkpoint was written" if halves else "between checkpoints"), float(checkpoint.step)


def _sweep(data: Path) -> Work:
    def do(out: Path) -> None:
        stage.sweep(out, data.parent)

    return Work("sweep of two runs, two at a time", do, _look_at_sweep, stage.rows_of_sweep)


def _look_at_sweep(out: Path) -> tuple[str, float]:
    """Steps and evaluations that are sure, over all runs."""
    runs = sorted((out / "runs").glob("*"))
    for one in runs:
        _wait_until_free(one)
    sure = sum(_look_at_run(one)[1] for one in runs)
    evaluations = sum(len(read_results(one)) for one in runs)
    words = "before the first checkpoint" if not sure else "in training" if not evaluations else "in evaluation"
    return words, sure + evaluations


def _wait_until_free(folder: Path) -> None:
    """Workers end when their sweep is gone, but not in the same moment."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            with directory_lock(folder):
                return
        except GCBError:
            time.sleep(0.01)
    raise GCBError(f"a worker still holds {folder}, {PATIENCE:g} s after its sweep was killed")


def _analysis(data: Path) -> Work:
    """An analysis in the place of an earlier one, whose files must be whole until its own are."""
    pattern = stage.trained(data.parent / "run", data, steps=2)
    analyse(pattern, size=stage.LITTLE, seed=1, workers=1, quiet=True)
    before = stage.files_of(pattern / ANALYSIS_DIR)

    def do(out: Path) -> None:
        analyse(out, size=stage.LITTLE, seed=2, workers=1, quiet=True)

    def look(out: Path) -> tuple[str, float]:
        now = stage.files_of(out / ANALYSIS_DIR)
        fresh = sum(now[f"{name}.png"] != before.get(f"{name}.png") for name in FIGURES if f"{name}.png" in now)
        if before.keys() - now.keys():
            raise GCBError(f"{min(before.keys() - now.keys())} is gone")
        if read_numbers(out)["about"]["seed"] == 2:
            return "when all was in place", 2.0
        return ("while files were replaced" if fresh else "in the analysis"), float(bool(fresh))

    def result(out: Path) -> dict[str, bytes]:
        return {
            name: content for name, content in stage.files_of(out / ANALYSIS_DIR).items() if not name.startswith(".")
        }

    assert NUMBERS in before
    return Work("analysis in the place of an earlier one", do, look, result, lambda out: shutil.copytree(pattern, out))


def _at_every_write(data: Path, folder: Path, stride: int) -> Row:
    """Training that vanishes at each fsync and each rename in turn, not at random."""
    config, wrong, done = stage.small_config(steps=2), [], 0
    train(config, data, folder / "whole", quiet=True)
    expected = stage.learned(folder / "whole")
    for call in count(1, stride):
        out = folder / str(call)
        ended = attempt(stage.dying_at(call, lambda out=out: train(config, data, out, quiet=True)))
        if ended.code != 9:
            break
        _look_at_run(out)
        train(config, data, out, quiet=True)
        done += 1
        if stage.learned(out) != expected:
            wrong.append(f"ended at write {call}, it came to another result")
        shutil.rmtree(out)
    said = "gone on with, each equal to undisturbed, bit for bit"
    return row("kill -9", "training of two steps, ended at each fsync and each rename in turn", done, said, wrong)
