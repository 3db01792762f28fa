"""`gcb train`: every field of the configuration is an option."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro
from tyro.conf import arg, subcommand

from gcb.cli import Episodes
from gcb.cli.arguments import Within
from gcb.cli.output import say
from gcb.data import open_dataset
from gcb.data.sampler import describe_failures, lacks_original_goals
from gcb.errors import GCBError, short
from gcb.methods import settings_of
from gcb.runs.config import TrainConfig, make_config, read_config
from gcb.utils.dataclass_io import NONE_WORDS
from gcb.utils.progress import duration

Config = TypeVar("Config", bound=TrainConfig[Any])


@dataclass
class Train(Generic[Config]):
    """Train an agent on a dataset. Run the same command again to resume from the last checkpoint.

    To train a finished run further, repeat the command with more --steps.

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
    eval_every: Annotated[int, Within("[0, inf)")] = 0
    """Steps between evaluations during training, a multiple of checkpoint_every; 0 for none."""
    eval_episodes: Episodes = 50
    """Episodes per evaluation and mode."""
    quiet: bool = False
    """Hide the progress bar."""

    def run(self) -> None:
        # Imported here because PyTorch takes seconds to load.
        from gcb.evaluation.evaluate import Validation
        from gcb.training.distributed import is_main
        from gcb.training.trainer import train

        config = self._adapt_to_data(is_main())
        validation = Validation(self.eval_every, self.eval_episodes, self.quiet)
        validation.check(config.checkpoint_every)
        if is_main() and (hint := describe_extension(self.out, config)):
            say(hint, error=True)
        result = train(config, self.data, self.out, quiet=self.quiet, on_checkpoint=validation, extend=True)
        if is_main():
            state = "was already finished" if result.start_step == result.step else "is finished"
            time = duration(result.seconds)
            say(f"{result.path} {state}: {result.step:,} steps in {time} of training.")

    def _adapt_to_data(self, print_hints: bool) -> Config:
        """Return the configuration, with goals relabelled if the dataset has none, and print hints."""
        config, dataset, hints = self.config, open_dataset(self.data), []
        if self.eval_every:
            from gcb.envs.spec import recorded_env_spec

            recorded_env_spec(dataset.config).check_trusted()
        if config.only_successful and (reason := describe_failures(dataset)):
            hints.append(f"{reason} and are left out (--no-only-successful keeps them).")
        if config.goals.p_original and (reason := lacks_original_goals(dataset)):
            config = replace(config, goals=config.goals.without_original())
            hints.append(
                f"{reason}: goals are relabelled (goals.p_original 0, goals.p_future {config.goals.p_future:g})."
            )
        if (dataset.config.get("options") or {}).get("video") and self.preset == "laptop" and self.settings is None:
            hints.append("The dataset has video distractors: --preset laptop_video takes longer but learns more.")
        for hint in hints if print_hints else ():
            say(hint, error=True)
        return config


def describe_extension(path: Path, config: TrainConfig[Any]) -> str | None:
    """Return what happens to a finished run that is to have more steps; None if there is no such run."""
    from gcb.runs.extension import extends
    from gcb.runs.run_dir import RECORD, Run
    from gcb.training.learner import lr_multiplier

    if not (path / RECORD).is_file() or not extends(run := Run(path), config):
        return None
    done, steps = run.config.steps, f"{config.steps:,} steps"
    rates = lr_multiplier(run.config, done - 1), lr_multiplier(config, done), config.min_lr_ratio
    schedule = (
        "stays as it is."
        if config.lr_schedule == "none"
        else f"follows the {config.lr_schedule} schedule of {steps} from here on: it ended at {rates[0]:.0%} of its "
        f"maximum, goes on at {rates[1]:.0%} and ends at {rates[2]:.0%}."
    )
    return (
        f"{path} was finished after {done:,} steps and goes on to {steps}. Its learning rate {schedule} The result is "
        f"not that of a run that is started with {steps}."
    )


def train_type(arguments: Sequence[str]) -> Any:
    """Return the type of `gcb train` for tyro: its options and defaults depend on the method and preset given."""
    method, settings = _option(arguments, "--method"), _option(arguments, "--settings")
    preset = _option(arguments, "--preset") or "laptop"
    config = read_config(settings) if settings else make_config(method or "gcb", preset)
    if method not in (None, config.method):
        raise GCBError(f"--method is {short(method)}, but {settings} is a configuration of {config.method!r}.")
    cls = Train[TrainConfig[settings_of(config.method).config_type]]  # pyright: ignore[reportInvalidTypeArguments]
    default = Train(tyro.MISSING, tyro.MISSING, config, preset)
    return Annotated[cls, subcommand("train", default=default)]  # pyright: ignore[reportInvalidTypeForm]


def _option(arguments: Sequence[str], name: str) -> str | None:
    """Return the value of an option, before the arguments are parsed; the last one counts, as it does for tyro."""
    value = None
    for argument, following in zip(arguments, [*arguments[1:], None], strict=True):
        if argument == name:
            value = following
        elif argument.startswith(f"{name}="):
            value = argument.partition("=")[2]
    return None if value in NONE_WORDS else value
