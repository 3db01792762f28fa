"""The jobs of a sweep: collect a dataset, or train and evaluate a run.

Both resume, lock their directory, and leave their state on the disk, so a job can be killed at any time and run again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from gcb.data import CollectConfig, Dataset, collect, open_dataset
from gcb.data.format import MANIFEST, PARTIAL
from gcb.data.output_dir import JOURNAL
from gcb.envs.spec import recorded_env_spec
from gcb.errors import GCBError
from gcb.evaluation.evaluate import Validation, evaluate_run
from gcb.methods import method_named
from gcb.runs.config import TrainConfig
from gcb.runs.dataset_record import DatasetRecord, record_dataset
from gcb.runs.evaluations import read_evaluations
from gcb.runs.run_dir import RECORD, Run, run_exists
from gcb.training.loggers import read_metrics
from gcb.utils.text_files import read_json

TRAINING_FRACTION = 0.8
"""Estimated fraction of a run's time spent on training; used for the time left."""


@dataclass(frozen=True)
class State:
    """The state of a job on the disk."""

    status: Literal["done", "started", "new", "invalid"]
    progress: float = 0.0
    """Fraction of the work that is done."""
    reason: str = ""
    """Why the job is invalid."""


@dataclass(frozen=True)
class DataJob:
    """Collect a dataset."""

    path: Path
    config: CollectConfig | None
    """None for a dataset of the user's own, which must exist."""

    @property
    def name(self) -> str:
        return f"data-{self.path.name}"

    def state(self) -> State:
        try:
            if (self.path / MANIFEST).exists():
                self._check(open_dataset(self.path))
                return State("done", 1.0)
            if self.config is None:
                raise GCBError(f"there is no dataset {self.path}; a sweep collects only drawer and button_drawer")
        except GCBError as error:
            return State("invalid", reason=str(error))
        return State("started", self._progress()) if (self.path / PARTIAL).exists() else State("new")

    def run(self, workers: int = 1) -> None:
        assert self.config is not None, "a dataset without a configuration is done or invalid"
        collect(self.config, self.path, workers=workers)

    def _check(self, dataset: Dataset) -> None:
        """Compare an existing dataset with the one the grid asks for; its seed and its expert do not matter."""
        if self.config is None:
            if dataset.config.get("env"):
                recorded_env_spec(dataset.config).check_trusted()
            return
        options, wanted = dataset.config.get("options") or {}, self.config.options
        values = (
            ("env", dataset.config.get("env"), self.config.env),
            ("video", bool(options.get("video")), bool(wanted.get("video"))),
            ("image_size", dataset.frames.shape[1], wanted.get("image_size")),
            ("transitions", dataset.transitions, self.config.transitions),
        )
        if differences := [f"{name} is {old!r}, not {new!r}" for name, old, new in values if old != new]:
            raise GCBError(f"{self.path} holds another dataset: {'; '.join(differences)}. Use another --data-root")

    def _progress(self) -> float:
        try:
            transitions = read_json(self.path / PARTIAL / JOURNAL)["transitions"]
            return transitions / self.config.transitions if self.config else 0.0
        except (GCBError, KeyError, TypeError):
            return 0.0  # not written yet, or being replaced


@dataclass(frozen=True)
class RunJob:
    """Train an agent and evaluate it."""

    runs: Path
    """Directory of all runs of the sweep."""
    env: str
    video: bool
    variant: str
    config: TrainConfig[Any]
    dataset: Path
    episodes: int
    modes: tuple[str, ...]
    eval_seed: int
    validation: Validation | None = None
    videos: bool = False
    clips: str | None = None

    @property
    def name(self) -> str:
        parts = (dataset_name(self.env, self.video), self.config.method, self.variant, f"s{self.config.seed}")
        return "-".join(filter(None, parts))

    @property
    def path(self) -> Path:
        return self.runs / self.name

    @property
    def supported_modes(self) -> tuple[str, ...]:
        """The requested modes that the method supports."""
        supports_analogy = method_named(self.config.method).supports_analogy
        return tuple(mode for mode in self.modes if mode == "goal" or supports_analogy)

    def state(self) -> State:
        if not (self.path / RECORD).is_file():
            return State("new")
        try:
            # A trained run does not need its dataset any more.
            collected = (self.dataset / MANIFEST).is_file()
            run_exists(self.path, self.config, _record(self.dataset) if collected else Run(self.path).dataset)
            checkpoint = Run(self.path).checkpoint()
            if checkpoint is not None and checkpoint.finished:
                missing, modes = len(self.missing_modes()), max(len(self.supported_modes), 1)
                return State("started" if missing else "done", 1 - (1 - TRAINING_FRACTION) * missing / modes)
            metrics = read_metrics(self.path)
            step = metrics[-1]["step"] if metrics else 0
            return State("started", TRAINING_FRACTION * step / self.config.steps)
        except GCBError as error:
            return State("invalid", reason=str(error))

    def run(self, workers: int = 1) -> None:
        from gcb.training.trainer import train

        train(self.config, self.dataset, self.path, on_checkpoint=self.validation)
        if missing := self.missing_modes():
            evaluate_run(
                self.path,
                missing,
                device=self.config.device,
                videos=self.videos,
                options={"video": self.clips} if self.clips else None,
                episodes=self.episodes,
                seed=self.eval_seed,
                workers=workers,
            )

    def missing_modes(self) -> list[str]:
        """Return the modes in which the latest checkpoint is not evaluated yet with this seed and enough episodes."""
        run, evaluations = Run(self.path), read_evaluations(self.path)
        checkpoint = run.checkpoint()
        expected = {
            "seed": self.eval_seed,
            "step": checkpoint.step if checkpoint else None,
            "eval_temperature": recorded_env_spec(run.dataset.config).adapter.eval_temperature,
        }

        def evaluated(result: Mapping[str, Any]) -> bool:
            same = all(result.get(name) == value for name, value in expected.items())
            return same and isinstance(result.get("episodes"), int) and result["episodes"] >= self.episodes

        done = {entry["mode"] for entry in evaluations if evaluated(entry)}
        return [mode for mode in self.supported_modes if mode not in done]


Job = DataJob | RunJob
"""Either has a unique `name`, a `path`, a `state()` read from the disk, and `run(workers)` for the remaining work."""


def dataset_name(env: str, video: bool) -> str:
    """Return the name of a dataset's directory: drawer, drawer_video, …"""
    return f"{env}_video" if video else env


@lru_cache
def _record(dataset: Path) -> DatasetRecord:
    """Return what a run records about its dataset; cached, as a finished dataset does not change."""
    return record_dataset(open_dataset(dataset))
