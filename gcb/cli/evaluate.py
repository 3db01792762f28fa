"""`gcb eval`, `gcb held-out` and `gcb export`: what to do with a trained agent."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg

from gcb.agent.agent import load
from gcb.agent.export import export_run
from gcb.cli import RunDir
from gcb.data import open_dataset
from gcb.envs.adapters import load_adapter
from gcb.envs.spec import EnvSpec, Mode
from gcb.errors import GCBError
from gcb.evaluation.evaluate import EvalResult, evaluate_run
from gcb.evaluation.held_out import action_error
from gcb.utils.statistics import CRITERIA


@dataclass
class Eval:
    """Measure an agent's success rate, given goal images or analogies. Writes RUN/eval.json and RUN/videos."""

    run_dir: RunDir
    """Directory of the run."""
    episodes: int = 200
    """Episodes per mode, in scenes that no dataset contains."""
    modes: tuple[Mode, ...] | None = None
    """How the task is given: goal (a goal image), or strict, loose or free (an analogy: an example pair from another
    scene). None for goal, and strict and free if the method and the environment support analogies."""
    seed: int = 0
    """Seed of the scenes."""
    workers: int = 1
    """Number of processes; one per core is fastest."""
    batch: int = 20
    """Environments that are stepped together, as one batch of the policy."""
    eval_temperature: float | None = None
    """Scale of the policy's standard deviation when actions are sampled; 0 takes the mean action.
    None for 0.5 in gcb's environments and 0 elsewhere."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "cpu"
    """Device to run the policy on."""
    clips: Path | None = None
    """Directory of video files for distractors, if those of the dataset have moved."""
    videos: bool = True
    """Write a video of some episodes of each mode."""
    env: str | None = None
    """Gymnasium id of an environment to use instead of the dataset's; module:id imports the module first."""
    adapter: str | None = None
    """Adapter of that environment: gcb, goal, achieved, info, or module:name of a gcb.envs.adapters.Adapter."""

    def run(self) -> None:
        results = evaluate_run(
            self.run_dir,
            self.modes,
            env_spec=self._env_spec(),
            device=self.device,
            videos=self.videos,
            options={"video": str(self.clips)} if self.clips else None,
            episodes=self.episodes,
            seed=self.seed,
            workers=self.workers,
            batch=self.batch,
            eval_temperature=self.eval_temperature,
        )
        Console().print(results_table(results))

    def _env_spec(self) -> EnvSpec | None:
        """Return the environment given, or None for the dataset's."""
        if self.env is None:
            if self.adapter is not None:
                raise GCBError(f"adapter is {self.adapter!r}, but no env is given that it would adapt.")
            return None
        return EnvSpec(self.env, adapter=load_adapter(self.adapter or "goal"))


@dataclass
class HeldOut:
    """Measure an agent's action-prediction error on held-out data. Needs no environment."""

    run_dir: RunDir
    """Directory of the run."""
    data: Annotated[Positional[Path], arg(metavar="DATA")]
    """Directory of a dataset that the agent was not trained on, with the same observations and actions."""
    transitions: int = 4000
    """Number of transitions, sampled from the dataset."""
    seed: int = 0
    """Seed of the sampling."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "cpu"
    """Device to run the policy on."""

    def run(self) -> None:
        error = action_error(load(self.run_dir, self.device), open_dataset(self.data), self.transitions, self.seed)
        title = f"mean squared error of actions, {self.transitions:,} transitions of {error.episodes:,} episodes"
        table = Table(title=title, title_justify="left")
        table.add_column("prediction")
        table.add_column("error")
        table.add_row("true goal", str(error.true_goal))
        table.add_row("  per dimension", "  ".join(f"{value:.3f}" for value in error.dimensions))
        table.add_row("shuffled goal", str(error.shuffled_goal))
        table.add_row("mean action", str(error.mean_action))
        Console().print(table)


@dataclass
class Export:
    """Export an agent to a directory for sharing: weights (safetensors), configuration and a model card."""

    run_dir: RunDir
    """Directory of the run."""
    out: Path
    """New directory; `gcb.load` and `gcb eval` accept it."""
    format: Literal["safetensors", "onnx"] = "safetensors"
    """onnx adds graphs of φ, ψ and the policy, to be used without PyTorch (needs the extra `onnx`)."""

    def run(self) -> None:
        out = export_run(self.run_dir, self.out, onnx=self.format == "onnx")
        files = sorted(path for path in out.rglob("*") if path.is_file())
        size = sum(path.stat().st_size for path in files)
        names = ", ".join(str(path.relative_to(out)) for path in files)
        Console().print(f"{out} ({size / 1e6:,.1f} MB): {names}")


def results_table(results: Mapping[str, EvalResult]) -> Table:
    """Return a table of success rates by mode and task, with Wilson intervals."""
    table = Table(title="success", title_justify="left")
    for name in ("mode", "task", *CRITERIA.values()):
        table.add_column(name)
    for mode, result in results.items():
        for task in (None, *(result.tasks if len(result.tasks) > 1 else ())):
            rates = (result.rate(task, criterion=criterion) for criterion in CRITERIA)
            table.add_row(mode, task or "all", *map(str, rates))
    return table
