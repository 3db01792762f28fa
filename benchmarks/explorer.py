"""The explorer: time until the page opens and the agent acts, and time per step of a displayed episode."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from benchmarks.rows import Row, cpu_seconds
from gcb.agent.agent import Agent
from gcb.agent.build import build
from gcb.envs import ENVS
from gcb.explorer.choices import ByExample, SceneChoice
from gcb.explorer.episode import Event, run_episode
from gcb.explorer.scene_renderer import SceneRenderer
from gcb.explorer.simulators import Simulators
from gcb.methods import Shapes
from gcb.runs.config import make_config

SCENES = 4
STARTS = 3
PORT = 8700
POLL_SECONDS = 0.1
"""As often as the page asks."""


def run() -> list[Row]:
    torch.set_num_threads(1)
    rows = [row for env in ENVS for row in _episodes(env)]
    return [*rows, *_cold_starts()]


def _episodes(env: str) -> list[Row]:
    """Render scenes and run episodes as for a visitor; in CPU time, without the network."""
    torch.manual_seed(0)
    shapes = Shapes((64, 64, 3), 5)
    method, iql = build(make_config("gcb", "laptop"), shapes)
    agent = Agent(method.eval().requires_grad_(False), iql.requires_grad_(False), shapes, torch.device("cpu"))
    renderer = SceneRenderer(env, {"image_size": 64})
    simulators = Simulators(renderer)
    steps, scenes = [], []
    for seed in range(SCENES):
        choice = SceneChoice(seed=seed)
        scenes.append(cpu_seconds(lambda choice=choice: renderer.scene(choice)))
        scene, example = renderer.scene(choice), renderer.example(choice, ByExample(seed=seed))
        steps += _step_seconds(run_episode([agent], simulators, scene.scene, example=(example.before, example.after)))
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


def _cold_starts() -> list[Row]:
    """Time from `gcb explore`, with the agent that comes with gcb, to the page and to the agent's first action."""
    starts = [_start() for _ in range(STARTS)]
    rows = []
    for index, (what, limit) in enumerate((("the page", 1.0), ("the first action", 3.0))):
        cpu, wall = (min(start[index][clock] for start in starts) for clock in (0, 1))
        text = f"CPU time of the server, best of {STARTS}; wall-clock time {wall:.2f}"
        rows.append(Row(f"from the command to {what}, s", cpu, limit, text))
    return rows


def _start() -> list[tuple[float, float]]:
    """Return CPU time of the server and wall-clock time until the page opens, and until the agent's first action."""
    start, task = time.perf_counter(), {"scene": {"seed": 4}, "task": {"by": "example", "seed": 5}}
    command = [sys.executable, "-m", "gcb", "explore", "--port", str(PORT)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:

        def times() -> tuple[float, float]:
            return _cpu_seconds_of(server.pid), time.perf_counter() - start

        try:
            _wait_until(_page_opens)
            page = times()
            _wait_until(lambda: json.load(_request("/api/status"))["state"] == "ready")
            for path, choices in (("/api/scene", task["scene"]), ("/api/task", task)):
                _request(path, choices).read()
            with _request("/api/episode", task) as events:
                events.readline()
                events.readline()  # the first step
                return [page, times()]
        finally:
            server.kill()


def _wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(POLL_SECONDS)


def _request(path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", data, {"content-type": "application/json"})
    return urllib.request.urlopen(request, timeout=60)


def _page_opens() -> bool:
    try:
        return bool(_request("/").read())
    except urllib.error.URLError:
        return False


def _cpu_seconds_of(process: int) -> float:
    user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
