"""`gcb methods` and `gcb ablate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg

from gcb.errors import GCBError
from gcb.methods import METHODS
from gcb.runs.ablations import ABLATIONS, ablated_config, ablation_changes
from gcb.training.trainer import train
from gcb.utils.dataclass_io import Difference


@dataclass
class Methods:
    """List the methods."""

    def run(self) -> None:
        table = Table(title="methods", title_justify="left")
        for name in ("name", "what it learns", "analogies", "source"):
            table.add_column(name)
        for name, method in METHODS.items():
            table.add_row(name, method.summary, "yes" if method.supports_analogy else "no", method.paper)
        Console().print(table)


@dataclass
class Ablate:
    """Train an ablation of GCB, which differs in one setting from its reference; or list the ablations."""

    name: Annotated[Positional[str | None], arg(metavar="[NAME]")] = None
    """Name of the ablation."""
    show: Annotated[bool, arg(name="list")] = False
    """List the ablations, and what each changes in the preset."""
    data: Path | None = None
    """Directory of the dataset."""
    out: Path | None = None
    """Directory of the run."""
    preset: str = "laptop"
    """Preset of default values: paper, laptop, laptop_video or smoke."""
    seed: int = 0
    """Random seed."""
    steps: int | None = None
    """Number of gradient steps; None for the preset's."""
    quiet: bool = False
    """Hide the progress bar."""

    def run(self) -> None:
        if self.show:
            Console().print(ablation_table(self.preset))
            return
        if self.name is None or self.data is None or self.out is None:
            raise GCBError("name, data and out are needed: gcb ablate NAME --data DIR --out RUN; or --list.")
        changes: dict[str, Any] = {"seed": self.seed, **({} if self.steps is None else {"steps": self.steps})}
        config = ablated_config(self.name, self.preset, changes)
        Console().print(f"{self.name}: {_arrow(ablation_changes(self.name, self.preset)[0])}")
        result = train(config, self.data, self.out, quiet=self.quiet)
        Console().print(f"{result.path} is finished: {result.step:,} steps.")


def ablation_table(preset: str) -> Table:
    """Return a table of the ablations and what each changes in a preset."""
    table = Table(title=f"ablations of gcb, preset {preset}", title_justify="left")
    for name in ("name", "description", "changes", "figure", "environment"):
        table.add_column(name, no_wrap=name == "name", overflow="fold")
    for ablation in ABLATIONS.values():
        changes = "\n".join(map(_arrow, ablation_changes(ablation.name, preset))) or "nothing in this preset"
        reference = "" if ablation.reference is None else f", from {ablation.reference}"
        table.add_row(ablation.name, ablation.description, changes + reference, ablation.figure, ablation.env)
    return table


def _arrow(change: Difference) -> str:
    """Return a change as "size 256 → 32"."""
    return f"{change.name.removeprefix('method_config.')} {change.old!r} → {change.new!r}"
