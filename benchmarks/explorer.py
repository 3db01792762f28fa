"""The explorer: how soon the page is there, and how fast an agent can be watched."""

import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
import torch

from benchmarks.rows import Row, cpu_seconds
from gcb.agent.agent import Agent
from gcb.agent.build import build
from gcb.data import CollectConfig, collect
from gcb.envs import ENVS
from gcb.explorer.choices import ByExample, SceneChoice
from gcb.explorer.episode import Event, play
from gcb.explorer.scene_renderer import SceneRenderer
from gcb.explorer.simulators import SimulatorPool
from gcb.methods import Shapes
from gcb.runs.config import make_config
from gcb.training.trainer import train

SCENES = 4
STARTS = 3
PORT = 8700


def run() -> list[Row]:
    torch.set_num_threads(1)
    rows = [row for env in ENVS for row in _watching(env)]
    return [*rows, _starting()]


def _watching(env: str) -> list[Row]:
    """Scenes drawn and episodes played as for a visitor, in the time of one core: the network takes none of it."""
    torch.manual_seed(0)
    shapes = Shapes((64, 64, 3), 5)
    method, iql = build(make_config("gcb", "laptop"), shapes)
    agent = Agent(method.eval().requires_grad_(False), iql.requires_grad_(False), shapes, torch.device("cpu"))
    studio = SceneRenderer(env, {"image_size": 64})
    stage = SimulatorPool(studio)._build()
    steps, looks = [], []
    for seed in range(SCENES):
        choice = SceneChoice(seed=seed)
        looks.append(cpu_seconds(lambda choice=choice: studio.scene(choice)))
        view, there = studio.scene(choice), studio.there(choice, ByExample(seed=seed))
        steps += _seconds_of_steps(play(agent, stage, view, example=(there.before, there.after)))
    studio.close()
    stage.close()
    name, milliseconds = ENVS[env].name, 1e3 * np.array(steps)
    text = f"agent, expert, and their pictures; the slowest of 20 takes {np.quantile(milliseconds, 0.95):.0f} ms"
    return [
        Row(f"{name}: a step that is watched, ms", float(milliseconds.mean()), 60.0, text),
        Row(f"{name}: a new scene, s", median(looks), 1.0, "with the expert's trial of every task"),
    ]


def _seconds_of_steps(events: Iterator[Event]) -> Iterator[float]:
    next(events)  # the start
    while True:
        began = time.process_time()
        if next(events)["kind"] == "end":
            return
        yield time.process_time() - began


def _starting() -> Row:
    """From the command to the page, with everything that Python has to import for it; the agent comes later."""
    with tempfile.TemporaryDirectory() as folder:
        data, path = Path(folder, "data"), Path(folder, "run")
        collect(CollectConfig(transitions=40), data)
        train(make_config("gcb", "smoke", {"steps": 1, "batch_size": 8, "device": "cpu"}), data, path, quiet=True)
        taken = [_start(path) for _ in range(STARTS)]
    work, waited = min(work for work, _ in taken), min(waited for _, waited in taken)
    text = f"of one core, the best of {STARTS}; by the clock, with whatever else runs here, {waited:.2f}"
    return Row("from the command to the page, s", work, 1.0, text)


def _start(path: Path) -> tuple[float, float]:
    """What the server has worked, and what has passed, when its page has come."""
    command = [sys.executable, "-m", "gcb", "explore", str(path), "--port", str(PORT)]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            while not _page_is_there():
                time.sleep(0.01)
            return _work_of(server.pid), time.perf_counter() - began
        finally:
            server.kill()


def _page_is_there() -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/", timeout=60) as page:
            return bool(page.read())
    except urllib.error.URLError:
        return False


def _work_of(process: int) -> float:
    user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
