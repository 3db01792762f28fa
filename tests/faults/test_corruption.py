"""Random corruption of datasets, runs, analyses and sweeps: a correct result or one clear message, never a traceback.

Only files without a hash (JSON, YAML, CSV, figures) may give a different result without a message.
"""

import io
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest
from helpers.corruption import corrupt_one
from helpers.counting_env import collect_numbers
from helpers.fault_table import in_words
from helpers.faults import die_at_write, files_of, run_forked
from helpers.small_runs import (
    analyse_small,
    content_of_run,
    results_of_sweep,
    run_gcb,
    small_config,
    small_sweep_args,
    train_small,
    write_slide_dataset,
)
from helpers.small_sweeps import InlinePool

import gcb
from gcb.analysis import scenes
from gcb.analysis.analyse import ANALYSIS_DIR, NUMBERS
from gcb.data import open_dataset
from gcb.envs.spec import EnvSpec
from gcb.errors import GCBError
from gcb.evaluation.evaluate import evaluate_run
from gcb.report.report import write_report
from gcb.runs.config import read_config, write_config
from gcb.runs.run_dir import CHECKPOINT, EVAL, METRICS
from gcb.sweep.grid import read_grid

SEED = 11
WHEN = datetime(2024, 1, 1)
SCENES = scenes.SceneConfig(EnvSpec("none"), 0)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with everything that gcb writes, small; tests corrupt copies."""
    path = tmp_path_factory.mktemp("originals")
    data = write_slide_dataset(path / "datasets" / "slide")
    run = train_small(path / "run", data, steps=3)
    evaluate_run(run, ["goal"], episodes=3, batch=3, videos=False, quiet=True)
    analyse_small(run)
    run_forked(die_at_write(33, lambda: train_small(path / "unfinished_run", data, steps=4)))
    run_forked(die_at_write(60, lambda: collect_numbers(path / "unfinished_data", 40)))
    use(sweep, path / "sweep")
    (path / "settings").mkdir()
    write_config(path / "settings" / "settings.yaml", small_config())
    (path / "settings" / "grid.yaml").write_text("methods: [gcb]\nseeds: [0, 1]\noverrides: {steps: 5}\nepisodes: 3\n")
    (path / "scenes").mkdir()
    arrays: dict[str, Any] = {name: np.arange(24.0).reshape(2, 12) for name in scenes.Scenes.__dataclass_fields__}
    np.savez_compressed(path / "scenes" / scenes.CACHE_FILE, key=np.array(scenes._cache_key(SCENES)), **arrays)
    return path


# Uses of a directory. Each returns a result that must be as if nothing was corrupted, or raises a GCBError.


def check_data(path: Path) -> Any:
    dataset = open_dataset(path)
    dataset.verify()
    return {name: array.tobytes() for name, array in dataset.arrays().items()}, dict(dataset.config)


def train_on(path: Path) -> Any:
    shutil.rmtree(path.with_name("new_run"), ignore_errors=True)
    return content_of_run(train_small(path.with_name("new_run"), path, steps=1))


def resume_collection(path: Path) -> Any:
    collect_numbers(path, 40)
    return files_of(path)


def act(run: Path) -> Any:
    agent = gcb.load(run)
    image = np.full((2, *agent.shapes.observation), 77, np.uint8)
    return agent.act(image, goal=image + 9).tobytes()


def evaluate(run: Path) -> Any:
    """Return a new result; a run whose eval.json was deleted has not been evaluated before."""
    return evaluate_run(run, ["goal"], episodes=2, batch=2, seed=5, videos=False, quiet=True)["goal"].to_dict()


def report(run: Path) -> Any:
    page = write_report([run], run.with_name("report.html"), when=WHEN).read_bytes()
    files = (CHECKPOINT, EVAL, METRICS, f"{ANALYSIS_DIR}/{NUMBERS}")
    if missing := [name for name in files if not (run / name).exists()]:
        raise GCBError(f"the page says that there is no {missing[0]}")
    return page


def resume_training(run: Path) -> Any:
    """Return the step and the weights; a deleted metrics.jsonl starts anew."""
    return content_of_run(train_small(run, run.with_name("datasets") / "slide", steps=4))[:3]


def sweep(path: Path) -> Any:
    """Run the jobs of a sweep in this process. A failed run is a message, as it is for the user."""
    with mock.patch("gcb.sweep.pools.LocalPool", InlinePool), mock.patch("gcb.sweep.scheduler.POLL_SECONDS", 0.0):
        try:
            run_gcb(*small_sweep_args(path, path.with_name("datasets")))
        except SystemExit as error:
            raise GCBError(f"the sweep reports a failed run and exits with code {error.code}") from error
    return results_of_sweep(path)


def read_scenes(path: Path) -> Any:
    """Corrupt scenes are rendered again, which is as good as a message."""
    arrays = scenes._read_cache(path / scenes.CACHE_FILE, scenes._cache_key(SCENES))
    if arrays is None:
        raise GCBError("the scenes are rendered again")
    return {name: array.tobytes() for name, array in arrays.items()}


class Target(NamedTuple):
    """A directory to corrupt, and the commands that use it afterwards."""

    name: str
    path: str
    uses: dict[str, Callable[[Path], Any]]
    weight: float = 1.0
    """Relative number of corruptions; cheap uses get more."""
    user_files: bool = False
    """Files that a user writes: any valid value is accepted."""


TARGETS = [
    Target("dataset", "datasets/slide", {"gcb data check": check_data, "gcb train": train_on}),
    Target("unfinished collection", "unfinished_data", {"gcb collect": resume_collection}),
    Target("run", "run", {"gcb.load": act, "gcb eval": evaluate, "gcb report": report}, 1.5),
    Target("unfinished run", "unfinished_run", {"gcb train": resume_training}),
    Target("sweep", "sweep", {"gcb sweep": sweep}, 0.5),
    Target("cached scenes of an analysis", "scenes", {"gcb analyse": read_scenes}, 2.0),
    Target(
        "settings and grid of a user",
        "settings",
        {
            "--settings": lambda path: read_config(path / "settings.yaml"),
            "gcb sweep": lambda path: read_grid(path / "grid.yaml"),
        },
        1.5,
        user_files=True,
    ),
]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.path.replace("/", "_"))
def test_corruption(target: Target, originals: Path, tmp_path: Path, full: bool, record: Callable) -> None:
    """Corrupt one file at a time, each in a new copy."""
    rng, times = np.random.default_rng(SEED), max(3, round(target.weight * (40 if full else 4)))
    copy, corrupted = tmp_path / "copy", tmp_path / "corrupted"
    (tmp_path / "datasets").symlink_to(originals / "datasets")
    expected = {}
    for name, function in target.uses.items():
        outcome, expected[name] = use(function, copy_tree(originals / target.path, copy))
        assert outcome == "result", f"{name}: {expected[name]}"
    outcomes: Counter[str] = Counter()
    for _ in range(times):
        corruption = corrupt_one(copy_tree(originals / target.path, corrupted), rng)
        for name, function in target.uses.items():
            outcome, value = use(function, copy_tree(corrupted, copy))
            assert outcome != "traceback", f"{corruption}; {name}: {value}"
            if outcome == "result":
                outcome = "correct result" if value == expected[name] else "undetected change"
            if outcome == "undetected change" and not target.user_files:
                assert not corruption.detectable, f"{corruption}; {name}: another result without a message"
            outcomes[outcome] += 1
    record("corruption", target.name, times, f"{in_words(outcomes)}, by {', '.join(target.uses)}")


def copy_tree(source: Path, copy: Path) -> Path:
    shutil.rmtree(copy, ignore_errors=True)
    return shutil.copytree(source, copy, symlinks=True)


def use(function: Callable[[Path], Any], path: Path) -> tuple[str, Any]:
    """Return "result" and the value, "message" and the message, or "traceback" and the unexpected exception."""
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            return "result", function(path)
    except GCBError as error:
        return "message", str(error)
    except Exception as error:  # exactly what users must never see
        return "traceback", f"{type(error).__name__}: {error}"
