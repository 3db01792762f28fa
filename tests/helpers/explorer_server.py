"""The house in which the explorer is tested: its server in this process, and an agent that always knows what to do."""

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
from gcb.explorer.serve import address, listen
from gcb.explorer.session import Session
from gcb.explorer.simulators import SimulatorPair
from gcb.methods import Shapes
from gcb.runs.run_dir import RECORD
from gcb.utils.files import read_json


@contextmanager
def serving(explorer: RunLoader) -> Iterator[str]:
    """The explorer's server on a free port of this machine; its address."""
    listener = listen("127.0.0.1", 8400)
    server = uvicorn.Server(
        uvicorn.Config(create_app(explorer), log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    explorer.start()
    thread.start()
    yield address(listener)
    explorer.close()
    server.should_exit = True
    thread.join(10)
    listener.close()


def wait_for(condition: Callable[[], Any], seconds: float = 120.0) -> Any:
    """What `condition` gives once it is true."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {seconds} s in vain"
        time.sleep(0.02)
    return found


def loaded(explorer: RunLoader) -> Session:
    """The explorer's show with its map."""
    wait_for(lambda: explorer.status().get("map", {}).get("state") in ("ready", "unavailable"))
    return explorer.show


def with_record(run: Path, folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A copy of the run that remembers something else of its dataset."""
    shutil.copytree(run, folder, ignore=shutil.ignore_patterns("analysis"))
    record = read_json(folder / RECORD)
    change(record["data"])
    (folder / RECORD).write_text(json.dumps(record))
    return folder


class ActsAsTheExpert:
    """An agent that does what the expert would do on its stage, or nothing at all."""

    shapes = Shapes((64, 64, 3), 5)

    def __init__(self, stage: SimulatorPair, idle: bool = False) -> None:
        self.stage, self.idle, self.told = stage, idle, None

    def start_task(self, initial_state: np.ndarray, **told: Any) -> "ActsAsTheExpert":
        self.told, self.expert = told, Expert(self.stage.agent)
        return self

    def act(self, observation: np.ndarray, noise: np.ndarray) -> np.ndarray:
        assert noise.shape == (5,)
        return np.zeros(5) if self.idle else self.expert.action()

    def value(self, observation: np.ndarray) -> np.ndarray:
        return np.array(np.nan)
