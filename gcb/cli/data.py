"""`gcb data`: look at datasets, check them, take them over from other formats and give them away."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from rich.console import Console
from rich.table import Table
from tyro.conf import OmitArgPrefixes, Positional, subcommand


@dataclass
class DataCheck:
    """Verify every byte of a dataset against its manifest."""

    path: Positional[Path]
    """Folder of the dataset."""

    def run(self) -> None:
        from gcb.data import open_dataset

        dataset = open_dataset(self.path)
        dataset.verify()
        Console().print(f"{self.path} is whole: {dataset.transitions:,} transitions in {dataset.episodes:,} episodes.")


@dataclass
class DataShow:
    """Say what a dataset holds, and write a contact sheet."""

    path: Positional[Path]
    """Folder of the dataset."""
    sheet: Path | None = None
    """Where to write a contact sheet of some episodes, as PNG."""
    episodes: int = 8
    """Rows of the contact sheet."""
    seed: int = 0
    """Which episodes the contact sheet shows."""

    def run(self) -> None:
        from gcb.data import contact_sheet, describe, open_dataset

        dataset = open_dataset(self.path)
        print_rows(describe(dataset))
        if self.sheet:
            contact_sheet(dataset, self.sheet, episodes=self.episodes, seed=self.seed)
            Console().print(f"contact sheet: {self.sheet}")


@dataclass
class DataImport:
    """Make a dataset of an OGBench file, a Minari dataset or a folder of episodes; docs/extend.md shows each."""

    source: Positional[Path]
    """OGBench's .npz file, the folder of a Minari dataset, or a folder with one .npz file for each episode."""
    out: Path
    """Folder of the dataset."""
    format: Literal["auto", "ogbench", "minari", "folder"] = "auto"
    """What the source is; auto looks."""
    action_bound: float = 1.0
    """Size of the largest possible action of the source: actions are divided by it, for ours lie in [-1, 1]."""
    rewards: Literal["keep", "drop"] = "keep"
    """Keep the source's rewards, which must be 1 at the goal and 0 elsewhere, or drop them: hindsight gives others."""
    reward_offset: float = 0.0
    """Added to every reward: 1 where the source's are 0 at the goal and -1 elsewhere."""
    observation: str | None = None
    """Of Minari observations that are a Dict, the entry that the agent sees; by default "observation"."""
    env: str | None = None
    """Gymnasium id of the environment that the data come from, for `gcb eval`."""
    adapter: str | None = None
    """How that environment is played: gcb, goal, achieved, info, or module:name of an own one."""

    def run(self) -> None:
        from gcb.data import ImportOptions, describe, import_data

        options = ImportOptions(
            self.format, self.action_bound, self.rewards, self.reward_offset, self.observation, self.env, self.adapter
        )
        made = import_data(self.source, self.out, options)
        if made.was_there:
            Console().print(f"{self.out} was finished already.")
        if made.left_out:
            Console().print(f"left out, for a dataset has no place for them: {', '.join(made.left_out)}")
        print_rows(describe(made.dataset))
        val = self.source.with_name(f"{self.source.stem}-val.npz")
        if self.source.suffix == ".npz" and val.is_file():
            Console().print(f"{val.name} lies beside it, to be validated on: import it into a folder of its own.")


@dataclass
class DataExport:
    """Write a dataset as OGBench's .npz or as a Minari dataset; importing that again gives the same dataset."""

    path: Positional[Path]
    """Folder of the dataset."""
    out: Path
    """NAME.npz for OGBench, NAME-v0 (a new folder) for Minari."""
    format: Literal["auto", "ogbench", "minari"] = "auto"
    """What to write; auto goes by the name."""
    val_episodes: int = 0
    """So many episodes from the end go to OGBench's second file, NAME-val.npz."""

    def run(self) -> None:
        from gcb.data import export_data, open_dataset

        for path in export_data(open_dataset(self.path), self.out, self.format, val_episodes=self.val_episodes):
            Console().print(f"written: {path}")


@dataclass
class Data:
    """Look at datasets, take them over from other formats, give them away."""

    # Without the prefix it is `--sheet`, not `--action.sheet`.
    action: OmitArgPrefixes[
        Annotated[DataShow, subcommand("show", prefix_name=False)]
        | Annotated[DataCheck, subcommand("check", prefix_name=False)]
        | Annotated[DataImport, subcommand("import", prefix_name=False)]
        | Annotated[DataExport, subcommand("export", prefix_name=False)]
    ]

    def run(self) -> None:
        self.action.run()


def print_rows(rows: Sequence[tuple[str, str]], title: str | None = None) -> None:
    """Names and values, one pair a line."""
    table = Table(show_header=False, box=None, title=title, title_justify="left")
    for name, value in rows:
        table.add_row(f"[bold]{name}", value)
    Console().print(table)
