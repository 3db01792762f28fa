"""The `gcb` command: its subcommands, and how errors and interrupts end it."""

import sys
from collections.abc import Sequence
from dataclasses import make_dataclass
from functools import reduce
from importlib import import_module
from operator import or_
from typing import Annotated, Any

import tyro
from tyro.conf import subcommand

from gcb.errors import GCBError

COMMANDS = {
    "demo": ("gcb.cli.demo:Demo", "Collect data, train, evaluate and write a report, with built-in settings."),
    "collect": ("gcb.cli.collect:Collect", "Collect an offline dataset with the noisy scripted expert."),
    "data": ("gcb.cli.data:Data", "Show, check, import or export a dataset."),
    "expert": ("gcb.cli.collect:Expert", "Measure the success rate of the scripted expert."),
    "train": ("gcb.cli.train:Train", "Train an agent on a dataset."),
    "eval": ("gcb.cli.evaluate:Eval", "Measure an agent's success rate, given goal images or analogies."),
    "held-out": ("gcb.cli.evaluate:HeldOut", "Measure an agent's action-prediction error on held-out data."),
    "export": ("gcb.cli.evaluate:Export", "Export an agent to a directory for sharing, optionally with ONNX graphs."),
    "analyse": ("gcb.cli.analysis:Analyse", "Analyse a run's representation: neighbours, map, analogy arithmetic."),
    "report": ("gcb.cli.analysis:Report", "Write an HTML report about one or more runs."),
    "explore": ("gcb.cli.explore:Explore", "Explore an agent in the browser."),
    "sweep": ("gcb.cli.sweep:Sweep", "Train and evaluate a grid of methods, environments and seeds."),
    "table": ("gcb.cli.sweep:Table", "Write tables of a sweep's results."),
    "compare": ("gcb.cli.compare:Compare", "Compare methods in the same evaluation episodes: paired differences."),
    "methods": ("gcb.cli.methods:Methods", "List the methods."),
    "ablate": ("gcb.cli.methods:Ablate", "Train an ablation of GCB, or list the ablations."),
    "reconstruct": ("gcb.cli.analysis:Reconstruct", "Write reconstructions and samples of an autoencoder."),
    "theory": ("gcb.cli.theory:Theory", "Check the paper's propositions on small MDPs, exactly."),
}
"""The class and the summary of each command."""
RESUMABLE = ("collect", "train", "sweep", "demo", "ablate")
"""Commands that resume when they are run again."""


def _command_type(arguments: Sequence[str]) -> Any:
    """Return the union of commands that tyro parses.

    Only the given command is imported, the others are summaries: most need PyTorch, which takes seconds to load.
    """
    given = arguments[0] if arguments else None
    return reduce(or_, (_load(name, arguments) if name == given else _summary(name) for name in COMMANDS))


def _load(name: str, arguments: Sequence[str]) -> Any:
    module, _, cls = COMMANDS[name][0].partition(":")
    if name == "train":
        from gcb.cli.train import train_type

        return train_type(arguments)
    return Annotated[getattr(import_module(module), cls), subcommand(name)]  # pyright: ignore[reportInvalidTypeForm]


def _summary(name: str) -> Any:
    return Annotated[make_dataclass(name, []), subcommand(name, description=COMMANDS[name][1])]  # pyright: ignore[reportInvalidTypeForm]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. A `GCBError` is printed as one line, without a traceback."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        about = "Goal-conditioned bisimulation: offline goal-conditioned RL from goal images and analogies."
        tyro.cli(_command_type(arguments), prog="gcb", description=about, args=arguments).run()
    except GCBError as error:
        print(f"gcb: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # the output was piped to `head` or the like
        sys.stderr.close()
        sys.exit(141)
    except KeyboardInterrupt:
        resumable = arguments[:1] and arguments[0] in RESUMABLE
        print("gcb: stopped" + ("; run the same command again to resume" if resumable else ""), file=sys.stderr)
        sys.exit(130)
