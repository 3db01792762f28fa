"""`gcb sweep` and `gcb table`."""

import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import rich.table
from rich.console import Console
from rich.markup import escape
from tyro.conf import Positional

from gcb.errors import GCBError
from gcb.utils.files import explain_os_errors, write_atomically
from gcb.utils.statistics import Criterion

# Imports that need torch are inside functions, so that other commands start without it.
if TYPE_CHECKING:
    from gcb.sweep.grid import Grid
    from gcb.sweep.pools import Pool
    from gcb.sweep.scheduler import Plan
    from gcb.sweep.sweep_dir import SweepDir


@dataclass
class Sweep:
    """Train and evaluate a grid of runs. The same command resumes an interrupted sweep and keeps finished runs.

    Options that are not given keep the values of the grid.
    """

    grid: Positional[str] = ""
    """table1, reference, comparison, components, ablations, an ablation's figure, or a YAML file; or use --methods."""
    out: Path = Path("sweep")
    """Directory of the sweep: runs, logs, results.csv."""
    methods: tuple[str, ...] | None = None
    """Methods by name; `gcb methods` lists them."""
    envs: tuple[str, ...] | None = None
    """drawer, button_drawer, or names of other datasets in --data-root."""
    video: tuple[Literal["off", "on"], ...] | None = None
    """Without video distractors, with them, or both."""
    seeds: tuple[str, ...] | None = None
    """Number of seeds from 0 on (5), or a list of seeds (0 3 7, or 5-9)."""
    preset: str | None = None
    """Preset of the configurations: paper, laptop or smoke; with video, laptop means laptop_video."""
    overrides: tuple[str, ...] = ()
    """Configuration overrides of every run, such as steps=3000 iql.discount=0.95."""
    vary: tuple[str, ...] = ()
    """Overrides with several values, such as method_config.size=64,128; every combination is a variant."""
    data_root: Path | None = None
    """Directory of the datasets drawer, drawer_video, …; missing ones are collected. By default OUT/data."""
    transitions: int | None = None
    """Size of collected datasets."""
    image_size: int | None = None
    """Side of their images in pixels."""
    clips: Path | None = None
    """Directory of your own clips for the video distractors, instead of the built-in ones."""
    episodes: int | None = None
    """Evaluation episodes in each mode."""
    modes: tuple[Literal["goal", "strict", "loose", "free"], ...] | None = None
    """Evaluation modes: goal image, strict analogy, loose analogy, free analogy."""
    eval_seed: int | None = None
    """Seed of the evaluation episodes."""
    videos: bool = False
    """Write videos of some evaluation episodes."""
    workers: int | None = None
    """Number of processes, of one thread each; by default one for each core, or as many as fit on Ray."""
    retries: int = 2
    """How often a run is retried after its process died."""
    ray: str | None = None
    """Run on Ray: the address of a cluster (auto, host:port), or local for an instance on this machine. All nodes must
    share OUT and --data-root."""
    cpus_per_run: float = 1.0
    """CPUs of each run on Ray."""
    gpus_per_run: float = 0.0
    """GPUs of each run on Ray; with 0.5 two runs share one."""
    dry_run: bool = False
    """Only list the jobs and their states."""

    def run(self) -> None:
        from gcb.sweep.dashboard import Dashboard
        from gcb.sweep.scheduler import Plan, Scheduler
        from gcb.sweep.sweep_dir import DATA, FAILED, RESULTS, SweepDir

        sweep_dir, console = SweepDir(Path(os.path.abspath(self.out))), Console()
        data_root = Path(os.path.abspath(self.data_root)) if self.data_root else sweep_dir.path / DATA
        grid = self.chosen_grid()
        plan = Plan(grid.datasets(data_root, self.clips), grid.jobs(sweep_dir.runs, data_root, self.clips))
        if self.dry_run:
            console.print(plan_table(plan))
            return
        with sweep_dir.lock(), closing(self._pool(sweep_dir)) as pool:
            failures = Scheduler(plan, sweep_dir, pool, Dashboard(console), self.retries).run()
        done = len(plan.runs) - len(failures.keys() & {job.name for job in plan.runs})
        console.print(f"{done} of {len(plan.runs)} runs are done: {self.out / RESULTS}", soft_wrap=True)
        if failures:
            console.print(f"{len(failures)} jobs failed; see {self.out / FAILED}", soft_wrap=True)
            sys.exit(1)

    def _pool(self, sweep_dir: "SweepDir") -> "Pool":
        from gcb.sweep.pools import LocalPool
        from gcb.sweep.ray_pool import RayPool

        if self.ray is not None:
            return RayPool(sweep_dir, self.ray, self.cpus_per_run, self.gpus_per_run, self.workers)
        return LocalPool(sweep_dir, len(os.sched_getaffinity(0)) if self.workers is None else self.workers)

    def chosen_grid(self) -> "Grid":
        """Return the named grid with the given options."""
        from gcb.sweep.grid import Grid, merge, parse_overrides, parse_variants, read_grid
        from gcb.sweep.presets import named_grid

        if not self.grid and self.methods is None:
            raise GCBError("neither a grid nor --methods is given; try `gcb sweep comparison` or `gcb sweep --help`.")
        if not self.grid:
            grid = Grid(self.methods or ())
        else:
            grid = read_grid(self.grid) if self.grid.endswith((".yaml", ".yml")) else named_grid(self.grid)
        given: dict[str, Any] = {field.name: getattr(self, field.name, None) for field in fields(grid)}
        given["video"] = None if self.video is None else tuple(choice == "on" for choice in self.video)
        given["seeds"] = None if self.seeds is None else parse_seeds(self.seeds)
        given["variants"] = parse_variants(self.vary) if self.vary else None
        given["videos"] = self.videos or None
        given["overrides"] = merge(grid.overrides, parse_overrides(self.overrides))
        return replace(grid, **{name: value for name, value in given.items() if value is not None})


@dataclass
class Table:
    """Make a Markdown table of the results of sweeps: methods × (environment, video distractors, mode)."""

    results: Positional[tuple[Path, ...]]
    """One or more results.csv."""
    criterion: Criterion = "any_step"
    """Count success at any step, at the end, or when the agent declares the task done."""
    task: str = "all"
    """Only this task (drawer, button)."""
    paper: bool = False
    """Add the results of the paper's Table 1."""
    out: Path | None = None
    """Also write the table to this file."""

    def run(self) -> None:
        from gcb.report.rows import read_rows
        from gcb.report.table import make_table

        if not self.results:
            raise GCBError("no file is given; accepted: one or more results.csv.")
        rows = read_rows(self.results)
        text = make_table(rows, self.command(), criterion=self.criterion, task=self.task, paper=self.paper)
        if self.out:
            with explain_os_errors(self.out):
                self.out.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(self.out, text.encode())
        sys.stdout.write(text)

    def command(self) -> str:
        """Return the command that makes this table."""
        words = ["gcb", "table", *map(str, self.results)]
        words += ["--criterion", self.criterion] if self.criterion != "any_step" else []
        words += ["--task", self.task] if self.task != "all" else []
        words += ["--paper"] if self.paper else []
        return shlex.join([*words, "--out", str(self.out)] if self.out else words)


def parse_seeds(words: Sequence[str]) -> int | tuple[int, ...]:
    """Parse `5` as a number of seeds, `0 3 7` and `5-9` as seeds."""
    if len(words) == 1 and words[0].isdecimal():
        return int(words[0])
    seeds: list[int] = []
    for word in words:
        first, _, last = word.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            raise GCBError(f"seeds is {' '.join(words)!r}; accepted: a number (5), seeds (0 3 7), or ranges (5-9).")
        seeds += range(int(first), int(last or first) + 1)
    return tuple(seeds)


def plan_table(plan: "Plan") -> rich.table.Table:
    """Return a table of every job and its state."""
    statuses = [state.status for state in plan.states.values()]
    counts = ", ".join(f"{statuses.count(status)} {status}" for status in dict.fromkeys(statuses))
    title = f"{len(plan.runs)} runs on {len(plan.datasets)} datasets: {counts}"
    table = rich.table.Table("job", "state", "", title=title, title_justify="left")
    for column in table.columns:
        column.overflow = "fold"
    for job in plan.jobs:
        state = plan.states[job.name]
        detail = f"{100 * state.progress:.0f} %" if state.status == "started" else escape(state.reason)
        table.add_row(escape(job.name), state.status, detail)
    return table
