"""`gcb analyse`: measure what a run's representation has learned, and write figures and numbers.

RUN/analysis/numbers.json       every number with its interval, and what was skipped and why; written last
RUN/analysis/neighbours.png     tasks and their nearest neighbours in φ
RUN/analysis/map.png            t-SNE of φ
RUN/analysis/values.png         distances in φ against differences in value
RUN/analysis/arithmetic.png     the goals inferred by analogy arithmetic
RUN/analysis/scenes.npz         the test set of fresh scenes, cached for the next analysis

Each file is written atomically. After an interruption, run the same command again.
"""

import math
import os
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

import gcb
from gcb.agent.agent import Agent, load
from gcb.analysis import figures
from gcb.analysis.arithmetic import evaluate_arithmetic
from gcb.analysis.embed import Tasks, missing_embeddings, open_run_data, sample_tasks
from gcb.analysis.geometry import poses
from gcb.analysis.neighbour_metrics import NEIGHBOUR_TYPES, compare, find_neighbours, pair_values
from gcb.analysis.projection import tsne
from gcb.analysis.scenes import SceneConfig, fresh_scenes
from gcb.analysis.size import AnalysisSize
from gcb.data import Dataset
from gcb.envs import ENVS
from gcb.envs.spec import EnvSpec
from gcb.errors import GCBError, NotInstalled
from gcb.runs.dataset_record import fingerprint
from gcb.runs.find import check_own_run
from gcb.runs.run_dir import Run
from gcb.utils.dataclass_io import SEED, check_interval
from gcb.utils.files import directory_lock, write_atomically, write_json
from gcb.utils.os_errors import explain_os_errors, explain_read_errors
from gcb.utils.progress import Progress
from gcb.utils.statistics import Estimate, Rate
from gcb.utils.text_files import read_json
from gcb.utils.workers import check_workers

ANALYSIS_DIR, NUMBERS = "analysis", "numbers.json"
FIGURES = ("neighbours", "map", "values", "arithmetic")
MAP_IMAGES = 12


def analyse(
    run: str | os.PathLike[str],
    data: str | os.PathLike[str] | None = None,
    *,
    size: AnalysisSize | None = None,
    seed: int = 0,
    workers: int = 2,
    options: Mapping[str, Any] | None = None,
    quiet: bool = False,
) -> dict[str, Any]:
    """Write RUN/analysis and return its numbers. `data` defaults to the run's training data.

    `seed` selects the tasks, the scenes and which of them are shown. `options` override the environment's options.
    """
    agent = load(run)
    assert agent.run is not None, "load sets the agent's run"
    check_own_run(agent.run.path)
    check_workers(workers)
    check_interval("seed", seed, SEED)
    dataset, path = open_run_data(agent.run, data), agent.run.path / ANALYSIS_DIR
    dataset.verify()
    with explain_os_errors(path):
        path.mkdir(exist_ok=True)
    with directory_lock(path):
        analysis = Analysis(agent, agent.run, dataset, size or AnalysisSize(), seed, quiet)
        analysis.analyse_scenes(options or {}, workers)  # first: fails early if the environment cannot be built
        analysis.analyse_tasks()
        return analysis.write(path)


class Analysis:
    """An analysis in progress: numbers and figures so far, and what was skipped and why."""

    def __init__(self, agent: Agent, run: Run, dataset: Dataset, size: AnalysisSize, seed: int, quiet: bool) -> None:
        self.agent, self.run, self.dataset = agent, run, dataset
        self.size, self.seed, self.quiet = size, seed, quiet
        self.missing = missing_embeddings(agent)
        self.has_images = dataset.frames.ndim == 4 and dataset.frames.dtype == np.uint8
        self.numbers: dict[str, Any] = {}
        self.figures: dict[str, bytes] = {}
        self.skipped: dict[str, str] = {}

    def analyse_scenes(self, options: Mapping[str, Any], workers: int) -> None:
        """Evaluate analogy arithmetic on fresh scenes."""
        config = self.run.dataset.config
        if "psi" in self.missing:
            self.skipped["arithmetic"] = self.missing["psi"]
            return
        if config.get("env") not in ENVS:
            self.skipped["arithmetic"] = f"there are no fresh scenes of {config.get('env') or 'an unknown environment'}"
            return
        env_spec = EnvSpec(config["env"], {**(config.get("options") or {}), **options})
        scene_config = SceneConfig(env_spec, self.seed, config.get("noise", 0.0))
        cache = self.run.path / ANALYSIS_DIR
        try:
            scenes = fresh_scenes(scene_config, self.size.scenes, cache, workers=workers, quiet=self.quiet)
        except NotInstalled as error:  # the tasks of the dataset need no simulator
            self.skipped["arithmetic"] = str(error)
            return
        result = evaluate_arithmetic(self.agent, scenes, self.seed)
        shown = "arithmetic" if "arithmetic" in result.retrievals else "psi_difference"
        self.numbers["arithmetic"] = {
            "scenes": len(scenes),
            "candidates": len(scenes.frames),
            "shown": shown,
            "closer_to_goal": to_json(result.closer_to_goal),
            **{name: to_json(retrieval.metrics(scenes.task)) for name, retrieval in result.retrievals.items()},
        }
        rows = self._sample_rows(len(scenes), self.size.rows)
        figure = figures.arithmetic_figure(scenes, result.retrievals[shown], shown, rows)
        self.figures["arithmetic"] = figures.png(figure)

    def analyse_tasks(self) -> None:
        """Compare neighbours in φ, map φ, and compare its distances with differences in value."""
        if "phi" in self.missing:
            self.skipped |= dict.fromkeys(("neighbours", "map", "values"), self.missing["phi"])
            return
        count = max(self.size.pool, self.size.samples, self.size.points)
        with Progress("embedding", min(count, self.dataset.transitions), "tasks", quiet=self.quiet) as bar:
            tasks = sample_tasks(self.agent, self.dataset, count, self.seed, advance=bar.advance)
        parts = (self._neighbours, self._map, self._values)
        with Progress("neighbours, map, values", len(parts), "parts", quiet=self.quiet) as bar:
            for part in parts:
                part(tasks)
                bar.advance()

    def write(self, path: Path) -> dict[str, Any]:
        """Write all files, remove figures of an earlier analysis that this one does not have, return the numbers."""
        about = {
            "gcb": gcb.__version__,
            "method": self.run.config.method,
            "step": self.agent.step,
            "seed": self.seed,
            "data": None if self.dataset.path is None else str(self.dataset.path),
            "training_data": fingerprint(self.dataset) == self.run.dataset.fingerprint,
            "size": asdict(self.size),
        }
        numbers = {"about": about, "skipped": self.skipped, **self.numbers}
        with explain_os_errors(path):
            for name in FIGURES:
                if name in self.figures:
                    write_atomically(path / f"{name}.png", self.figures[name])
                else:
                    (path / f"{name}.png").unlink(missing_ok=True)
            write_json(path / NUMBERS, numbers)
        return numbers

    def _neighbours(self, tasks: Tasks) -> None:
        neighbours, pose = (
            find_neighbours(tasks, self.dataset, self.size.samples, self.seed),
            poses(self.dataset, tasks.episode),
        )
        metrics = {name: compare(tasks, pose, neighbours.query, neighbours.nearest[name]) for name in NEIGHBOUR_TYPES}
        self.numbers["neighbours"] = {"samples": len(neighbours.query), "pool": len(tasks), **to_json(metrics)}
        if not self.has_images:
            self.skipped["neighbours"] = "the observations are not images: numbers only"
            return
        shown = neighbours.rows(self._sample_rows(len(neighbours.query), self.size.rows))
        self.figures["neighbours"] = figures.png(figures.neighbours_figure(self.dataset, tasks, shown, pose))

    def _map(self, tasks: Tasks) -> None:
        tasks = tasks.rows(slice(self.size.points))
        assert tasks.phi is not None, "analyse_tasks checks that there is a φ"
        try:
            positions = tsne(tasks.phi, self.seed)
        except GCBError as error:
            self.skipped["map"] = str(error)
            return
        shown = self._sample_rows(len(tasks), MAP_IMAGES)
        figure = figures.map_figure(self.dataset if self.has_images else None, tasks, positions, shown)
        self.figures["map"] = figures.png(figure)

    def _values(self, tasks: Tasks) -> None:
        if not self.agent.has_value:
            self.skipped["values"] = "the agent comes without its value functions"
            return
        pairs = pair_values(tasks, self.seed)
        self.numbers["values"] = {"pairs": len(pairs.value_gap), **to_json(pairs.correlations())}
        self.figures["values"] = figures.png(figures.values_figure(pairs))

    def _sample_rows(self, count: int, wanted: int) -> list[int]:
        """Return random row numbers for a figure, selected by the seed."""
        return np.random.default_rng([self.seed, 1]).permutation(count)[:wanted].tolist()


def read_numbers(run: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of RUN/analysis/numbers.json; empty before the first analysis."""
    path = Path(run) / ANALYSIS_DIR / NUMBERS
    numbers = read_json(path) if path.exists() else {}
    if not isinstance(numbers, dict):
        raise GCBError(f"{path} is {type(numbers).__name__}; it must be a JSON object")
    return numbers


def read_figure(run: str | os.PathLike[str], name: str) -> bytes | None:
    """Return the PNG of a figure, or None if the analysis does not have it."""
    path = Path(run) / ANALYSIS_DIR / f"{name}.png"
    with explain_read_errors(path, "; `gcb analyse` writes it again"):
        return path.read_bytes() if path.exists() else None


def to_json(value: Any) -> Any:
    """Convert rates, estimates and containers of them to JSON values; numbers that are not finite become null."""
    if isinstance(value, Rate):
        return {"value": _finite(value.value), "interval": list(value.interval), "of": value.trials}
    if isinstance(value, Estimate):
        return {"value": _finite(value.value), "interval": [_finite(x) for x in value.interval], "of": value.samples}
    if is_dataclass(value):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    return {str(name): to_json(part) for name, part in value.items()} if isinstance(value, Mapping) else value


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
