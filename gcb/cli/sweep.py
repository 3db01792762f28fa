"""`gcb sweep` and `gcb table`: composition only."""

import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grille
from tyro.conf import Positional

from gcb.errors import GCBError
from gcb.utils.files import explain_os_errors, write_atomically

# What needs torch is imported where it is used: other commands start without it.
if TYPE_CHECKING:
    from gcb.sweep.conduct import Plan
    from gcb.sweep.folder import Folder
    from gcb.sweep.grid import Grid
    from gcb.sweep.pool import Pool


@dataclass
class Sweep:
    """Train and evaluate a grid of runs. The same command goes on where it was stopped; finished runs are kept.

    Options that are left out are as the grid has them.
    """

    grid: Positional[str] = ""
    """table1, reference, comparison, ablations, an ablation's figure, or a YAML file; without it, --methods."""
    out: Path = Path("sweep")
    """Folder of the sweep: runs, logs, results.csv."""
    methods: tuple[str, ...] | None = None
    """Methods by name; `gcb methods` lists them."""
    envs: tuple[str, ...] | None = None
    """drawer, button_drawer, or names of datasets that stand in --data-root already."""
    video: tuple[Literal["plain", "video"], ...] | None = None
    """Without video distractors, with them, or both."""
    seeds: tuple[str, ...] | None = None
    """How many seeds from 0 on (5), or which ones (0 3 7, or 5-9)."""
    preset: str | None = None
    """Values to start from: paper, laptop or smoke; where there is video, laptop means laptop_video."""
    set: tuple[str, ...] = ()
    """Changes of every run, such as steps=3000 iql.discount=0.95."""
    vary: tuple[str, ...] = ()
    """Settings to try several values of, such as method_config.size=64,128; every combination is a run."""
    data_root: Path | None = None
    """Folder of the datasets drawer, drawer_video, …; what is missing is collected. By default OUT/data."""
    transitions: int | None = None
    """Size of the datasets that are collected."""
    clips: Path | None = None
    """Folder of own clips for the video distractors, instead of the built-in ones."""
    episodes: int | None = None
    """Episodes of an evaluation, in each mode."""
    modes: tuple[Literal["goal", "strict", "loose"], ...] | None = None
    """How the agents are told what to do: by goal image, by strict or loose analogy."""
    eval_seed: int | None = None
    """Which episodes."""
    videos: bool = False
    """Write videos of some episodes, too."""
    workers: int | None = None
    """Processes at a time, of one thread each; by default one for each core, or as many as fit on Ray."""
    retries: int = 2
    """How often a run whose process died is gone on with."""
    ray: str | None = None
    """Run on Ray: the address of a cluster (auto, host:port), or local for one on this machine. OUT and --data-root
    must lie where all its nodes see them."""
    cpus_per_run: float = 1.0
    """CPUs that a run takes on Ray."""
    gpus_per_run: float = 0.0
    """GPUs that a run takes on Ray; a half means that two runs share one."""
    dry_run: bool = False
    """Only list what would run, and what is done."""

    def run(self) -> None:
        from gcb.sweep.board import Board
        from gcb.sweep.conduct import Conductor, Plan
        from gcb.sweep.folder import RESULTS, Folder

        out = Path(os.path.abspath(self.out))
        data_root = Path(os.path.abspath(self.data_root)) if self.data_root else out / "data"
        grid, folder, console = self.chosen_grid(), Folder(out), Console()
        plan = Plan(grid.datasets(data_root, self.clips), grid.runs(out, data_root, self.clips))
        if self.dry_run:
            console.print(plan_table(plan))
            return
        board = Board(console, folder, plan.jobs, plan.states)
        with folder.held(), closing(self._pool(folder)) as pool:
            failed = Conductor(plan, folder, pool, board, self.retries).conduct()
        done = len(plan.runs) - len(failed.keys() & {job.name for job in plan.runs})
        console.print(f"{done} of {len(plan.runs)} runs are done: {self.out / RESULTS}", soft_wrap=True)
        if failed:
            console.print(f"{len(failed)} failed; the reasons are in {self.out / 'failed'}", soft_wrap=True)
            sys.exit(1)

    def _pool(self, folder: "Folder") -> "Pool":
        from gcb.sweep.local import LocalPool
        from gcb.sweep.ray_pool import RayPool

        if self.ray is not None:
            return RayPool(folder, self.ray, self.cpus_per_run, self.gpus_per_run, self.workers)
        return LocalPool(folder, len(os.sched_getaffinity(0)) if self.workers is None else self.workers)

    def chosen_grid(self) -> "Grid":
        """The grid that was named, with the options that were given."""
        from gcb.sweep.grid import Grid, merged
        from gcb.sweep.grid_file import parse_settings, parse_variants, read_grid
        from gcb.sweep.ready import ready_grid

        if not self.grid and self.methods is None:
            raise GCBError("neither a grid nor --methods is given; try `gcb sweep comparison`, or `gcb sweep --help`.")
        if not self.grid:
            grid = Grid(self.methods or ())
        else:
            grid = read_grid(self.grid) if self.grid.endswith((".yaml", ".yml")) else ready_grid(self.grid)
        given = {one.name: getattr(self, one.name, None) for one in fields(grid) if one.name not in ("set", "seeds")}
        given = {name: value for name, value in given.items() if value is not None and value is not False}
        if self.seeds is not None:
            given["seeds"] = parse_seeds(self.seeds)
        if self.vary:
            given["variants"] = parse_variants(self.vary)
        return replace(grid, **given, set=merged(grid.set, parse_settings(self.set)))


@dataclass
class Table:
    """Make a Markdown table of the results of sweeps: methods × (world, video, how the agent is told)."""

    results: Positional[tuple[Path, ...]]
    """One or more results.csv."""
    at_end: bool = False
    """Count success at the end of the episode instead of at any step."""
    task: str = "all"
    """Only this task (drawer, button)."""
    paper: bool = False
    """Put the numbers of the paper's Table 1 beside ours."""
    out: Path | None = None
    """Write it to a file, too."""

    def run(self) -> None:
        from gcb.report.rows import read_rows
        from gcb.report.table import make_table

        if not self.results:
            raise GCBError("no file is given; accepted: one or more results.csv.")
        rows = read_rows(self.results)
        text = make_table(rows, self.command(), at_end=self.at_end, task=self.task, paper=self.paper)
        if self.out:
            with explain_os_errors(self.out):
                self.out.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(self.out, text.encode())
        sys.stdout.write(text)

    def command(self) -> str:
        """The command that makes this table."""
        words = ["gcb", "table", *map(str, self.results)]
        words += ["--at-end"] if self.at_end else []
        words += ["--task", self.task] if self.task != "all" else []
        words += ["--paper"] if self.paper else []
        return shlex.join([*words, "--out", str(self.out)] if self.out else words)


def parse_seeds(words: Sequence[str]) -> int | tuple[int, ...]:
    """`5` is a number of seeds; `0 3 7` are seeds, and so is `5-9`."""
    if len(words) == 1 and words[0].isdecimal():
        return int(words[0])
    seeds: list[int] = []
    for word in words:
        first, _, last = word.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            raise GCBError(f"seeds is {' '.join(words)!r}; accepted: a number (5), seeds (0 3 7), or ranges (5-9).")
        seeds += range(int(first), int(last or first) + 1)
    return tuple(seeds)


def plan_table(plan: "Plan") -> Grille:
    """Every job, and how far it is."""
    words = [state.word for state in plan.states.values()]
    counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    table = Grille(title=f"{len(plan.runs)} runs on {len(plan.datasets)} datasets: {counts}", title_justify="left")
    for name in ("job", "state", ""):
        table.add_column(name, overflow="fold")
    for job in plan.jobs:
        state = plan.states[job.name]
        share = f"{100 * state.share:.0f} %" if state.word == "begun" else escape(state.reason)
        table.add_row(escape(job.name), state.word, share)
    return table
