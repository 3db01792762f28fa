"""`gcb methods` and `gcb ablate`."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from gcb.cli import Json, Seed
from gcb.cli.output import print_json, print_table, say
from gcb.errors import GCBError
from gcb.runs.ablations import ABLATIONS, ablated_config, ablation_changes
from gcb.utils.dataclass_io import Difference


@dataclass
class Methods:
    """List the methods."""

    json: Json = False

    def run(self) -> None:
        from gcb.methods import METHODS

        if self.json:
            names = ("name", "summary", "supports_analogy", "paper")
            print_json([{name: getattr(method, name) for name in names} for method in METHODS.values()])
            return
        rows = [(m.name, m.summary, "yes" if m.supports_analogy else "no", m.paper) for m in METHODS.values()]
        print_table(("name", "what it learns", "analogies", "source"), rows, title="methods")


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
    seed: Seed = 0
    """Random seed."""
    steps: int | None = None
    """Number of gradient steps; none for the preset's."""
    quiet: bool = False
    """Hide the progress bar."""
    json: Json = False

    def run(self) -> None:
        if self.show:
            self._list()
            return
        if self.name is None or self.data is None or self.out is None:
            raise GCBError("name, data and out are needed: gcb ablate NAME --data DIR --out RUN; or --list.")
        changes: dict[str, Any] = {"seed": self.seed, **({} if self.steps is None else {"steps": self.steps})}
        config = ablated_config(self.name, self.preset, changes)
        from gcb.training.trainer import train

        say(f"{self.name}: {_arrow(ablation_changes(self.name, self.preset)[0])}")
        result = train(config, self.data, self.out, quiet=self.quiet)
        say(f"{result.path} is finished: {result.step:,} steps.")

    def _list(self) -> None:
        if self.json:
            print_json([{**vars(ablation)} for ablation in ABLATIONS.values()])
            return
        columns = ("name", "description", "changes", "figure", "environment")
        title = f"ablations of gcb, preset {self.preset}"
        print_table(columns, ablation_rows(self.preset), title=title, fixed=("name",))


def ablation_rows(preset: str) -> Iterator[tuple[str, ...]]:
    """Yield every ablation and what it changes in a preset."""
    for ablation in ABLATIONS.values():
        changes = "\n".join(map(_arrow, ablation_changes(ablation.name, preset))) or "nothing in this preset"
        reference = "" if ablation.reference is None else f", from {ablation.reference}"
        yield ablation.name, ablation.description, changes + reference, ablation.figure, ablation.env


def _arrow(change: Difference) -> str:
    """Return a change as "size 256 → 32"."""
    return f"{change.name.removeprefix('method_config.')} {change.old!r} → {change.new!r}"
