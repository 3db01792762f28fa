"""Train one run in several processes, started by torchrun.

Each process takes an equal part of every batch, and DistributedDataParallel averages the gradients. The main process
(rank 0) writes the run directory; all processes must see that directory and the dataset.
"""

import atexit
import gc
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from gcb.errors import GCBError
from gcb.runs.config import TrainConfig

TIMEOUT = timedelta(hours=2)
"""How long the other processes wait for the main one, which may be evaluating."""
Result = TypeVar("Result")


@dataclass(frozen=True)
class Distributed:
    """This process among those that train the run."""

    rank: int = 0
    size: int = 1
    _cpu_group: Any = field(default=None, repr=False)
    """A gloo group for messages, which do not have to wait for work on a GPU."""

    @property
    def is_main(self) -> bool:
        """Whether this is the process that writes files and talks to the user."""
        return self.rank == 0

    def rows(self, batch_size: int) -> slice:
        """Return this process's rows of a batch."""
        each = batch_size // self.size
        return slice(self.rank * each, (self.rank + 1) * each)

    def average_gradients(self, networks: nn.Module, losses: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap `losses`, a function of these networks: its backward pass averages gradients over all processes."""
        if self.size == 1:
            return losses
        # Some methods have parameters that no loss depends on.
        return DistributedDataParallel(_Losses(networks, losses), find_unused_parameters=True)

    def mean(self, metrics: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Average each metric over all processes."""
        if self.size == 1:
            return dict(metrics)
        values = torch.stack([value.float() for value in metrics.values()])
        dist.all_reduce(values)
        return dict(zip(metrics, (values / self.size).unbind(), strict=True))

    def any(self, *flags: bool) -> tuple[bool, ...]:
        """Return for each flag whether it is set in any process, so that all stop at the same step."""
        if self.size == 1:
            return flags
        reduced = torch.tensor(flags, dtype=torch.uint8)
        dist.all_reduce(reduced, dist.ReduceOp.MAX, group=self._cpu_group)
        return tuple(bool(flag) for flag in reduced)

    def broadcast_from_main(self, call: Callable[[], Result]) -> Result:
        """Call a function in the main process and return its result, or raise its GCBError, in all processes."""
        if self.size == 1:
            return call()
        message: list[Any] = [None, None]
        if self.is_main:
            try:
                message[0] = call()
            except GCBError as error:
                message[1] = str(error)
        dist.broadcast_object_list(message, 0, group=self._cpu_group)
        if message[1] is not None:
            raise GCBError(message[1])
        return message[0]

    @contextmanager
    def explain_lost_process(self, kept: Callable[[], str]) -> Iterator[None]:
        """Turn the connection error that a process causes by ending into an error that says so."""
        try:
            yield
        except RuntimeError as error:
            if self.size == 1 or not (isinstance(error, dist.DistError) or "gloo" in str(error)):
                raise
            reason = f"another of the {self.size} processes of this run has ended"
            raise GCBError(f"{reason}. {kept()}; run the same command again to resume") from error


SINGLE = Distributed()


class _Losses(nn.Module):
    """A function of some networks as a module, for DistributedDataParallel."""

    def __init__(self, networks: nn.Module, losses: Callable[..., Any]) -> None:
        super().__init__()
        self.networks, self._losses = networks, losses

    def forward(self, *inputs: Any) -> Any:
        return self._losses(*inputs)


def process_count() -> int:
    """Return how many processes torchrun started for this run; 1 without torchrun."""
    return int(os.environ["WORLD_SIZE"]) if dist.is_available() and dist.is_torchelastic_launched() else 1


def is_main() -> bool:
    """Return whether this process is the main one, before or without `join_processes`."""
    return process_count() == 1 or os.environ.get("RANK") == "0"


def join_processes(device: torch.device) -> tuple[Distributed, torch.device]:
    """Connect to the other processes, if any; return them and this process's own device of the given type."""
    size = process_count()
    if size == 1:
        return SINGLE, device
    if device.type not in ("cpu", "cuda"):
        raise GCBError(f"device is {device.type!r}; several processes can use: cpu, cuda.")
    if device.type == "cuda":
        device = _local_gpu()
    cpu_group = _connect()
    return Distributed(dist.get_rank(), size, cpu_group), device


@cache
def _connect() -> Any:
    """Connect the processes, once for their lifetime: torchrun's rendezvous cannot be repeated."""
    if not dist.is_initialized():
        dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo", timeout=TIMEOUT)
        atexit.register(_disconnect)
    return dist.new_group(backend="gloo", timeout=TIMEOUT)


def _disconnect() -> None:
    """Release the groups while their threads can still end: gloo aborts a process that exits with one running."""
    _connect.cache_clear()
    gc.collect()
    dist.destroy_process_group()


def _local_gpu() -> torch.device:
    """Return the GPU of this process: each process on a machine has one of its own."""
    local, count = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if local >= count:
        raise GCBError(f"this machine has {count} GPUs; accepted: --nproc-per-node up to {count}, or --device cpu.")
    torch.cuda.set_device(local)
    return torch.device("cuda", local)


def config_for_processes(config: TrainConfig[Any], size: int) -> TrainConfig[Any]:
    """Return the configuration for this many processes: one microbatch each."""
    if size == 1 or config.microbatches == size:
        return config
    if config.microbatches != 1:
        raise GCBError(
            f"microbatches is {config.microbatches}; with {size} processes accepted: {size}, or leave it out."
        )
    return replace(config, microbatches=size)
