"""`gcb eval`, `gcb held-out` and `gcb export`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from gcb.cli import Episodes, Json, RunDir, Seed
from gcb.cli.arguments import Within
from gcb.cli.output import print_json, print_table, say
from gcb.envs.adapters import load_adapter
from gcb.envs.spec import EnvSpec, Mode, recorded_env_spec
from gcb.errors import GCBError
from gcb.utils.statistics import CRITERIA

if TYPE_CHECKING:
    from gcb.evaluation.evaluate import EvalResult


@dataclass
class Eval:
    """Measure an agent's success rate, given goal images or analogies. Writes RUN/eval.json and RUN/videos.

    Run the same command again to resume, or with more episodes to extend the result: episodes are played once.
    """

    run_dir: RunDir
    """Directory of the run."""
    episodes: Episodes = 200
    """Episodes per mode, in scenes that no dataset contains."""
    modes: tuple[Mode, ...] | None = None
    """How the task is given: goal (a goal image), or strict, loose or free (an analogy: an example pair from another
    scene). none for goal, and strict and free if the method and the environment support analogies."""
    seed: Seed = 0
    """Seed of the scenes."""
    workers: int = 1
    """Number of processes; one per core is fastest."""
    batch: int = 20
    """Environments that are stepped together, as one batch of the policy."""
    eval_temperature: float | None = None
    """Scale of the policy's standard deviation when actions are sampled; 0 takes the mean action.
    none for 0.5 in gcb's environments and 0 elsewhere."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "cpu"
    """Device to run the policy on."""
    clips: Path | None = None
    """Directory of video files for distractors, if those of the dataset have moved."""
    videos: bool = True
    """Write a video of some episodes of each mode."""
    env: str | None = None
    """Gymnasium id of an environment to use instead of the dataset's; module:id imports the module first. If the
    dataset's own id has a module, name it here: a module that only a file names is not imported."""
    adapter: str | None = None
    """Adapter of that environment: gcb, goal, achieved, info, or module:name of a gcb.envs.adapters.Adapter."""
    json: Json = False

    def run(self) -> None:
        from gcb.evaluation.evaluate import evaluate_run

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
        if self.json:
            print_json({mode: result.to_dict() for mode, result in results.items()})
            return
        print_table(("mode", "task", *CRITERIA.values()), result_rows(results), title="success")
        for mode, result in results.items():
            if result.reused:
                say(f"{mode}: {result.reused:,} of {len(result.outcomes):,} episodes are from an earlier evaluation")

    def _env_spec(self) -> EnvSpec | None:
        """Return the environment given, or None for the dataset's."""
        if self.env is None:
            if self.adapter is not None:
                raise GCBError(f"adapter is {self.adapter!r}, but no env is given that it would adapt.")
            return None
        from gcb.runs.run_dir import Run

        adapter = load_adapter(self.adapter) if self.adapter else None
        if (config := Run(self.run_dir).dataset.config).get("env") == self.env:
            recorded = replace(recorded_env_spec(config), from_file=False)
            return recorded if adapter is None else replace(recorded, adapter=adapter)
        return EnvSpec(self.env, adapter=adapter or load_adapter("goal"))


@dataclass
class HeldOut:
    """Measure an agent's action-prediction error on held-out data. Needs no environment."""

    run_dir: RunDir
    """Directory of the run."""
    data: Annotated[Positional[Path], arg(metavar="DATA")]
    """Directory of a dataset that the agent was not trained on, with the same observations and actions."""
    transitions: Annotated[int, Within("[2, 10000000]")] = 4000
    """Number of transitions, sampled from the dataset."""
    seed: Seed = 0
    """Seed of the sampling."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "cpu"
    """Device to run the policy on."""
    json: Json = False

    def run(self) -> None:
        from gcb.agent.agent import load
        from gcb.data import open_dataset
        from gcb.evaluation.held_out import action_error

        error = action_error(load(self.run_dir, self.device), open_dataset(self.data), self.transitions, self.seed)
        if self.json:
            print_json(error)
            return
        title = f"mean squared error of actions, {self.transitions:,} transitions of {error.episodes:,} episodes"
        rows = [
            ("true goal", str(error.true_goal)),
            ("  per dimension", "  ".join(f"{value:.3f}" for value in error.dimensions)),
            ("shuffled goal", str(error.shuffled_goal)),
            ("mean action", str(error.mean_action)),
        ]
        print_table(("prediction", "error"), rows, title=title)


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
        from gcb.agent.export import export_run

        out = export_run(self.run_dir, self.out, onnx=self.format == "onnx")
        files = sorted(path for path in out.rglob("*") if path.is_file())
        size = sum(path.stat().st_size for path in files)
        names = ", ".join(str(path.relative_to(out)) for path in files)
        say(f"{out} ({size / 1e6:,.1f} MB): {names}")


def result_rows(results: Mapping[str, "EvalResult"]) -> Iterator[tuple[str, ...]]:
    """Yield success rates by mode and task, with Wilson intervals."""
    for mode, result in results.items():
        for task in (None, *(result.tasks if len(result.tasks) > 1 else ())):
            rates = (result.rate(task, criterion=criterion) for criterion in CRITERIA)
            yield mode, task or "all", *map(str, rates)
