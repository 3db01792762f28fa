"""Without a terminal, long commands print their progress as plain lines."""

import re
from collections.abc import Callable
from pathlib import Path

from helpers.faults import run_forked
from helpers.small_runs import run_gcb, small_sweep_args

LINE = re.compile(r"^(\S.* +\d+ %  [\d,]+/[\d,]+ \S+|\d\d:\d\d:\d\d .+)", re.MULTILINE)
"""A line of `gcb.utils.progress`, or of a sweep's dashboard."""


def test_long_commands(tmp_path: Path, data: Path, full: bool, record: Callable) -> None:
    run, exported = tmp_path / "run", tmp_path / "exported.npz"
    small = ("--steps", 2, "--batch-size", 4, "--device", "cpu", "--method-config.size", 8)
    env = ("--env", "gcb/Drawer-v0")
    commands: list[tuple[object, ...]] = [
        ("train", "--data", data, "--out", run, "--preset", "smoke", *small),
        ("eval", run, "--episodes", 2, "--modes", "goal", "--no-videos"),
        ("data", "export", data, "--out", exported),
        ("data", "import", exported, "--out", tmp_path / "imported"),
        tuple(small_sweep_args(tmp_path / "sweep", data.parent)),
    ]
    if full:
        commands += [
            ("collect", "--out", tmp_path / "drawer", *env, "--transitions", 40, "--image-size", 16),
            ("expert", *env, "--episodes", 2),
            ("analyse", run, "--samples", 6, "--pool", 20, "--points", 12, "--rows", 1, "--workers", 1),
            ("theory", "--out", tmp_path / "theory", "--quick"),
        ]
    for command in commands:
        ended = run_forked(lambda command=command: run_gcb(*command))
        assert ended.code == 0, ended.output
        assert LINE.search(ended.output), f"{command}: {ended.output}"
        assert not {"\x1b", "\r"} & set(ended.output), f"{command}: {ended.output!r}"
    names = ", ".join(str(words[1] if words[0] == "data" else words[0]) for words in commands)
    record("no terminal", f"gcb {names}", len(commands), "plain lines with progress, rate and time; no escape codes")
