"""`gcb demo`: watch a trained agent, then collect, train, evaluate, analyse and report with built-in settings."""

import shlex
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.table import Table

from gcb.agent.agent import Agent, load
from gcb.analysis.analyse import AnalysisSize, analyse
from gcb.data import CollectConfig, collect, contact_sheet, open_dataset
from gcb.envs.expert_media import expert_video, scene_sheet
from gcb.evaluation.evaluate import evaluate, evaluate_run, validate
from gcb.report.report import write_report
from gcb.report.table import MODE_NAMES
from gcb.runs.config import make_config
from gcb.runs.find import DEFAULT_AGENT
from gcb.training.loggers import read_metrics
from gcb.training.trainer import train
from gcb.utils.progress import duration
from gcb.utils.statistics import Rate


@dataclass(frozen=True)
class DemoSize:
    """How much to do; the defaults take about ten minutes on two cores."""

    env: str = "gcb/ButtonDrawer-v0"
    transitions: int = 20_000
    preset: str = "laptop"
    steps: int = 5_000
    episodes: int = 100
    curve_points: int = 4
    """How often success is measured during training."""
    curve_episodes: int = 12
    tasks: int = 2_000
    """Tasks among which neighbours are searched; a third of them are queries, and points on the map."""
    scenes: int = 120
    """Fresh scenes for analogy arithmetic."""
    film_episodes: int = 6
    """Episodes in the film of the agent that comes with gcb."""


CURVE_MODES = ("goal", "strict")
FILM = "trained_agent.mp4"
OUTPUTS = (
    (FILM, "the agent that comes with gcb, doing what example pairs from other scenes show"),
    ("data.png", "episodes of the dataset"),
    ("scenes.png", "states, goals and analogous pairs"),
    ("expert.mp4", "the scripted expert, with its goal images below"),
    ("agent/videos/strict.mp4", "the agent, given an analogy: an example pair from another scene"),
    ("agent/videos/goal.mp4", "the agent, given a goal image"),
    ("agent/analysis/arithmetic.png", "the goals that it infers from analogies"),
    ("report.html", "everything on one page"),
)


def demo(out: Path, console: Console, size: DemoSize | None = None) -> None:
    """Write all outputs to `out`. What exists already is kept, so that an interrupted demo resumes."""
    size, start = size or DemoSize(), time.monotonic()
    data, agent, baseline = out / "data", out / "agent", out / "goal_agnostic_bc"
    console.rule("An agent that is trained already: it does what examples from other scenes show")
    console.print(_film(out / FILM, size.film_episodes), soft_wrap=True)

    console.rule("1. Collect a dataset with the noisy expert")
    collect(CollectConfig(size.env, size.transitions), data, workers=2)
    contact_sheet(open_dataset(data), out / "data.png")
    scene_sheet(size.env, out / "scenes.png", rows=4, seed=0)
    expert_video(size.env, out / "expert.mp4", episodes=6, seed=0)

    console.rule("2. Train GCB, and goal-agnostic BC as a baseline")
    # Two processes of one thread each: on two cores faster than one after the other.
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        runs = (("gcb", agent), ("goal_agnostic_bc", baseline))
        for job in [pool.submit(_train, method, data, run, size) for method, run in runs]:
            job.result()

    console.print(_curve(agent, size.curve_episodes))

    console.rule("3. Evaluate both on new scenes")
    console.print(_table(_evaluate(agent, baseline, size.episodes), size.episodes))

    console.rule("4. Analyse the representation, and report")
    queries = max(4, size.tasks // 3)
    analyse(agent, size=AnalysisSize(queries, size.tasks, size.scenes, points=queries, rows=6), workers=2)
    command = shlex.join(["gcb", "demo", "--out", str(out)])
    write_report([agent, baseline], out / "report.html", title="gcb demo", command=command)
    for name, description in OUTPUTS:
        console.print(f"{out / name}: {description}", soft_wrap=True)
    console.print(f"total time: {duration(time.monotonic() - start)}")
    console.print(f"report: {out / 'report.html'}", soft_wrap=True)
    console.print(f"try the agent in your browser: gcb explore {agent}", soft_wrap=True)


def _film(path: Path, episodes: int) -> str:
    """Film the bundled agent in the first scenes, failures included; return a line about it."""
    if path.exists():
        return f"{path}: {DEFAULT_AGENT}"
    agent = load(DEFAULT_AGENT)
    successes = evaluate(agent, mode="strict", episodes=episodes, batch=episodes, video=path, quiet=True).rate()
    return f"{path}: {DEFAULT_AGENT}, successful in {successes.successes} of {successes.trials} scenes"


def _train(method: str, data: Path, out: Path, size: DemoSize) -> None:
    every = max(1, size.steps // size.curve_points)
    changes = {"steps": size.steps, "threads": 1, "checkpoint_every": every, "log_every": min(100, every)}
    config = make_config(method, size.preset, changes)

    def measure(agent: Agent, step: int) -> dict[str, float]:
        return validate(agent, CURVE_MODES, episodes=size.curve_episodes) if method == "gcb" else {}

    train(config, data, out, quiet=method != "gcb", on_checkpoint=measure)


def _curve(run: Path, episodes: int) -> Table:
    """Return a table of success over training."""
    title = f"success over training, {episodes} validation episodes each (a curve is in the report)"
    table = Table(title=title, title_justify="left")
    for name in ("step", *(MODE_NAMES[mode] for mode in CURVE_MODES)):
        table.add_column(name)
    for row in read_metrics(run):
        if all(f"eval_{mode}" in row for mode in CURVE_MODES):
            rates = (f"{'█' * round(20 * row[f'eval_{mode}']):<20} {row[f'eval_{mode}']:.2f}" for mode in CURVE_MODES)
            table.add_row(f"{row['step']:,}", *rates)
    return table


def _evaluate(agent: Path, baseline: Path, episodes: int) -> dict[str, Rate]:
    results = evaluate_run(agent, ("goal", "strict"), episodes=episodes, workers=2)
    reference = evaluate_run(baseline, ("goal",), episodes=episodes, workers=2, videos=False)
    return {
        "GCB, goal image": results["goal"].rate(),
        "GCB, analogy": results["strict"].rate(),
        "goal-agnostic BC": reference["goal"].rate(),
    }


def _table(rates: dict[str, Rate], episodes: int) -> Table:
    table = Table(title=f"success in {episodes} episodes, with 95 % interval", title_justify="left")
    table.add_column("policy")
    table.add_column("success")
    for name, rate in rates.items():
        table.add_row(name, str(rate))
    return table
