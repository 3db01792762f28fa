"""`gcb data`: show, check, import and export datasets."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import OmitArgPrefixes, Positional, arg, subcommand

from gcb.cli import Json, Seed
from gcb.cli.arguments import Within
from gcb.cli.output import print_json, print_rows, say
from gcb.data import ImportOptions


@dataclass
class DataCheck:
    """Check every byte of a dataset against its manifest, and that all numbers are finite and within their ranges."""

    path: Positional[Path]
    """Directory of the dataset."""

    def run(self) -> None:
        from gcb.data import open_dataset

        dataset = open_dataset(self.path)
        dataset.verify()
        dataset.check_values()
        say(f"{self.path} is intact: {dataset.transitions:,} transitions in {dataset.episodes:,} episodes.")


@dataclass
class DataShow:
    """Print a summary of a dataset, and optionally write a contact sheet."""

    path: Positional[Path]
    """Directory of the dataset."""
    sheet: Path | None = None
    """Write a contact sheet of some episodes to this PNG file."""
    episodes: Annotated[int, Within("[1, 1000]")] = 8
    """Number of episodes in the contact sheet."""
    seed: Seed = 0
    """Seed that selects the episodes of the contact sheet."""
    json: Json = False

    def run(self) -> None:
        from gcb.data import contact_sheet, describe, open_dataset

        dataset = open_dataset(self.path)
        rows = describe(dataset)
        print_json(dict(rows)) if self.json else print_rows(rows)
        if self.sheet:
            contact_sheet(dataset, self.sheet, episodes=self.episodes, seed=self.seed)
            say(f"contact sheet: {self.sheet}", error=self.json)


@dataclass
class DataImport:
    """Import an OGBench file, a Minari or LeRobot dataset, or a directory of .npz files. See docs/extend.md."""

    source: Positional[Path]
    """An OGBench .npz file, the directory of a Minari or LeRobot dataset, or one with an .npz file per episode."""
    out: Path
    """Directory of the dataset."""
    options: Annotated[ImportOptions, arg(name="")] = field(default_factory=ImportOptions)

    def run(self) -> None:
        from gcb.data import describe, import_data

        result = import_data(self.source, self.out, self.options)
        if result.already_complete:
            say(f"{self.out} is already complete.")
        if result.unused_arrays:
            say(f"not imported, because a dataset has no field for them: {', '.join(result.unused_arrays)}")
        print_rows(describe(result.dataset))
        val = self.source.with_name(f"{self.source.stem}-val.npz")
        if self.source.suffix == ".npz" and val.is_file():
            say(f"{val.name} has the validation episodes; import it into a directory of its own.")


@dataclass
class DataExport:
    """Export a dataset to OGBench, Minari or LeRobot. Importing it again restores the same dataset."""

    path: Positional[Path]
    """Directory of the dataset."""
    out: Path
    """NAME.npz for OGBench, NAME-v0 (a new directory) for Minari, any new directory for LeRobot."""
    format: Literal["auto", "ogbench", "minari", "lerobot"] = "auto"
    """Format to write; auto is ogbench for NAME.npz and minari otherwise."""
    val_episodes: int = 0
    """Number of episodes, from the end, for OGBench's validation file NAME-val.npz."""
    env: str | None = None
    """Environment that a Minari dataset names, such as package:Name-v0. The default is that of the dataset."""

    def run(self) -> None:
        from gcb.data import export_data, open_dataset
        from gcb.data.formats.minari import METADATA
        from gcb.data.formats.minari_writer import env_spec

        dataset = open_dataset(self.path)
        written = export_data(dataset, self.out, self.format, val_episodes=self.val_episodes, env=self.env)
        for path in written:
            say(f"written: {path}")
        env = dataset.config.get("env")
        if env and (self.out / "data" / METADATA).is_file() and self.env is None and env_spec(dataset.config) is None:
            say(f"It does not name its environment, which would import {env}: name it with --env {env}")


# A comment above a field would be its help, hence here: without the prefix it is `--sheet`, not `--action.sheet`.
DataAction = OmitArgPrefixes[
    Annotated[DataShow, subcommand("show", prefix_name=False)]
    | Annotated[DataCheck, subcommand("check", prefix_name=False)]
    | Annotated[DataImport, subcommand("import", prefix_name=False)]
    | Annotated[DataExport, subcommand("export", prefix_name=False)]
]


@dataclass
class Data:
    """Show, check, import and export datasets."""

    action: DataAction
    """What to do; `gcb data show --help` has the options of each."""

    def run(self) -> None:
        self.action.run()
