"""Run jobs as tasks on a Ray cluster, or on a Ray instance started on this machine.

The sweep directory and the datasets must be on a file system that all nodes share under the same path: a run's state
is its directory, so that it resumes on any node.
"""

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from gcb.errors import GCBError
from gcb.sweep.jobs import Job
from gcb.sweep.pools import Finished, run_logged
from gcb.sweep.sweep_dir import SweepDir
from gcb.utils.dataclass_io import check_interval

LOCAL = "local"
OBJECT_STORE_BYTES = 80 * 1024**2
"""Ray requires at least 75 MB; a task here returns only a message."""
MAX_TEMP_LENGTH = 40
"""Ray puts sockets below its temporary directory, and the path of a socket has at most 107 characters."""
START_ATTEMPTS = 3
"""Ray gives its own processes 30 seconds to start, which is not always enough on a busy machine."""


class RayPool:
    """One task for each job, with `cpus` and `gpus` of its own."""

    max_workers = 1  # a task that needs several CPUs may fit no node

    def __init__(self, sweep_dir: SweepDir, address: str, cpus: float, gpus: float, workers: int | None) -> None:
        """`workers` limits the number of submitted tasks (a cluster may grow for them), by default to what fits now."""
        if find_spec("ray") is None:
            raise GCBError("--ray needs the package ray, which is not installed: pip install 'gcb[ray]'.")
        check_interval("cpus_per_run", cpus, "(0, inf)")
        check_interval("gpus_per_run", gpus, "[0, inf)")
        check_interval("workers", workers, "[1, inf)")
        self.sweep_dir, self.cpus, self.gpus, self.workers = sweep_dir, cpus, gpus, workers
        self._temp: str | None = None
        self._tasks: dict[Any, Job] = {}
        self._connect(address)

    def has_room(self, workers: int = 1) -> bool:
        return len(self._tasks) < max(1, self.workers or self._capacity())

    def start(self, job: Job, workers: int = 1) -> None:
        import ray

        # A new process for each task; the scheduler counts the retries.
        task = ray.remote(max_calls=1, max_retries=0)(run_logged)
        task = task.options(num_cpus=self.cpus, num_gpus=self.gpus, name=job.name)
        self._tasks[task.remote(job, self.sweep_dir.log(job.name))] = job

    def finished(self) -> Iterator[Finished]:
        import ray
        from ray.exceptions import RayError, RayTaskError

        ended = ray.wait(list(self._tasks), num_returns=len(self._tasks), timeout=0)[0] if self._tasks else []
        for reference in ended:
            job = self._tasks.pop(reference)
            try:
                yield Finished(job, ray.get(reference))
            except RayTaskError as error:
                yield Finished(job, str(error).strip().splitlines()[-1])
            except RayError as error:
                yield Finished(job, f"its worker died: {str(error).strip().splitlines()[0]}", died=True)

    def stop(self, timeout: float) -> None:
        import ray

        for reference in self._tasks:
            ray.cancel(reference)  # raises KeyboardInterrupt in the worker
        if self._tasks:
            ray.wait(list(self._tasks), num_returns=len(self._tasks), timeout=timeout)
        self._tasks.clear()

    def close(self) -> None:
        import ray

        ray.shutdown()
        if self._temp is not None:
            shutil.rmtree(self._temp, ignore_errors=True)
            self._temp = None

    def _connect(self, address: str) -> None:
        """Join a cluster or start one; a local start that times out is tried again."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read by Ray when it is imported
        import ray

        for attempt in range(START_ATTEMPTS if address == LOCAL else 1, 0, -1):
            try:
                settings = self._local_settings() if address == LOCAL else {}
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **settings)
                return
            except Exception as error:  # Ray reports a slow start as a bare Exception
                self.close()
                if attempt == 1:
                    reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
                    raise GCBError(f"ray is {address!r}: {reason}; accepted: local, auto, host:port.") from error

    def _local_settings(self) -> dict[str, Any]:
        root = tempfile.gettempdir()
        self._temp = tempfile.mkdtemp(prefix="gcb-ray-", dir=root if len(root) <= MAX_TEMP_LENGTH else "/tmp")
        return {
            "num_cpus": self.workers,
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE_BYTES,
            "_temp_dir": self._temp,
        }

    def _capacity(self) -> int:
        """Return how many runs fit on the cluster as it is now."""
        import ray

        resources = ray.cluster_resources()
        capacity = resources.get("CPU", 0) / self.cpus
        return int(min(capacity, resources.get("GPU", 0) / self.gpus) if self.gpus else capacity)
