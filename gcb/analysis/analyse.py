"""`gcb analyse`: look into a run's representation, and write the figures and the numbers behind them.

RUN/analysis/numbers.json       all numbers with their intervals, and what was left out and why; written last
RUN/analysis/neighbours.png     tasks and their neighbours in φ
RUN/analysis/map.png            t-SNE of φ
RUN/analysis/values.png         distances in φ against differences of value
RUN/analysis/arithmetic.png     analogies: what the arithmetic infers
RUN/analysis/scenes.npz         the test set of fresh scenes, kept for the next time

Every file is whole or not there; what a kill leaves undone, the same command does again.
"""

import hashlib
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

import gcb
from gcb.agent.agent import Agent, load
from gcb.analysis import figures
from gcb.analysis.arithmetic import Arithmetic, measure
from gcb.analysis.embed import Tasks, missing_embeddings, sample_tasks
from gcb.analysis.geometry import poses
from gcb.analysis.neighbour_metrics import KINDS, compare, find_neighbours, pair_values
from gcb.analysis.projection import MOST, tsne
from gcb.analysis.scenes import Job, Scenes, fresh_scenes
from gcb.data import Dataset, open_dataset
from gcb.envs import ENVS
from gcb.envs.spec import EnvSpec
from gcb.errors import GCBError
from gcb.runs.dataset_record import fingerprint, shapes_of
from gcb.runs.run_dir import Run
from gcb.utils.files import directory_lock, explain_os_errors, read_json, write_atomically, write_json
from gcb.utils.progress import Progress
from gcb.utils.statistics import Estimate, Rate

ANALYSIS_DIR, NUMBERS = "analysis", "numbers.json"
FIGURES = ("neighbours", "map", "values", "arithmetic")


@dataclass(frozen=True)
class AnalysisSize:
    """How much to look at: by default what two cores do in a minute or two."""

    samples: int = 1000
    """Tasks whose neighbours are looked up, each of another episode."""
    pool: int = 4000
    """Tasks among which they are looked up."""
    scenes: int = 500
    """Fresh scenes for the arithmetic; its test set is three frames of each."""
    points: int = 1500
    """Tasks on the map."""
    rows: int = 8
    """Tasks and scenes in a figure."""

    def __post_init__(self) -> None:
        least = {"samples": 1, "pool": 8, "scenes": 2, "points": 4, "rows": 1}
        for name, value in asdict(self).items():
            if value < least[name]:
                raise GCBError(f"{name} is {value}; it must be at least {least[name]}.")
        if self.points > MOST:
            raise GCBError(f"points is {self.points}; it must be at most {MOST}.")


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
    """Write RUN/analysis and return its numbers. `data` is by default what the run was trained on.

    `seed` draws the tasks, the scenes and what is shown of them. `options` change those of the world.
    """
    size, agent = size or AnalysisSize(), load(run)
    assert agent.run is not None, "load gives the agent its run"
    if workers < 1:
        raise GCBError(f"workers is {workers}; it must be at least 1.")
    dataset, folder = dataset_of(agent.run, data), agent.run.path / ANALYSIS_DIR
    with explain_os_errors(folder):
        folder.mkdir(exist_ok=True)
    with directory_lock(folder):
        looking = Looking(agent, dataset, folder, size, seed, quiet)
        looking.at_arithmetic(options or {}, workers)  # first: a world that cannot be built is found at once
        looking.at_tasks()
        return looking.finish()


class Looking:
    """One analysis under way: what was found so far, and what was left out and why."""

    def __init__(
        self, agent: Agent, dataset: Dataset, folder: Path, size: AnalysisSize, seed: int, quiet: bool
    ) -> None:
        self.agent, self.dataset, self.folder = agent, dataset, folder
        self.size, self.seed, self.quiet = size, seed, quiet
        self.lacks = missing_embeddings(agent)
        self.pictures = dataset.frames.ndim == 4 and dataset.frames.dtype == np.uint8
        self.numbers: dict[str, Any] = {}
        self.figures: dict[str, bytes] = {}
        self.skipped: dict[str, str] = {}

    def at_tasks(self) -> None:
        """Neighbours in φ, its map, and its distances against values."""
        if "phi" in self.lacks:
            self.skipped |= dict.fromkeys(("neighbours", "map", "values"), self.lacks["phi"])
            return
        size, count = self.size, max(self.size.pool, self.size.samples, self.size.points)
        with Progress("embedding", min(count, self.dataset.transitions), "tasks", quiet=self.quiet) as bar:
            tasks = sample_tasks(self.agent, self.dataset, count, self.seed, advance=bar.advance)
        pose = poses(self.dataset, tasks.episode)
        with Progress("neighbours, map, values", 3, "parts", quiet=self.quiet) as bar:
            self._neighbours(tasks, pose)
            bar.advance()
            self._map(tasks.rows(slice(size.points)))
            bar.advance()
            pairs = pair_values(tasks, self.seed)
            self.numbers["values"] = {"pairs": len(pairs.gap), **plain(pairs.correlations())}
            self.figures["values"] = figures.png(figures.values_figure(pairs))
            bar.advance()

    def at_arithmetic(self, options: Mapping[str, Any], workers: int) -> None:
        """Analogies on fresh scenes."""
        config = self.agent.run.record["data"].get("config", {}) if self.agent.run else {}
        if "psi" in self.lacks:
            self.skipped["arithmetic"] = self.lacks["psi"]
        elif config.get("env") not in ENVS:
            self.skipped["arithmetic"] = f"there are no fresh scenes of {config.get('env') or 'an unknown environment'}"
        else:
            env_spec = EnvSpec(config["env"], {**config.get("options", {}), **options})
            job = Job(env_spec, self.seed, config.get("noise", 0.0))
            scenes = fresh_scenes(job, self.size.scenes, self.folder, workers=workers, quiet=self.quiet)
            self._arithmetic(scenes, measure(self.agent, scenes, self.seed))

    def finish(self) -> dict[str, Any]:
        """Write all; figures of an earlier analysis that have no place in this one go."""
        run = self.agent.run
        assert run is not None, "analyse loads the agent from a run"
        path = self.dataset.path
        about = {
            "gcb": gcb.__version__,
            "method": run.config.method,
            "step": self.agent.step,
            "seed": self.seed,
            "data": None if path is None else str(path),
            "training_data": fingerprint(self.dataset) == run.record["data"].get("fingerprint"),
            "size": asdict(self.size),
            "figures": {name: hashlib.sha256(content).hexdigest() for name, content in self.figures.items()},
        }
        numbers = {"about": about, "skipped": self.skipped, **self.numbers}
        with explain_os_errors(self.folder):
            for name in set(FIGURES) - set(self.figures):
                (self.folder / f"{name}.png").unlink(missing_ok=True)
            for name, content in self.figures.items():
                write_atomically(self.folder / f"{name}.png", content)
            write_json(self.folder / NUMBERS, numbers)
        return numbers

    def _neighbours(self, tasks: Tasks, pose: np.ndarray | None) -> None:
        found = find_neighbours(tasks, self.dataset, self.size.samples, self.seed)
        likeness = {kind: compare(tasks, pose, found.query, found.found[kind]) for kind in KINDS}
        self.numbers["neighbours"] = {"samples": len(found.query), "pool": len(tasks), **plain(likeness)}
        if not self.pictures:
            self.skipped["neighbours"] = "the observations are no pictures: numbers only"
            return
        some = found.rows(self._chosen(len(found.query)))
        self.figures["neighbours"] = figures.png(figures.neighbours_figure(self.dataset, tasks, some, pose))

    def _map(self, tasks: Tasks) -> None:
        assert tasks.phi is not None, "at_tasks looks whether there is a φ"
        try:
            positions = tsne(tasks.phi, self.seed)
        except GCBError as error:
            self.skipped["map"] = str(error)
            return
        shown = self._chosen(len(tasks), 12)
        figure = figures.map_figure(self.dataset if self.pictures else None, tasks, positions, shown)
        self.figures["map"] = figures.png(figure)

    def _arithmetic(self, scenes: Scenes, found: Arithmetic) -> None:
        point = "arithmetic" if "arithmetic" in found.judged else "psi_difference"
        summaries = {name: judged.summary(scenes.task) for name, judged in found.judged.items()}
        counts = {"scenes": len(scenes), "candidates": len(scenes.frames), "point": point}
        self.numbers["arithmetic"] = {**counts, "towards": plain(found.towards), **plain(summaries)}
        chosen = self._chosen(len(scenes))
        figure = figures.arithmetic_figure(scenes, found.judged[point], point, chosen)
        self.figures["arithmetic"] = figures.png(figure)

    def _chosen(self, count: int, wanted: int | None = None) -> list[int]:
        """What is shown: drawn by the seed, never by hand."""
        return np.random.default_rng([self.seed, 1]).permutation(count)[: wanted or self.size.rows].tolist()


def dataset_of(run: Run, data: str | os.PathLike[str] | None = None) -> Dataset:
    """The dataset at `data`, or the one that a run was trained on; its observations must be as the run knows them."""
    path = data if data is not None else run.record["data"].get("path")
    if path is None:
        raise GCBError(f"{run.path} was trained on data in memory; say what to look at: --data DIR")
    if data is None and not Path(path).is_dir():
        raise GCBError(f"the dataset of {run.path} is not at {path} any more; say where it is: --data DIR")
    dataset = open_dataset(path)
    dataset.verify()
    seen, wanted = list(shapes_of(dataset).observation), list(run.record["data"]["shapes"]["observation"])
    if seen != wanted:
        raise GCBError(f"{path} has observations {tuple(seen)}; {run.path} was trained on {tuple(wanted)}")
    return dataset


def read_numbers(run: str | os.PathLike[str]) -> dict[str, Any]:
    """What RUN/analysis/numbers.json says; empty before the first analysis."""
    path = Path(run) / ANALYSIS_DIR / NUMBERS
    found = read_json(path) if path.exists() else {}
    if not isinstance(found, dict):
        raise GCBError(f"{path} is not a table of numbers")
    return found


def read_figure(run: str | os.PathLike[str], name: str, numbers: Mapping[str, Any]) -> bytes | None:
    """The PNG of one figure, if the analysis has it: the one that was written with its numbers."""
    path = Path(run) / ANALYSIS_DIR / f"{name}.png"
    about = numbers.get("about", {})
    wanted = about.get("figures", {}).get(name)
    try:
        content = path.read_bytes()
    except OSError as error:
        if wanted is None and not path.exists():
            return None
        raise GCBError(f"{path} could not be read: {error.strerror}; `gcb analyse` makes it again") from error
    if "figures" in about and hashlib.sha256(content).hexdigest() != wanted:
        raise GCBError(f"{path} is damaged, or of another analysis than its numbers; `gcb analyse` makes it again")
    return content


def plain(value: Any) -> Any:
    """Rates, estimates and what holds them, as JSON has them; a number that is not finite is null."""
    if isinstance(value, Rate):
        return {"value": _finite(value.value), "interval": list(value.interval), "of": value.trials}
    if isinstance(value, Estimate):
        return {"value": _finite(value.value), "interval": [_finite(x) for x in value.interval], "of": value.samples}
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    return {str(name): plain(part) for name, part in value.items()} if isinstance(value, Mapping) else value


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
