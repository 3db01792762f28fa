"""`gcb data`: show, check, import and export datasets."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from rich.console import Console
from rich.table import Table
from tyro.conf import OmitArgPrefixes, Positional, subcommand


@dataclass
class DataCheck:
    """Check every byte of a dataset against its manifest."""

    path: Positional[Path]
    """Directory of the dataset."""

    def run(self) -> None:
        from gcb.data import open_dataset

        dataset = open_dataset(self.path)
        dataset.verify()
        Console().print(f"{self.path} is intact: {dataset.transitions:,} transitions in {dataset.episodes:,} episodes.")


@dataclass
class DataShow:
    """Print a summary of a dataset, and optionally write a contact sheet."""

    path: Positional[Path]
    """Directory of the dataset."""
    sheet: Path | None = None
    """Write a contact sheet of some episodes to this PNG file."""
    episodes: int = 8
    """Number of episodes in the contact sheet."""
    seed: int = 0
    """Seed that selects the episodes of the contact sheet."""

    def run(self) -> None:
        from gcb.data import contact_sheet, describe, open_dataset

        dataset = open_dataset(self.path)
        print_rows(describe(dataset))
        if self.sheet:
            contact_sheet(dataset, self.sheet, episodes=self.episodes, seed=self.seed)
            Console().print(f"contact sheet: {self.sheet}")


@dataclass
class DataImport:
    """Import an OGBench file, a Minari dataset or a directory of .npz files. See docs/extend.md."""

    source: Positional[Path]
    """An OGBench .npz file, a Minari dataset's directory, or a directory with one .npz file per episode."""
    out: Path
    """Directory of the dataset."""
    format: Literal["auto", "ogbench", "minari", "npz_dir"] = "auto"
    """Format of the source; auto detects it."""
    action_bound: float = 1.0
    """Largest possible action of the source. Actions are divided by it to lie in [-1, 1]."""
    rewards: Literal["keep", "drop"] = "keep"
    """Keep the source's rewards, which must be 1 at the goal and 0 elsewhere, or drop them and rely on hindsight."""
    reward_offset: float = 0.0
    """Added to every reward: 1 if the source's rewards are 0 at the goal and -1 elsewhere."""
    observation: str | None = None
    """For Minari observations of type Dict, the entry that the agent sees. The default is "observation"."""
    env: str | None = None
    """Gymnasium id of the environment that the data come from, for `gcb eval`."""
    adapter: str | None = None
    """Adapter for that environment: gcb, goal, achieved or info. `gcb eval --adapter` also takes your own."""

    def run(self) -> None:
        from gcb.data import ImportOptions, describe, import_data

        options = ImportOptions(
            self.format, self.action_bound, self.rewards, self.reward_offset, self.observation, self.env, self.adapter
        )
        result = import_data(self.source, self.out, options)
        if result.already_complete:
            Console().print(f"{self.out} is already complete.")
        if result.unused_arrays:
            Console().print(f"not imported, because a dataset has no field for them: {', '.join(result.unused_arrays)}")
        print_rows(describe(result.dataset))
        val = self.source.with_name(f"{self.source.stem}-val.npz")
        if self.source.suffix == ".npz" and val.is_file():
            Console().print(f"{val.name} has the validation episodes; import it into a directory of its own.")


@dataclass
class DataExport:
    """Export a dataset as an OGBench .npz file or a Minari dataset. Importing it again restores the same dataset."""

    path: Positional[Path]
    """Directory of the dataset."""
    out: Path
    """NAME.npz for OGBench, NAME-v0 (a new directory) for Minari."""
    format: Literal["auto", "ogbench", "minari"] = "auto"
    """Format to write; auto decides by the name."""
    val_episodes: int = 0
    """Number of episodes, from the end, for OGBench's validation file NAME-val.npz."""

    def run(self) -> None:
        from gcb.data import export_data, open_dataset

        for path in export_data(open_dataset(self.path), self.out, self.format, val_episodes=self.val_episodes):
            Console().print(f"written: {path}")


@dataclass
class Data:
    """Show, check, import and export datasets."""

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
    """Print names and values, one pair per line."""
    table = Table(show_header=False, box=None, title=title, title_justify="left")
    for name, value in rows:
        table.add_row(f"[bold]{name}", value)
    Console().print(table)
