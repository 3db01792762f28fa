"""`gcb analyse` in full, in seconds that it would take on two idle cores, and the neighbour search against a plain one.

The size of a dataset does not matter to it: what is drawn from it is always as much.
"""

import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.rows import Row, cpu_medians
from gcb.analysis.analyse import ANALYSIS_DIR, AnalysisSize, analyse
from gcb.analysis.neighbours import nearest
from gcb.analysis.scenes import CACHE_FILE
from gcb.data import CollectConfig, collect
from gcb.runs.config import make_config
from gcb.training.trainer import train

LONGEST = 180.0
"""Seconds that an analysis may take on two cores."""


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        return [_searching(), *_analysing(Path(folder))]


def _searching() -> Row:
    """1,000 queries among 4,000 keys of 256 numbers, against distances taken one query at a time."""
    rng = np.random.default_rng(0)
    queries, keys = (rng.normal(size=(count, 256)).astype(np.float32) for count in (1000, 4000))

    def plainly() -> None:
        for query in queries:
            np.square(keys - query).sum(1).argmin()

    ours, plain = cpu_medians(lambda: nearest(queries, keys), plainly, rounds=3)
    return Row("neighbour search / one query at a time", ours / plain, 0.5, f"{1e3 * ours:.0f} ms")


def _analysing(folder: Path) -> list[Row]:
    """The default analysis, with the encoders of both presets; the fresh scenes are made once and count for both."""
    collect(CollectConfig(transitions=AnalysisSize().pool), folder / "data", workers=2, quiet=True)
    rows, scenes = [], 0.0
    for preset in ("laptop", "paper"):
        path = folder / preset
        config = make_config("gcb", preset, {"steps": 1, "warmup_steps": 0, "device": "cpu"})
        train(config, folder / "data", path, quiet=True)
        if scenes:
            (path / ANALYSIS_DIR).mkdir()
            shutil.copy(folder / "laptop" / ANALYSIS_DIR / CACHE_FILE, path / ANALYSIS_DIR)
        own, children = _cost(lambda path=path: analyse(path, workers=2, quiet=True))
        scenes = scenes or children / 2
        text = f"{own:.0f} s in one process, and {scenes:.0f} s for fresh scenes in two"
        rows.append(Row(f"{preset}: seconds of an analysis", own + scenes, LONGEST, text))
    return rows


def _cost(job: Callable[[], object]) -> tuple[float, float]:
    """Processor seconds of a job in this process and in those that it starts; others on the machine do not count."""
    began, children = time.process_time(), _children()
    job()
    return time.process_time() - began, _children() - children


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
