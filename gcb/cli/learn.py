"""`gcb train` and `gcb eval`: composition only. The fields of a configuration are its help."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar

import tyro
from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg, subcommand

from gcb.errors import GCBError
from gcb.utils.progress import duration

# What needs torch is imported where it is used: other commands start without it.
if TYPE_CHECKING:
    from gcb.agent.agent import Agent
    from gcb.envs.spec import EnvSpec
    from gcb.evaluation.evaluate import EvalResult

Config = TypeVar("Config")


@dataclass
class Train(Generic[Config]):
    """Train an agent on a dataset. The same command goes on where it was stopped."""

    data: Path
    """Folder of the dataset."""
    out: Path
    """Folder of the run."""
    config: Annotated[Config, arg(name="")]
    preset: str = "laptop"
    """Values to start from: paper (the text's, for a GPU), laptop (two cores, minutes), laptop_video (the same for
    scenes with video behind them), smoke (seconds)."""
    settings: Path | None = None
    """A run's config.yaml to start from instead of a preset."""
    eval_every: int = 0
    """Steps between evaluations on the way, a multiple of checkpoint_every; 0 for none. They are not training time."""
    eval_episodes: int = 50
    """Episodes of each of those, by goal and, where the method can, by strict analogy."""
    quiet: bool = False
    """No progress bar."""

    def run(self) -> None:
        from gcb.training.distributed import is_main
        from gcb.training.trainer import train

        config = self._fitted()
        if self.eval_every % config.checkpoint_every:
            raise GCBError(f"eval_every is {self.eval_every}; accepted: a multiple of {config.checkpoint_every}, or 0.")
        done = train(config, self.data, self.out, quiet=self.quiet, on_checkpoint=self._evaluated)
        if not is_main():
            return
        state = "was finished already" if done.start_step == done.step else "is finished"
        Console().print(f"{done.path} {state}: {done.step:,} steps in {duration(done.seconds)} of training.")

    def _fitted(self) -> Any:
        """The configuration as the dataset allows it, with goals from hindsight if it has none of its own."""
        from gcb.data import open_dataset
        from gcb.data.sampler import describe_failures, lacks_original_goals

        config: Any = self.config
        dataset = open_dataset(self.data)
        if config.only_successful and (reason := describe_failures(dataset)):
            _tell(f"{reason} and are left out (--no-only-successful keeps them).")
        if config.goals.p_original and (reason := lacks_original_goals(dataset)):
            config = replace(config, goals=config.goals.without_original())
            _tell(f"{reason}: hindsight supplies them (goals.p_original 0, goals.p_future {config.goals.p_future:g}).")
        if dataset.config.get("options", {}).get("video") and self.preset == "laptop" and self.settings is None:
            _tell("The scenes have video behind them: --preset laptop_video takes longer and learns more.")
        return config

    def _evaluated(self, agent: "Agent", step: int) -> dict[str, float]:
        from gcb.evaluation.evaluate import env_spec_of, evaluate, modes_of

        if not self.eval_every or step % self.eval_every:
            return {}
        figures = {}
        for mode in modes_of(agent, env_spec_of(agent)):
            result = evaluate(agent, mode=mode, episodes=self.eval_episodes, quiet=self.quiet)
            figures[f"eval_{mode}"] = result.rate().value
        return figures


def _tell(text: str) -> None:
    """A word to the user, from one process of several."""
    from gcb.training.distributed import is_main

    if is_main():
        Console(stderr=True).print(text)


@dataclass
class Eval:
    """Measure an agent's success by goal image and by analogy; writes RUN/eval.json and RUN/videos."""

    run_folder: Positional[Path]
    """Folder of the run."""
    episodes: int = 200
    """Episodes in each mode, of seeds that no dataset uses."""
    modes: tuple[Literal["goal", "strict", "loose"], ...] | None = None
    """goal (the goal image), strict and loose (an example pair only); by default goal and strict."""
    seed: int = 0
    """Which episodes."""
    workers: int = 1
    """Processes that share the episodes; one per core is best."""
    batch: int = 20
    """Worlds that are stepped as one batch."""
    eval_temperature: float | None = None
    """Actions are drawn from the policy with so much of its own spread; 0 takes their mean. By default half of it in
    our worlds, the mean elsewhere."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "cpu"
    """Where to compute."""
    clips: Path | None = None
    """Folder of clips for video distractors, if the dataset's were own ones and lie elsewhere now."""
    videos: bool = True
    """Write a video of some episodes for each mode."""
    env: str | None = None
    """Gymnasium id of another environment than the dataset's; module:id imports the module that registers it."""
    adapter: str | None = None
    """How that environment is played: gcb, goal, achieved, info, or module:name of an own gcb.envs.adapters.Adapter."""

    def run(self) -> None:
        from gcb.evaluation.evaluate import evaluate_run

        results = evaluate_run(
            self.run_folder,
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

    def _env_spec(self) -> "EnvSpec | None":
        """The environment that was asked for; None for the dataset's own."""
        from gcb.envs.adapters import load_adapter
        from gcb.envs.spec import EnvSpec

        if self.env is None:
            if self.adapter is not None:
                raise GCBError(f"adapter is {self.adapter!r}, but no env is given that it would adapt.")
            return None
        return EnvSpec(self.env, adapter=load_adapter(self.adapter or "goal"))


@dataclass
class HeldOut:
    """Measure how well an agent foretells the actions of data it has not seen, which needs no environment."""

    run_folder: Positional[Path]
    """Folder of the run."""
    data: Positional[Path]
    """Folder of a dataset of the same kind, with episodes of its own."""
    transitions: int = 4000
    """How many transitions are drawn."""
    seed: int = 0
    """Which ones."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "cpu"
    """Where to compute."""

    def run(self) -> None:
        from gcb.agent.agent import load
        from gcb.data import open_dataset
        from gcb.evaluation.held_out import action_error

        found = action_error(load(self.run_folder, self.device), open_dataset(self.data), self.transitions, self.seed)
        title = f"mean squared error of actions, {self.transitions:,} transitions of {found.episodes:,} episodes"
        table = Table(title=title, title_justify="left")
        table.add_column("actions")
        table.add_column("error")
        table.add_row("the agent's, told its goal", str(found.true_goal))
        table.add_row("  by dimension", "  ".join(f"{value:.3f}" for value in found.dimensions))
        table.add_row("the agent's, told another episode's goal", str(found.shuffled_goal))
        table.add_row("the best single one for all", str(found.mean_action))
        Console().print(table)


def results_table(results: Mapping[str, "EvalResult"]) -> Table:
    """Success by mode and task, with Wilson intervals."""
    table = Table(title="success", title_justify="left")
    for name in ("mode", "task", "at any step", "at the end"):
        table.add_column(name)
    for mode, result in results.items():
        for task in (None, *(result.tasks if len(result.tasks) > 1 else ())):
            name = "all" if task is None else task
            table.add_row(mode, name, str(result.rate(task)), str(result.rate(task, at_end=True)))
    return table


@dataclass
class TrainSummary:
    """Train an agent on a dataset. The same command goes on where it was stopped."""


def train_subcommand(arguments: Sequence[str]) -> Any:
    """The type that tyro reads `gcb train` with: its fields and defaults are those of the method and the preset given.

    For any other command a summary will do.
    """
    if list(arguments[:1]) != ["train"]:
        return Annotated[TrainSummary, subcommand("train")]
    from gcb.methods import method_named
    from gcb.runs.config import TrainConfig, make_config, read_config

    method, settings = _given(arguments, "--method"), _given(arguments, "--settings")
    preset = _given(arguments, "--preset") or "laptop"
    config = read_config(settings) if settings else make_config(method or "gcb", preset)
    if method not in (None, config.method):
        raise GCBError(f"--method is {method!r}, but {settings} is a configuration of {config.method!r}.")
    kind = Train[TrainConfig[method_named(config.method).config_type]]  # pyright: ignore[reportInvalidTypeArguments]
    default = Train(tyro.MISSING, tyro.MISSING, config, preset)
    return Annotated[kind, subcommand("train", default=default)]  # pyright: ignore[reportInvalidTypeForm]


def _given(arguments: Sequence[str], name: str) -> str | None:
    """The value of an option that decides how the others are read."""
    for index, argument in enumerate(arguments):
        if argument == name and index + 1 < len(arguments):
            return arguments[index + 1]
        if argument.startswith(f"{name}="):
            return argument.partition("=")[2]
    return None
