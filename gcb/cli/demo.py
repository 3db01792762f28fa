"""`make demo`: from nothing to an agent that is told what to do by example, and its pictures."""

import shlex
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.table import Table

from gcb.data import CollectConfig, collect, contact_sheet, open_dataset
from gcb.envs.expert_media import expert_video, scene_sheet
from gcb.utils.progress import duration
from gcb.utils.statistics import Rate


@dataclass(frozen=True)
class DemoSize:
    """How much to do: by default what two cores do in a quarter of an hour."""

    env: str = "gcb/ButtonDrawer-v0"
    transitions: int = 20_000
    preset: str = "laptop"
    steps: int = 3_000
    episodes: int = 100
    tasks: int = 2_000
    """Tasks to look for neighbours among; a third of them are looked up and drawn on a map."""
    scenes: int = 120
    """Fresh scenes for the analogy arithmetic."""


PICTURES = (
    ("data.png", "episodes of the dataset"),
    ("world.png", "states, goals and analogous pairs"),
    ("expert.mp4", "the expert at work, its goal images below"),
    ("agent/videos/strict.mp4", "the agent, told what to do by an example from another scene"),
    ("agent/videos/goal.mp4", "the agent, told by a goal image"),
    ("agent/analysis/arithmetic.png", "which goals it infers from examples"),
    ("report.html", "all of it on one page"),
)


def demo(out: Path, console: Console, size: DemoSize | None = None) -> None:
    """Make everything into `out`; what is there already is kept, so that a stopped demo goes on."""
    size, began = size or DemoSize(), time.monotonic()
    data, agent, blind = out / "data", out / "agent", out / "goal_agnostic_bc"
    console.rule("1. A dataset of the noisy expert")
    collect(CollectConfig(size.env, size.transitions), data, workers=2)
    contact_sheet(open_dataset(data), out / "data.png")
    scene_sheet(size.env, out / "world.png", rows=4, seed=0)
    expert_video(size.env, out / "expert.mp4", episodes=6, seed=0)

    console.rule("2. An agent, and beside it one that is never told its goal")
    # Two processes of one thread each: on two cores faster than one after the other on both.
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        jobs = [
            pool.submit(_train, method, data, run, size)
            for method, run in (("gcb", agent), ("goal_agnostic_bc", blind))
        ]
        for job in jobs:
            job.result()

    console.rule("3. Success on scenes that neither has seen")
    rates = _evaluate(agent, blind, size.episodes)
    console.print(_table(rates, size.episodes))

    console.rule("4. What it has learned")
    _look_into(agent, size)
    _report([agent, blind], out)
    for name, what in PICTURES:
        console.print(f"{out / name}: {what}", soft_wrap=True)
    console.print(f"all in {duration(time.monotonic() - began)}")
    console.print(f"the report: {out / 'report.html'}", soft_wrap=True)
    console.print(f"tell it what to do: gcb explore {agent}", soft_wrap=True)


def _train(method: str, data: Path, out: Path, size: DemoSize) -> None:
    from gcb.runs.config import make_config
    from gcb.training.trainer import train

    changes = {"steps": size.steps, "threads": 1}
    train(make_config(method, size.preset, changes), data, out, quiet=method != "gcb")


def _evaluate(agent: Path, blind: Path, episodes: int) -> dict[str, Rate]:
    from gcb.evaluation.evaluate import evaluate_run

    told = evaluate_run(agent, ("goal", "strict"), episodes=episodes, workers=2)
    untold = evaluate_run(blind, ("goal",), episodes=episodes, workers=2, videos=False)
    return {
        "told by a goal image": told["goal"].rate(),
        "told by an example from another scene": told["strict"].rate(),
        "never told (blind)": untold["goal"].rate(),
    }


def _look_into(agent: Path, size: DemoSize) -> None:
    from gcb.analysis.analyse import AnalysisSize, analyse

    few = max(4, size.tasks // 3)
    analyse(agent, size=AnalysisSize(samples=few, pool=size.tasks, scenes=size.scenes, points=few, rows=6), workers=2)


def _report(runs: list[Path], out: Path) -> None:
    from gcb.report.report import write_report

    write_report(runs, out / "report.html", title="gcb demo", command=shlex.join(["gcb", "demo", "--out", str(out)]))


def _table(rates: dict[str, Rate], episodes: int) -> Table:
    table = Table(title=f"success in {episodes} episodes, with 95 % interval", title_justify="left")
    table.add_column("agent")
    table.add_column("success")
    for name, rate in rates.items():
        table.add_row(name, str(rate))
    return table
