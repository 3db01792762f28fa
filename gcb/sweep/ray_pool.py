"""Jobs as tasks of a Ray cluster, or of a Ray that is started on this machine for the sweep.

The sweep's folder and the datasets must lie where every node sees them under the same path: a run's state is its
folder, so that a run whose worker or node died goes on on another one.
"""

import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gcb.errors import GCBError
from gcb.sweep.folder import Folder
from gcb.sweep.jobs import Job
from gcb.sweep.pool import Ended
from gcb.sweep.worker import do

LOCAL = "local"
OBJECT_STORE = 80 * 1024**2
"""Bytes; Ray wants at least 75 MB, and a task here returns nothing but a sentence."""
LONGEST_TEMP = 40
"""Characters. Ray puts sockets below its folder, and a socket's path has at most 107."""
ROOM_SECONDS = 5.0
START_ATTEMPTS = 3
"""Ray gives its own helpers 30 seconds to start, which a busy machine may not manage at first."""


class RayPool:
    """One task for each job, with `cpus` and `gpus` of its own."""

    def __init__(self, folder: Folder, address: str, cpus: float, gpus: float, workers: int | None) -> None:
        if find_spec("ray") is None:
            raise GCBError("--ray needs the package ray, which is not installed: pip install 'gcb[ray]'.")
        for name, value, accepted in (("cpus_per_run", cpus, cpus > 0), ("gpus_per_run", gpus, gpus >= 0)):
            if not accepted:
                raise GCBError(f"{name} is {value}; it must be {'above 0' if name[0] == 'c' else 'at least 0'}.")
        if workers is not None and workers < 1:
            raise GCBError(f"workers is {workers}; it must be at least 1.")
        self.folder, self.cpus, self.gpus, self.workers = folder, cpus, gpus, workers
        self._temp: str | None = None
        self._tasks: dict[Any, Job] = {}
        self._connect(address)
        self._capacity, self._looked = self._fitting(), time.monotonic()

    @property
    def width(self) -> int:
        return 1  # a task that wants several CPUs may fit no node

    def room(self, processes: int = 1) -> bool:
        """With `workers` so many tasks are submitted at a time (a cluster may grow for them), else what fits now."""
        if time.monotonic() - self._looked > ROOM_SECONDS:
            self._capacity, self._looked = self._fitting(), time.monotonic()
        return len(self._tasks) < max(1, self.workers or self._capacity)

    def start(self, job: Job, processes: int = 1) -> None:
        import ray

        # A process of its own for each task; and what is tried again is for the conductor to say, who counts.
        task = ray.remote(max_calls=1, max_retries=0)(_do_in_ray)
        task = task.options(num_cpus=self.cpus, num_gpus=self.gpus, name=job.name)
        self._tasks[task.remote(str(self.folder.path), job.name)] = job

    def ended(self) -> Iterator[Ended]:
        import ray
        from ray.exceptions import RayError, RayTaskError

        over = ray.wait(list(self._tasks), num_returns=len(self._tasks), timeout=0)[0] if self._tasks else []
        for reference in over:
            job = self._tasks.pop(reference)
            try:
                yield Ended(job, ray.get(reference))
            except RayTaskError as error:
                yield Ended(job, str(error).strip().splitlines()[-1])
            except RayError as error:
                yield Ended(job, f"its worker died: {str(error).strip().splitlines()[0]}", died=True)

    def stop(self, patience: float) -> None:
        import ray

        for reference in self._tasks:
            ray.cancel(reference)  # as Ctrl-C in the worker
        if self._tasks:
            ray.wait(list(self._tasks), num_returns=len(self._tasks), timeout=patience)
        self._tasks.clear()

    def close(self) -> None:
        import ray

        ray.shutdown()
        if self._temp is not None:
            shutil.rmtree(self._temp, ignore_errors=True)
            self._temp = None

    def _connect(self, address: str) -> None:
        """Join a cluster, or start one; a start that took too long is tried again, with a warm cache."""
        # Ray reads it when it is imported.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        for attempt in range(START_ATTEMPTS if address == LOCAL else 1, 0, -1):
            try:
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **self._settings(address))
                return
            except Exception as error:  # Ray tells a node that is slow to start by a bare Exception
                self.close()
                if attempt == 1:
                    raise GCBError(_no_ray(address, error)) from error

    def _settings(self, address: str) -> dict[str, Any]:
        """What is ours to say of a Ray that is started here; a cluster has settings of its own."""
        if address != LOCAL:
            return {}
        root = tempfile.gettempdir()
        self._temp = tempfile.mkdtemp(prefix="gcb-ray-", dir=root if len(root) <= LONGEST_TEMP else "/tmp")
        return {
            "num_cpus": self.workers,
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE,
            "_temp_dir": self._temp,
        }

    def _fitting(self) -> int:
        """How many runs the cluster has room for, as it is now."""
        import ray

        there = ray.cluster_resources()
        fitting = there.get("CPU", 0) / self.cpus
        return int(min(fitting, there.get("GPU", 0) / self.gpus) if self.gpus else fitting)


def _no_ray(address: str, error: Exception) -> str:
    reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
    if address == LOCAL:
        return f"no Ray could be started on this machine: {reason} Without --ray the sweep needs none."
    return f"there is no Ray at {address!r} ({reason}); accepted: local, auto, host:port."


def _do_in_ray(out: str, name: str) -> str | None:
    return do(Path(out), name)
