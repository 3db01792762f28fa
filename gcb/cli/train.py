"""`gcb train`: every field of the configuration is an option."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro
from rich.console import Console
from tyro.conf import arg, subcommand

from gcb.agent.agent import Agent
from gcb.data import open_dataset
from gcb.data.sampler import describe_failures, lacks_original_goals
from gcb.errors import GCBError
from gcb.evaluation.evaluate import env_spec_of, modes_of, validate
from gcb.methods import method_named
from gcb.runs.config import TrainConfig, make_config, read_config
from gcb.training.distributed import is_main
from gcb.training.trainer import train
from gcb.utils.progress import duration

Config = TypeVar("Config", bound=TrainConfig[Any])


@dataclass
class Train(Generic[Config]):
    """Train an agent on a dataset. Run the same command again to resume from the last checkpoint.

    The options shown are those of the method and preset given: gcb train --method gcbc --preset paper --help.
    """

    data: Path
    """Directory of the dataset."""
    out: Path
    """Directory of the run."""
    config: Annotated[Config, arg(name="")]
    preset: str = "laptop"
    """Preset of default values: paper (for a GPU), laptop (minutes on two cores), laptop_video or smoke (for tests).
    laptop_video is laptop for datasets with video distractors."""
    settings: Path | None = None
    """YAML file of default values, such as a run's config.yaml, instead of a preset."""
    eval_every: int = 0
    """Steps between evaluations during training, a multiple of checkpoint_every; 0 for none."""
    eval_episodes: int = 50
    """Episodes per evaluation and mode."""
    quiet: bool = False
    """Hide the progress bar."""

    def run(self) -> None:
        config = self._adapt_to_data()
        if self.eval_every % config.checkpoint_every:
            raise GCBError(f"eval_every is {self.eval_every}; accepted: a multiple of {config.checkpoint_every}, or 0.")
        result = train(config, self.data, self.out, quiet=self.quiet, on_checkpoint=self._evaluate)
        if is_main():
            state = "was already finished" if result.start_step == result.step else "is finished"
            time = duration(result.seconds)
            Console().print(f"{result.path} {state}: {result.step:,} steps in {time} of training.")

    def _adapt_to_data(self) -> Config:
        """Return the configuration, with goals relabelled if the dataset has none, and print hints."""
        config, dataset = self.config, open_dataset(self.data)
        if config.only_successful and (reason := describe_failures(dataset)):
            _print_hint(f"{reason} and are left out (--no-only-successful keeps them).")
        if config.goals.p_original and (reason := lacks_original_goals(dataset)):
            config = replace(config, goals=config.goals.without_original())
            _print_hint(
                f"{reason}: goals are relabelled (goals.p_original 0, goals.p_future {config.goals.p_future:g})."
            )
        if dataset.config.get("options", {}).get("video") and self.preset == "laptop" and self.settings is None:
            _print_hint("The dataset has video distractors: --preset laptop_video takes longer but learns more.")
        return config

    def _evaluate(self, agent: Agent, step: int) -> dict[str, float]:
        """Return the success rates at a checkpoint, as metrics."""
        if not self.eval_every or step % self.eval_every:
            return {}
        return validate(agent, modes_of(agent, env_spec_of(agent)), episodes=self.eval_episodes, quiet=self.quiet)


def _print_hint(text: str) -> None:
    if is_main():
        Console(stderr=True).print(text)


def train_type(arguments: Sequence[str]) -> Any:
    """Return the type of `gcb train` for tyro: its options and defaults depend on the method and preset given."""
    method, settings = _option(arguments, "--method"), _option(arguments, "--settings")
    preset = _option(arguments, "--preset") or "laptop"
    config = read_config(settings) if settings else make_config(method or "gcb", preset)
    if method not in (None, config.method):
        raise GCBError(f"--method is {method!r}, but {settings} is a configuration of {config.method!r}.")
    cls = Train[TrainConfig[method_named(config.method).config_type]]  # pyright: ignore[reportInvalidTypeArguments]
    default = Train(tyro.MISSING, tyro.MISSING, config, preset)
    return Annotated[cls, subcommand("train", default=default)]  # pyright: ignore[reportInvalidTypeForm]


def _option(arguments: Sequence[str], name: str) -> str | None:
    """Return the value of an option, before the arguments are parsed."""
    for index, argument in enumerate(arguments):
        if argument == name and index + 1 < len(arguments):
            return arguments[index + 1]
        if argument.startswith(f"{name}="):
            return argument.partition("=")[2]
    return None
