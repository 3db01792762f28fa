"""The explorer's server in this process, and an agent that acts as the expert does."""

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn

from gcb.envs.expert import Expert
from gcb.explorer.app import create_app
from gcb.explorer.loader import RunLoader
from gcb.explorer.serve import listen, page_url
from gcb.explorer.simulators import Simulators
from gcb.methods import Shapes
from gcb.runs.run_dir import RECORD
from gcb.utils.text_files import read_json


@contextmanager
def serving(loader: RunLoader) -> Iterator[str]:
    """Serve a run on a free port; yields the URL."""
    listener = listen("127.0.0.1", 8400)
    server = uvicorn.Server(
        uvicorn.Config(create_app(loader), log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    loader.start()
    thread.start()
    yield page_url(listener)
    loader.close()
    server.should_exit = True
    thread.join(10)
    listener.close()


def wait_for(condition: Callable[[], Any], seconds: float = 120.0) -> Any:
    """Wait until `condition` returns something true, and return that."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, f"condition not met within {seconds} s"
        time.sleep(0.02)
    return result


def wait_until_loaded(loader: RunLoader) -> None:
    """Wait for the run and its map."""
    wait_for(lambda: loader.status().get("map", {}).get("state") in ("ready", "unavailable"))


def copy_run(run: Path, path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Copy a run and change its record of the dataset."""
    shutil.copytree(run, path, ignore=shutil.ignore_patterns("analysis"))
    record = read_json(path / RECORD)
    change(record["data"])
    (path / RECORD).write_text(json.dumps(record))
    return path


class ExpertAgent:
    """An agent that acts as the expert, or not at all."""

    shapes = Shapes((64, 64, 3), 5)

    def __init__(self, simulators: Simulators, idle: bool = False) -> None:
        self.simulators, self.idle, self.conditioning = simulators, idle, None

    def start_task(self, initial_state: np.ndarray, **conditioning: Any) -> "ExpertAgent":
        self.conditioning, self.expert = conditioning, Expert(self.simulators.agents[0])
        return self

    def step(self, observation: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the action, and that it is done if it is; an idle agent does not know (NaN)."""
        assert noise.shape == (5,)
        if self.idle:
            return np.zeros(5), np.array(np.nan)
        env = self.simulators.agents[0]
        return self.expert.action(), np.array(float(env._info(env.state())["success"]))
