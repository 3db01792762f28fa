"""The explorer: time until the page opens, and time per step of a displayed episode."""

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
from gcb.explorer.episode import Event, run_episode
from gcb.explorer.scene_renderer import SceneRenderer
from gcb.explorer.simulators import SimulatorPair
from gcb.methods import Shapes
from gcb.runs.config import make_config
from gcb.training.trainer import train

SCENES = 4
STARTS = 3
PORT = 8700


def run() -> list[Row]:
    torch.set_num_threads(1)
    rows = [row for env in ENVS for row in _episodes(env)]
    return [*rows, _startup()]


def _episodes(env: str) -> list[Row]:
    """Render scenes and run episodes as for a visitor; in CPU time, without the network."""
    torch.manual_seed(0)
    shapes = Shapes((64, 64, 3), 5)
    method, iql = build(make_config("gcb", "laptop"), shapes)
    agent = Agent(method.eval().requires_grad_(False), iql.requires_grad_(False), shapes, torch.device("cpu"))
    renderer = SceneRenderer(env, {"image_size": 64})
    simulators = SimulatorPair(renderer)
    steps, scenes = [], []
    for seed in range(SCENES):
        choice = SceneChoice(seed=seed)
        scenes.append(cpu_seconds(lambda choice=choice: renderer.scene(choice)))
        scene, example = renderer.scene(choice), renderer.example(choice, ByExample(seed=seed))
        steps += _step_seconds(run_episode(agent, simulators, scene, example=(example.before, example.after)))
    renderer.close()
    simulators.close()
    name, milliseconds = ENVS[env].name, 1e3 * np.array(steps)
    text = f"agent, expert and their images; 95th percentile {np.quantile(milliseconds, 0.95):.0f} ms"
    return [
        Row(f"{name}: a displayed step, ms", float(milliseconds.mean()), 60.0, text),
        Row(f"{name}: a new scene, s", median(scenes), 1.0, "including the expert's rollout of every task"),
    ]


def _step_seconds(events: Iterator[Event]) -> Iterator[float]:
    next(events)  # the start
    while True:
        start = time.process_time()
        if next(events)["type"] == "end":
            return
        yield time.process_time() - start


def _startup() -> Row:
    """Time from the command to the page, including imports; the agent loads later."""
    with tempfile.TemporaryDirectory() as directory:
        data, path = Path(directory, "data"), Path(directory, "run")
        collect(CollectConfig(transitions=40), data)
        train(make_config("gcb", "smoke", {"steps": 1, "batch_size": 8, "device": "cpu"}), data, path, quiet=True)
        timings = [_start(path) for _ in range(STARTS)]
    cpu, wall = min(cpu for cpu, _ in timings), min(wall for _, wall in timings)
    text = f"CPU time, best of {STARTS}; wall-clock time {wall:.2f}"
    return Row("from the command to the page, s", cpu, 1.0, text)


def _start(path: Path) -> tuple[float, float]:
    """Return the CPU time of the server and the wall-clock time until the page opens."""
    command = [sys.executable, "-m", "gcb", "explore", str(path), "--port", str(PORT)]
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            while not _page_opens():
                time.sleep(0.01)
            return _cpu_seconds_of(server.pid), time.perf_counter() - start
        finally:
            server.kill()


def _page_opens() -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/", timeout=60) as page:
            return bool(page.read())
    except urllib.error.URLError:
        return False


def _cpu_seconds_of(process: int) -> float:
    user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
