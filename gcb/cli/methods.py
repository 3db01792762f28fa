"""`gcb methods`, `gcb ablate` and `gcb pictures`: composition only."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg

from gcb.errors import GCBError

if TYPE_CHECKING:
    from gcb.utils.dataclass_io import Difference


@dataclass
class Methods:
    """List the methods that can be trained."""

    def run(self) -> None:
        from gcb.methods import METHODS

        table = Table(title="methods", title_justify="left")
        for name in ("name", "what it learns", "by example", "from"):
            table.add_column(name)
        for name, method in METHODS.items():
            table.add_row(name, method.summary, "yes" if method.supports_analogy else "NA", method.paper)
        Console().print(table)


@dataclass
class Ablate:
    """Train an ablation of GCB, one field away from what it is compared with; or list them all."""

    name: Positional[str | None] = None
    """Which one; --list says what there is."""
    show: Annotated[bool, arg(name="list")] = False
    """List the ablations, and what each changes in the preset."""
    data: Path | None = None
    """Folder of the dataset."""
    out: Path | None = None
    """Folder of the run."""
    preset: str = "laptop"
    """Values to start from: paper, laptop or smoke."""
    seed: int = 0
    """Seed of the run."""
    steps: int | None = None
    """Gradient steps, if not the preset's; the reference should have as many."""
    quiet: bool = False
    """No progress bar."""

    def run(self) -> None:
        if self.show:
            Console().print(ablation_table(self.preset))
            return
        if self.name is None or self.data is None or self.out is None:
            raise GCBError("say what to train, on what, and where: gcb ablate NAME --data DIR --out RUN; or --list.")
        from gcb.runs.ablations import ablated_config, difference
        from gcb.training.trainer import train

        changes: dict[str, Any] = {"seed": self.seed, **({} if self.steps is None else {"steps": self.steps})}
        config = ablated_config(self.name, self.preset, changes)
        Console().print(f"{self.name}: {_arrow(difference(self.name, self.preset)[0])}")
        done = train(config, self.data, self.out, quiet=self.quiet)
        Console().print(f"{done.path} is finished: {done.step:,} steps.")


def ablation_table(preset: str) -> Table:
    """Every ablation with what it changes in a preset."""
    from gcb.runs.ablations import ABLATIONS, difference

    table = Table(title=f"ablations of gcb, preset {preset}", title_justify="left")
    for name in ("name", "what it asks", "changes", "figure", "environment"):
        table.add_column(name, no_wrap=name == "name", overflow="fold")
    for one in ABLATIONS.values():
        changes = "\n".join(map(_arrow, difference(one.name, preset))) or "nothing in this preset"
        reference = "" if one.reference is None else f", from {one.reference}"
        table.add_row(one.name, one.question, changes + reference, one.figure, one.env)
    return table


def _arrow(change: "Difference") -> str:
    """Return a change as "size 256 → 32"."""
    return f"{change.name.removeprefix('method_config.')} {change.old!r} → {change.new!r}"


@dataclass
class Pictures:
    """Draw what an autoencoder has learned: frames, the same drawn again from their codes, and samples."""

    run_folder: Positional[Path]
    """Folder of a run of vae or cc_vae."""
    data: Path
    """Folder of a dataset whose frames are shown."""
    out: Path
    """The picture, a PNG."""
    rows: int = 8
    """How many frames."""
    seed: int = 0
    """Which frames and samples."""

    def run(self) -> None:
        from gcb.agent.agent import load
        from gcb.analysis.reconstructions import reconstruction_sheet
        from gcb.data import open_dataset

        reconstruction_sheet(load(self.run_folder), open_dataset(self.data), self.out, rows=self.rows, seed=self.seed)
        Console().print(f"picture: {self.out}")
