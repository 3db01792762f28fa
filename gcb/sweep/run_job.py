"""One run of a sweep: an agent that is trained and evaluated."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from gcb.data import open_dataset
from gcb.data.format import MANIFEST
from gcb.envs.spec import recorded_env_spec
from gcb.errors import GCBError
from gcb.evaluation.evaluate import evaluate_run
from gcb.methods import method_named
from gcb.runs.config import TrainConfig, config_from_dict
from gcb.runs.dataset_record import DatasetRecord, record_dataset
from gcb.runs.run_dir import RECORD, Run, read_results, run_exists
from gcb.sweep.jobs import State
from gcb.training.loggers import read_metrics
from gcb.utils.dataclass_io import to_dict

RUNS = "runs"
TRAINING_SHARE = 0.8
"""What training takes of a run's time, for the time left: an estimate."""


@dataclass(frozen=True)
class RunJob:
    """Train an agent and evaluate it, as far as that is not done yet."""

    out: Path
    """The sweep's folder."""
    env: str
    video: bool
    variant: str
    config: TrainConfig[Any]
    data: Path
    episodes: int
    modes: tuple[str, ...]
    eval_seed: int
    videos: bool = False
    clips: str | None = None

    @property
    def name(self) -> str:
        parts = [f"{self.env}_video" if self.video else self.env, self.config.method, self.variant]
        return "-".join([*filter(None, parts), f"s{self.config.seed}"])

    @property
    def needs(self) -> Path | None:
        return self.data

    @property
    def folder(self) -> Path:
        return self.out / RUNS / self.name

    @property
    def possible_modes(self) -> tuple[str, ...]:
        """The modes asked for, without those that the method has no answer to (NA)."""
        supports_analogy = method_named(self.config.method).supports_analogy
        return tuple(mode for mode in self.modes if mode == "goal" or supports_analogy)

    @property
    def eval_temperature(self) -> float:
        """How calmly the agent is played: as its world's adapter has it."""
        return recorded_env_spec(Run(self.folder).dataset.config).adapter.eval_temperature

    def state(self) -> State:
        if not (self.folder / RECORD).is_file():
            return State("new")
        try:
            self._check_same()
            checkpoint = Run(self.folder).checkpoint()
            if checkpoint is not None and checkpoint.finished:
                missing, asked = len(self.missing_modes()), max(len(self.possible_modes), 1)
                share = 1 - (1 - TRAINING_SHARE) * missing / asked
                return State("begun" if missing else "done", share)
            return State("begun", TRAINING_SHARE * self._last_step() / self.config.steps)
        except GCBError as error:
            return State("impossible", reason=str(error))

    def work(self, processes: int = 1) -> None:
        from gcb.training.trainer import train

        train(self.config, self.data, self.folder)
        if missing := self.missing_modes():
            evaluate_run(
                self.folder,
                missing,
                device=self.config.device,
                videos=self.videos,
                options={"video": self.clips} if self.clips else None,
                episodes=self.episodes,
                seed=self.eval_seed,
                workers=processes,
            )

    def missing_modes(self) -> list[str]:
        """The modes in which the agent, as it stands, has not been evaluated as asked."""
        checkpoint, results = Run(self.folder).checkpoint(), read_results(self.folder)
        step = checkpoint.step if checkpoint else None
        return [mode for mode in self.possible_modes if not self._evaluated(results.get(mode), step)]

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "run",
            "env": self.env,
            "video": self.video,
            "variant": self.variant,
            "config": to_dict(self.config),
            "data": str(self.data),
            "episodes": self.episodes,
            "modes": list(self.modes),
            "eval_seed": self.eval_seed,
            "videos": self.videos,
            "clips": self.clips,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], out: Path) -> "RunJob":
        values = {name: value for name, value in plain.items() if name != "kind"}
        values |= {
            "config": config_from_dict(plain["config"]),
            "data": Path(plain["data"]),
            "modes": tuple(plain["modes"]),
        }
        return cls(out=out, **values)

    def _evaluated(self, result: Any, step: int | None) -> bool:
        if not isinstance(result, Mapping):
            return False
        same = (result.get("seed"), result.get("step"), result.get("eval_temperature")) == (
            self.eval_seed,
            step,
            self.eval_temperature,
        )
        return same and isinstance(result.get("episodes"), int) and result["episodes"] >= self.episodes

    def _check_same(self) -> None:
        """The folder must hold this very run; its dataset may have been taken away once it was trained."""
        there = (self.data / MANIFEST).is_file()
        record = _record(self.data) if there else Run(self.folder).dataset
        run_exists(self.folder, self.config, record)

    def _last_step(self) -> int:
        rows = read_metrics(self.folder)
        return rows[-1]["step"] if rows else 0


@lru_cache
def _record(data: Path) -> DatasetRecord:
    """What a run on this dataset remembers of it; a finished dataset does not change."""
    return record_dataset(open_dataset(data))
