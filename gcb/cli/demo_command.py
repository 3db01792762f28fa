"""`gcb demo`: its options, separate from `gcb.cli.demo`, which imports PyTorch."""

from dataclasses import dataclass, field
from pathlib import Path

from gcb.cli.output import console


@dataclass
class Demo:
    """Film the agent that comes with gcb, then train your own: collect data, train, evaluate, analyse, report.

    It takes about ten minutes on two cores. Run the same command again to resume.
    """

    out: Path = field(default_factory=lambda: Path("demo"))
    """Directory for all outputs."""

    def run(self) -> None:
        from gcb.cli.demo import demo

        demo(self.out, console())
