"""The `gcb` command: its subcommands, and how errors and interrupts end it."""

import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import make_dataclass
from functools import reduce
from importlib import import_module
from operator import or_
from typing import Annotated, Any

import tyro
from tyro.conf import subcommand

import gcb
from gcb.cli.arguments import REGISTRY, check_arguments
from gcb.errors import GCBError, printable, short, suggestion
from gcb.utils.os_errors import os_error_message

ABOUT = "Goal-conditioned bisimulation: offline goal-conditioned RL from goal images and analogies."
SHELLS = ("bash", "zsh", "tcsh", "fish")
DESCRIPTION = f"{ABOUT}\n\n`gcb --version`, and `gcb --completion {{{','.join(SHELLS)}}}` for completion in a shell."
COMMANDS = {
    "demo": ("gcb.cli.demo_command:Demo", "Collect data, train, evaluate and write a report, with built-in settings."),
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
    "table": ("gcb.cli.table:Table", "Make a Markdown table of a sweep's results."),
    "compare": ("gcb.cli.compare:Compare", "Compare methods in the same evaluation episodes: paired differences."),
    "methods": ("gcb.cli.methods:Methods", "List the methods."),
    "ablate": ("gcb.cli.methods:Ablate", "Train an ablation of GCB, or list the ablations."),
    "reconstruct": ("gcb.cli.analysis:Reconstruct", "Write reconstructions and samples of an autoencoder."),
    "theory": ("gcb.cli.theory:Theory", "Check the paper's propositions on small MDPs, where the metric is exact."),
}
"""The class and the summary of each command."""
ALIASES = {"analyze": "analyse"}
DATA_COMMANDS, DATA_ALIASES = ("show", "check", "import", "export"), {"info": "show"}
FIRST_STEPS = {
    "gcb demo": "everything in about ten minutes: data, training, evaluation, a report",
    "gcb collect --out DATA": "collect a dataset with the scripted expert",
    "gcb train --data DATA --out RUN": "train an agent on it",
    "gcb eval RUN": "measure its success",
    "gcb explore": "give tasks to the agent that comes with gcb, in the browser",
}
"""What `gcb` alone shows."""
RESUMABLE = ("collect", "train", "eval", "sweep", "demo", "ablate")
"""Commands that resume when they are run again."""
COMPLETION = "--tyro-write-completion"
MAX_MESSAGE = 2000


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. A `GCBError`, and an error of the system, is printed as one line, without a traceback."""
    if arguments is None:
        arguments = sys.argv[1:]
        # Worker processes would look for modules in the current directory, perhaps a downloaded agent (from 3.11 on).
        os.environ["PYTHONSAFEPATH"] = "1"
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # closed
                setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    arguments = list(arguments)
    try:
        with _plain_warnings():
            _run(arguments)
    except GCBError as error:
        _fail(str(error))
    except BrokenPipeError:  # the output was piped to `head` or the like
        sys.stderr.close()
        sys.exit(141)
    except OSError as error:
        _fail(os_error_message(error))
    except (MemoryError, RuntimeError) as error:
        if not (isinstance(error, MemoryError) or "allocate memory" in str(error) or "out of memory" in str(error)):
            raise
        _fail(f"there is not enough memory ({str(error).splitlines()[0] if str(error) else 'MemoryError'})")
    except KeyboardInterrupt:
        resumable = arguments[:1] and arguments[0] in RESUMABLE
        print("gcb: stopped" + ("; run the same command again to resume" if resumable else ""), file=sys.stderr)
        sys.exit(130)


def _run(arguments: list[str]) -> None:
    if not arguments:
        _print_first_steps()
        return
    if arguments == ["--version"]:
        print(f"gcb {gcb.__version__}")
        return
    if arguments[0] == "--completion":
        arguments = _completion(arguments[1:])
    parse(arguments).run()


def parse(arguments: Sequence[str]) -> Any:
    """Return the command that the arguments describe, checked."""
    arguments = _resolve(arguments)
    cls = _command_type(arguments)
    command = tyro.cli(cls, prog="gcb", description=DESCRIPTION, args=arguments, registry=REGISTRY)
    check_arguments(command)
    return command


def _print_first_steps() -> None:
    print(f"{ABOUT}\n\nGet started:\n")
    for command, summary in FIRST_STEPS.items():
        print(f"  {command:<33}{summary}")
    print("\n`gcb --help` lists all commands, `gcb COMMAND --help` the options of one.")


def _completion(words: Sequence[str]) -> list[str]:
    """Return the arguments with which tyro prints a completion script."""
    if len(words) != 1 or words[0] not in SHELLS:
        raise GCBError(f"--completion is {short(' '.join(words))}; accepted: {', '.join(SHELLS)}.")
    return [COMPLETION, words[0], "-"]


def _resolve(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with aliases replaced; raise an error that suggests a command for an unknown one."""
    words = [_command_named(arguments[0], COMMANDS, ALIASES, "gcb"), *arguments[1:]]
    if words[0] == "data" and len(words) > 1:
        words[1] = _command_named(words[1], dict.fromkeys(DATA_COMMANDS), DATA_ALIASES, "gcb data")
    return words


def _command_named(word: str, known: Mapping[str, Any], aliases: Mapping[str, str], parent: str) -> str:
    if word.startswith("-") or word in known:
        return word
    if word not in aliases:
        hint = suggestion(word, [*known, *aliases])
        raise GCBError(f"there is no command `{parent} {short(word)[1:-1]}`; {hint} `{parent} --help` explains them.")
    return aliases[word]


def _command_type(arguments: Sequence[str]) -> Any:
    """Return the union of commands that tyro parses.

    Only the given command is imported and the others are summaries, except for a completion script, which needs all.
    """
    loaded = COMMANDS if arguments and arguments[0] == COMPLETION else arguments[:1]
    return reduce(or_, (_load(name, arguments) if name in loaded else _summary(name) for name in COMMANDS))


def _load(name: str, arguments: Sequence[str]) -> Any:
    module, _, cls = COMMANDS[name][0].partition(":")
    if name == "train":
        from gcb.cli.train import train_type

        return train_type(arguments)
    return Annotated[getattr(import_module(module), cls), subcommand(name)]  # pyright: ignore[reportInvalidTypeForm]


def _summary(name: str) -> Any:
    return Annotated[make_dataclass(name, []), subcommand(name, description=COMMANDS[name][1])]  # pyright: ignore[reportInvalidTypeForm]


def _fail(message: str) -> None:
    """Print a message for the user and exit; a message that quotes a whole file is shortened."""
    if len(message) > MAX_MESSAGE:
        message = f"{message[: MAX_MESSAGE // 2]} … {message[-MAX_MESSAGE // 4 :]}"
    print(f"gcb: {printable(message)}", file=sys.stderr)
    sys.exit(2)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print warnings as one line for the user, without the file and the line of code that they come from."""
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"gcb: warning: {' '.join(str(message).split())}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before
