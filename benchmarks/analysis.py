"""Time a whole `gcb analyse` as on two idle cores, and the neighbour search against a simple one.

The size of the dataset does not matter: an analysis samples the same number of tasks from any.
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

MAX_SECONDS = 180.0
"""Most seconds that an analysis may take on two cores."""


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as directory:
        return [_time_search(), *_time_analysis(Path(directory))]


def _time_search() -> Row:
    """Search 1,000 queries among 4,000 keys of 256 numbers, compared with a loop over the queries."""
    rng = np.random.default_rng(0)
    queries, keys = (rng.normal(size=(count, 256)).astype(np.float32) for count in (1000, 4000))

    def loop() -> None:
        for query in queries:
            np.square(keys - query).sum(1).argmin()

    ours, simple = cpu_medians(lambda: nearest(queries, keys), loop, rounds=3)
    return Row("neighbour search / one query at a time", ours / simple, 0.5, f"{1e3 * ours:.0f} ms")


def _time_analysis(directory: Path) -> list[Row]:
    """Run the default analysis with the encoders of both presets; fresh scenes are built once and count for both."""
    collect(CollectConfig(transitions=AnalysisSize().pool), directory / "data", workers=2, quiet=True)
    rows, scenes = [], 0.0
    for preset in ("laptop", "paper"):
        path = directory / preset
        config = make_config("gcb", preset, {"steps": 1, "warmup_steps": 0, "device": "cpu"})
        train(config, directory / "data", path, quiet=True)
        if scenes:
            (path / ANALYSIS_DIR).mkdir()
            shutil.copy(directory / "laptop" / ANALYSIS_DIR / CACHE_FILE, path / ANALYSIS_DIR)
        own, children = _cost(lambda path=path: analyse(path, workers=2, quiet=True))
        scenes = scenes or children / 2
        text = f"{own:.0f} s in one process, and {scenes:.0f} s for fresh scenes in two"
        rows.append(Row(f"{preset}: seconds of an analysis", own + scenes, MAX_SECONDS, text))
    return rows


def _cost(job: Callable[[], object]) -> tuple[float, float]:
    """Return the CPU seconds of a job in this process and in its child processes."""
    start, children = time.process_time(), _children()
    job()
    return time.process_time() - start, _children() - children


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
