"""`gcb sweep`."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from rich.console import Console
from tyro.conf import Positional

from gcb.cli import Json
from gcb.cli.arguments import Within
from gcb.cli.output import print_json, print_table, say
from gcb.errors import GCBError, short

# Imports that need torch are inside functions, so that other commands start without it.
if TYPE_CHECKING:
    from gcb.sweep.grid import Grid
    from gcb.sweep.pools import Pool
    from gcb.sweep.scheduler import Plan
    from gcb.sweep.sweep_dir import SweepDir


MAX_RANGE, MAX_DIGITS = 10_000, 21
"""Seeds in a range such as 5-9, and characters of it."""


@dataclass
class Sweep:
    """Train and evaluate a grid of runs. The same command resumes an interrupted sweep and keeps finished runs.

    Options that are not given keep the values of the grid.
    """

    grid: Positional[str] = ""
    """table1, reference, comparison, components, partners, ablations, a figure's ablations, or a YAML file."""
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
    """Width and height of their images in pixels."""
    clips: Path | None = None
    """Directory of your own clips for the video distractors, instead of the built-in ones."""
    episodes: int | None = None
    """Evaluation episodes in each mode."""
    modes: tuple[Literal["goal", "strict", "loose", "free"], ...] | None = None
    """Evaluation modes: goal image, strict analogy, loose analogy, free analogy."""
    eval_seed: int | None = None
    """Seed of the evaluation episodes."""
    eval_every: Annotated[int, Within("[0, inf)")] | None = None
    """Steps between evaluations during training, for curves; 0 for none. They use the validation seed."""
    eval_episodes: int | None = None
    """Episodes per mode of the evaluations during training."""
    videos: bool = False
    """Write videos of some evaluation episodes."""
    workers: Annotated[int, Within("[1, 10000]")] | None = None
    """Number of processes, of one thread each; by default one for each core, or as many as fit on Ray."""
    retries: Annotated[int, Within("[0, 100]")] = 2
    """How often a run is retried after its process died."""
    ray: str | None = None
    """Run on Ray: the address of a cluster (auto, host:port), or local for an instance on this machine. All nodes must
    share OUT and --data-root."""
    cpus_per_run: Annotated[float, Within("[0, 10000]")] = 1.0
    """CPUs of each run on Ray."""
    gpus_per_run: Annotated[float, Within("[0, 10000]")] = 0.0
    """GPUs of each run on Ray; with 0.5 two runs share one."""
    dry_run: bool = False
    """Only list the jobs and their states, and how many training steps and evaluation episodes are left; and how long
    they take, if a run in OUT is finished."""
    json: Json = False

    def run(self) -> None:
        from gcb.sweep.dashboard import Dashboard
        from gcb.sweep.scheduler import Plan, Scheduler
        from gcb.sweep.sweep_dir import DATA, FAILED, RESULTS, SweepDir

        sweep_dir = SweepDir(Path(os.path.abspath(self.out)))
        data_root = Path(os.path.abspath(self.data_root)) if self.data_root else sweep_dir.path / DATA
        grid = self.chosen_grid()
        plan = Plan(grid.datasets(data_root, self.clips), grid.jobs(sweep_dir.runs, data_root, self.clips))
        if self.dry_run:
            self._list(plan)
            return
        with sweep_dir.lock(), closing(self._pool(sweep_dir)) as pool:
            failures = Scheduler(plan, sweep_dir, pool, Dashboard(Console()), self.retries).run()
        done = len(plan.runs) - len(failures.keys() & {job.name for job in plan.runs})
        say(f"{done} of {len(plan.runs)} runs are done: {self.out / RESULTS}")
        if failures:
            say(f"{len(failures)} jobs failed; see {self.out / FAILED}")
            sys.exit(1)

    def _list(self, plan: "Plan") -> None:
        """Print every job and its state."""
        if self.json:
            print_json({name: vars(state) for name, state in plan.states.items()})
            return
        statuses = [state.status for state in plan.states.values()]
        counts = ", ".join(f"{statuses.count(status)} {status}" for status in dict.fromkeys(statuses))
        steps, episodes = plan.work_left()
        title = f"{_count(plan.runs, 'run')} on {_count(plan.datasets, 'dataset')}: {counts}; "
        title += f"{steps:,} steps, {episodes:,} episodes"
        if seconds := plan.seconds_left():
            title += f", about {seconds / 3600:.1f} hours of one core"
        print_table(("job", "state", ""), plan_rows(plan), title=title)

    def _pool(self, sweep_dir: "SweepDir") -> "Pool":
        from gcb.sweep.pools import LocalPool
        from gcb.sweep.ray_pool import RayPool
        from gcb.utils.workers import check_workers

        if self.ray is not None:
            return RayPool(sweep_dir, self.ray, self.cpus_per_run, self.gpus_per_run, self.workers)
        workers = len(os.sched_getaffinity(0)) if self.workers is None else self.workers
        check_workers(workers)
        return LocalPool(sweep_dir, workers)

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


def parse_seeds(words: Sequence[str]) -> int | tuple[int, ...]:
    """Parse `5` as a number of seeds, `0 3 7` and `5-9` as seeds."""
    text = " ".join(words)
    if max(map(len, words), default=0) > MAX_DIGITS:
        raise GCBError(f"seeds is {short(text)}; accepted: seeds of at most ten digits.")
    if len(words) == 1 and words[0].isdecimal():
        return int(words[0])
    seeds: list[int] = []
    for word in words:
        first, _, last = word.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            raise GCBError(f"seeds is {short(text)}; accepted: a number (5), seeds (0 3 7), or ranges (5-9).")
        if (count := int(last or first) - int(first) + 1) > MAX_RANGE:
            raise GCBError(f"seeds is {short(text)}, which has {count:,} seeds; accepted: at most {MAX_RANGE:,}.")
        seeds += range(int(first), int(last or first) + 1)
    return tuple(seeds)


def plan_rows(plan: "Plan") -> Iterator[tuple[str, str, str]]:
    """Yield every job, its state, and how far it is or why it is invalid."""
    for job in plan.jobs:
        state = plan.states[job.name]
        yield job.name, state.status, f"{100 * state.progress:.0f} %" if state.status == "started" else state.reason


def _count(jobs: Sequence[object], name: str) -> str:
    return f"{len(jobs)} {name}{'' if len(jobs) == 1 else 's'}"
