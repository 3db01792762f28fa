"""Without a terminal, commands that take long say how far they are in plain lines."""

import re
from collections.abc import Iterator
from pathlib import Path

from reliability import stage
from reliability.attempts import attempt, command
from reliability.rows import Row, row

LINE = re.compile(r"^(\S.* +\d+ %  [\d,]+/[\d,]+ \S+|\d\d:\d\d:\d\d .+)", re.MULTILINE)
"""A line of `gcb.utils.progress`, or of a sweep's board."""


def run(folder: Path, quick: bool) -> Iterator[Row]:
    """Every long command, its output into a pipe."""
    wrong, said = [], []
    commands = list(_commands(folder, quick))
    for name, words in commands:
        tried = attempt(lambda words=words: _do(words))
        lines = LINE.findall(tried.said)
        if tried.code or not lines or "\x1b" in tried.said or "\r" in tried.said:
            wrong.append(f"gcb {name}: code {tried.code}, {len(lines)} lines: {tried.said[-300:]!r}")
        said.append(f"gcb {name}")
    yield row("no terminal", ", ".join(said), len(commands), "plain lines with share, rate and time, no escapes", wrong)


def _do(words: tuple[object, ...]) -> None:
    with stage.forked_workers():
        command(*words)()


def _commands(folder: Path, quick: bool) -> Iterator[tuple[str, tuple[object, ...]]]:
    data, out = stage.slide_data(folder / "data" / "slide"), folder / "run"
    small = ("--steps", 2, "--batch-size", 4, "--device", "cpu", "--method-config.size", 8)
    yield "train", ("train", "--data", data, "--out", out, "--preset", "smoke", *small)
    yield "eval", ("eval", out, "--episodes", 2, "--modes", "goal", "--no-videos")
    yield "data export", ("data", "export", data, "--out", folder / "exported.npz")
    yield "data import", ("data", "import", folder / "exported.npz", "--out", folder / "imported")
    yield "sweep", stage.sweep_words(folder / "sweep", data.parent, seeds=1, workers=1)
    if quick:
        return
    env = ("--env", "gcb/Drawer-v0")
    yield "collect", ("collect", "--out", folder / "drawer", *env, "--transitions", 40, "--image-size", 16)
    yield "expert", ("expert", *env, "--episodes", 2)
    yield "analyse", ("analyse", out, "--samples", 6, "--pool", 20, "--points", 12, "--rows", 1, "--workers", 1)
    yield "theory", ("theory", "--out", folder / "theory", "--quick")
