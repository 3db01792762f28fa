"""Random damage to datasets, runs, analyses and sweeps: a correct result or a message, never a traceback.

A wrong result is accepted only from a damaged JSON or YAML file, or image: they carry no hash.
"""

import io
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import gcb
from gcb.analysis import scenes
from gcb.analysis.analyse import ANALYSIS_DIR, NUMBERS, analyse
from gcb.data import open_dataset
from gcb.envs.spec import EnvSpec
from gcb.errors import GCBError
from gcb.evaluation.evaluate import evaluate_run
from gcb.report.report import write_report
from gcb.runs.config import read_config, write_config
from gcb.runs.run_dir import EVAL, METRICS, read_results
from gcb.sweep.grid import read_grid
from gcb.training.trainer import train
from reliability import damage, stage
from reliability.attempts import attempt
from reliability.rows import Row, counted, row

SEED = 11
TIMES = {False: 40, True: 4}
"""Corruptions of each part; the cheap ones get more."""
WHEN = datetime(2024, 1, 1)
KEY = scenes.SceneConfig(EnvSpec("none"), 0)


class Part(NamedTuple):
    """A folder that is damaged, and what is done with it afterwards."""

    name: str
    folder: str
    uses: dict[str, Callable[[Path], Any]]
    """By name; each gives a result that must be as if nothing was damaged, or raises a GCBError."""
    share: float = 1.0
    """Of the corruptions."""
    strict: bool = True
    """Whether a changed result is wrong: not so in a file that a user writes himself."""


def run(folder: Path, quick: bool) -> Iterator[Row]:
    """One random corruption at a time, each in a fresh copy."""
    house = build(folder / "house")
    rng = np.random.default_rng(SEED)
    for part in parts(house):
        yield _tried(part, house, folder / "copy", max(3, round(part.share * TIMES[quick])), rng)


def build(house: Path) -> Path:
    """Everything that gcb writes, small."""
    data = stage.slide_data(house / "data" / "slide")
    finished = stage.trained(house / "run", data, steps=3)
    evaluate_run(finished, ["goal"], episodes=3, batch=3, videos=False, quiet=True)
    analyse(finished, size=stage.LITTLE, workers=1, quiet=True)
    attempt(stage.dying_at(33, lambda: train(stage.small_config(steps=4), data, house / "begun", quiet=True)))
    attempt(stage.dying_at(60, lambda: stage.collect_numbers(house / "partial", 40)))
    _used(lambda out: _sweep(out, data.parent), house / "sweep")
    (house / "own").mkdir()
    write_config(house / "own" / "settings.yaml", stage.small_config())
    (house / "own" / "grid.yaml").write_text("methods: [gcb]\nseeds: [0, 1]\noverrides: {steps: 5}\nepisodes: 3\n")
    (house / "scenes").mkdir()
    fakes: dict[str, Any] = {name: np.arange(24.0).reshape(2, 12) for name in scenes.Scenes.__dataclass_fields__}
    np.savez_compressed(house / "scenes" / scenes.CACHE_FILE, key=np.array(scenes._cache_key(KEY)), **fakes)
    return house


def parts(house: Path) -> list[Part]:
    data = house / "data" / "slide"
    return [
        Part("dataset", "data/slide", {"gcb data check": _checked, "gcb train": _learned_from}),
        Part("unfinished collection", "partial", {"gcb collect": _collected}),
        Part("run", "run", {"gcb.load": _acted, "gcb eval": _evaluated, "gcb report": _reported}, 1.5),
        Part("unfinished run", "begun", {"gcb train": lambda run: _went_on(run, data)}),
        Part("sweep", "sweep", {"gcb sweep": lambda out: _sweep(out, data.parent)}, 0.5),
        Part("kept scenes of an analysis", "scenes", {"gcb analyse": _kept_scenes}, 2.0),
        Part("settings and grid of a user", "own", {"--settings": _settings, "gcb sweep": _grid}, 1.5, strict=False),
    ]


def _tried(part: Part, house: Path, copy: Path, times: int, rng: np.random.Generator) -> Row:
    """Damage a copy, use it, and see: as before, or a message."""
    expected = {name: _used(use, _copied(house / part.folder, copy)) for name, use in part.uses.items()}
    outcomes: Counter[str] = Counter()
    wrong = [f"undamaged: {name}: {found[1]}" for name, found in expected.items() if found[0] != "result"]
    for _ in range(times):
        done, excused = damage.some(_copied(house / part.folder, copy), rng)
        damaged = copy.with_name("damaged")
        shutil.rmtree(damaged, ignore_errors=True)
        copy.rename(damaged)
        for name, use in part.uses.items():
            kind, found = _used(use, _copied(damaged, copy))
            same = found == expected[name][1]
            if kind == "broken" or (part.strict and not excused and kind == "result" and not same):
                wrong.append(f"{done}; {name}: {found if kind == 'broken' else 'another result, and no message'}")
            result = "correct result" if same else "another valid value, unnoticed"
            outcomes["said what is wrong" if kind == "told" else result] += 1
    said = f"{counted(outcomes.items())}, by {', '.join(part.uses)}"
    return row("corruption", part.name, times, said, wrong)


def _copied(source: Path, copy: Path) -> Path:
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source, copy, symlinks=True)
    return copy


def _used(use: Callable[[Path], Any], folder: Path) -> tuple[str, Any]:
    """A result, a message ("told"), or anything else that a user should never see ("broken")."""
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            return "result", use(folder)
    except GCBError as error:
        return "told", str(error)
    except Exception as error:  # this is what is looked for
        return "broken", f"{type(error).__name__}: {error}"


def _checked(folder: Path) -> Any:
    dataset = open_dataset(folder)
    dataset.verify()
    return {name: array.tobytes() for name, array in dataset.arrays().items()}, dict(dataset.config)


def _learned_from(folder: Path) -> Any:
    fresh = folder.with_name("fresh")
    shutil.rmtree(fresh, ignore_errors=True)
    return stage.learned(stage.trained(fresh, folder, steps=1))


def _collected(folder: Path) -> Any:
    stage.collect_numbers(folder, 40)
    return stage.files_of(folder)


def _acted(run: Path) -> Any:
    agent = gcb.load(run)
    seen = np.full((2, *agent.shapes.observation), 77, np.uint8)
    return agent.act(seen, goal=seen + 9).tobytes()


def _evaluated(run: Path) -> Any:
    evaluate_run(run, ["goal"], episodes=2, batch=2, seed=5, videos=False, quiet=True)
    return read_results(run)


def _reported(run: Path) -> Any:
    page = write_report([run], run.with_name("report.html"), when=WHEN).read_bytes()
    if absent := [name for name in (EVAL, METRICS, f"{ANALYSIS_DIR}/{NUMBERS}") if not (run / name).exists()]:
        raise GCBError(f"the page says that there is no {absent[0]}")
    return page


def _went_on(run: Path, data: Path) -> Any:
    """Where it stands and every weight; curves begin anew for one who has deleted them."""
    train(stage.small_config(steps=4), data, run, quiet=True)
    return stage.learned(run)[:3]


def _sweep(out: Path, data_root: Path) -> Any:
    """The rows of results.csv; jobs are done in this process. A run that fails is a message, as it is for the user."""
    from helpers.small_sweeps import InlinePool

    with mock.patch("gcb.sweep.pools.LocalPool", InlinePool), mock.patch("gcb.sweep.scheduler.POLL_SECONDS", 0.0):
        try:
            stage.command(*stage.sweep_words(out, data_root, seeds=1))()
        except SystemExit as ended:
            raise GCBError(f"the sweep says that a run failed, and ends with code {ended.code}") from ended
    return stage.rows_of_sweep(out)


def _kept_scenes(folder: Path) -> Any:
    """Damaged, they are made anew, which is as good as a message."""
    found = scenes._read_cache(folder / scenes.CACHE_FILE, scenes._cache_key(KEY))
    if found is None:
        raise GCBError("they are made anew")
    return {name: column.tobytes() for name, column in found.items()}


def _settings(folder: Path) -> Any:
    return read_config(folder / "settings.yaml")


def _grid(folder: Path) -> Any:
    return read_grid(folder / "grid.yaml")
