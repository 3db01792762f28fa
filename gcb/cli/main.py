"""The command line: composition only. Every field's docstring is its help."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table
from tyro.conf import subcommand

from gcb.cli.analysis import Analyse, Report
from gcb.cli.data import Data, print_rows
from gcb.cli.explore import Explore
from gcb.cli.learn import Eval, HeldOut, train_subcommand
from gcb.cli.methods import Ablate, Methods, Pictures
from gcb.cli.share import Export
from gcb.cli.sweep import Sweep
from gcb.cli.sweep import Table as ResultTable
from gcb.errors import GCBError

GOES_ON = ("collect", "train", "sweep", "demo", "ablate")
"""Commands that, given again, go on where they were stopped."""


def _world_options(image_size: int, video: bool, clips: Path | None) -> dict[str, Any]:
    source = str(clips) if clips else "builtin" if video else None
    return {"image_size": image_size, "video": source}


@dataclass
class Collect:
    """Collect an offline dataset from the noisy scripted expert. The same command goes on where it was stopped."""

    out: Path
    """Folder of the dataset."""
    env: str = "gcb/ButtonDrawer-v0"
    """The world: gcb/Drawer-v0 or gcb/ButtonDrawer-v0."""
    transitions: int = 50_000
    """How many transitions, exactly."""
    seed: int = 0
    """The same seed gives the same bytes, whatever the number of workers."""
    workers: int = 1
    """Processes that play episodes; one per core is best."""
    noise: float = 0.3
    """Standard deviation of the noise on the expert's actions."""
    image_size: int = 64
    """Side of the images in pixels."""
    video: bool = False
    """Video distractors: moving natural images behind the scene."""
    clips: Path | None = None
    """Folder of own clips (mp4, avi, webm, …) for the video distractors, instead of the built-in ones."""

    def run(self) -> None:
        from gcb.data import CollectConfig, collect, describe, open_dataset

        options = _world_options(self.image_size, self.video, self.clips)
        config = CollectConfig(self.env, self.transitions, self.seed, self.noise, options)
        done = collect(config, self.out, workers=self.workers)
        if done.start_transitions == done.transitions:
            Console().print(f"{done.path} is already complete.")
        print_rows(describe(open_dataset(done.path)))


@dataclass
class Expert:
    """Measure the scripted expert, with and without noise, on seeds that no dataset uses."""

    env: str = "gcb/ButtonDrawer-v0"
    """The world: gcb/Drawer-v0 or gcb/ButtonDrawer-v0."""
    episodes: int = 300
    """How many episodes."""
    noise: float = 0.3
    """Standard deviation of the noise on the actions."""
    seed: int = 0
    """Seed of the scenes and the noise."""
    video_out: Path | None = None
    """Also write a video (.mp4 or .gif) of six noise-free episodes."""
    sheet_out: Path | None = None
    """Also write a picture of scenes: state, goal, and an analogous pair."""
    video: bool = False
    """Video distractors behind the scene."""
    clips: Path | None = None
    """Folder of own clips for the video distractors."""

    def run(self) -> None:
        from gcb.envs.expert_media import expert_video, measure_expert, scene_sheet

        options = _world_options(64, self.video, self.clips)
        rates = measure_expert(self.env, self.episodes, self.noise, self.seed, **options)
        rows = [("noise-free", str(rates.noise_free)), (f"noise {self.noise:g}", str(rates.noisy))]
        rows += [(f"  {task}", str(rate)) for task, rate in rates.per_task.items()]
        print_rows([*rows, ("mean steps", f"{rates.mean_steps:.1f}")], title=f"expert in {self.env}")
        if self.video_out:
            expert_video(self.env, self.video_out, 6, self.seed, **options)
        if self.sheet_out:
            scene_sheet(self.env, self.sheet_out, 4, self.seed, **options)


@dataclass
class Demo:
    """From nothing to pictures, on built-in defaults."""

    out: Path = field(default_factory=lambda: Path("demo"))
    """Folder for everything that the demo makes."""

    def run(self) -> None:
        from gcb.cli.demo import demo

        demo(self.out, Console())


@dataclass
class Theory:
    """Check the paper's theory on small worlds where the metric can be computed exactly."""

    out: Path = field(default_factory=lambda: Path("theory"))
    """Folder for the verdicts and the figures."""
    quick: bool = False
    """Fewer worlds and steps: seconds instead of minutes."""

    def run(self) -> None:
        from gcb.theory import run

        verdicts = run(self.out, quick=self.quick)
        table = Table(title="verdicts", title_justify="left")
        for name in ("source", "claim", "verdict", "cases", "largest violation"):
            table.add_column(name)
        for one in verdicts:
            table.add_row(one.source, one.claim, one.word, str(one.cases), f"{one.largest_violation:.2g}")
        Console().print(table)
        Console().print(f"figures and verdicts: {self.out}")


def _command(arguments: Sequence[str]) -> Any:
    """All commands, as the union that tyro reads; `train` has the fields of the method and preset it is given."""
    return (
        Annotated[Demo, subcommand("demo")]
        | Annotated[Collect, subcommand("collect")]
        | Annotated[Data, subcommand("data")]
        | Annotated[Expert, subcommand("expert")]
        | train_subcommand(arguments)
        | Annotated[Eval, subcommand("eval")]
        | Annotated[HeldOut, subcommand("held-out")]
        | Annotated[Export, subcommand("export")]
        | Annotated[Analyse, subcommand("analyse")]
        | Annotated[Report, subcommand("report")]
        | Annotated[Explore, subcommand("explore")]
        | Annotated[Sweep, subcommand("sweep")]
        | Annotated[ResultTable, subcommand("table")]
        | Annotated[Methods, subcommand("methods")]
        | Annotated[Ablate, subcommand("ablate")]
        | Annotated[Pictures, subcommand("pictures")]
        | Annotated[Theory, subcommand("theory")]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; a `GCBError` is a message, not a traceback."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        about = "Goal-conditioned bisimulation."
        tyro.cli(_command(arguments), prog="gcb", description=about, args=arguments).run()
    except GCBError as error:
        print(f"gcb: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # the reader (head, less) has seen enough
        sys.stderr.close()
        sys.exit(141)
    except KeyboardInterrupt:
        keeps = arguments[:1] and arguments[0] in GOES_ON
        print("gcb: stopped" + ("; the same command goes on where it was" if keeps else ""), file=sys.stderr)
        sys.exit(130)
