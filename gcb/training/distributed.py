"""One run on many devices: the processes that torchrun started, as a team that trains one agent together.

Each process takes an equal part of every batch, and DistributedDataParallel averages the gradients. The first one
writes the run's folder; all must see that folder and the dataset. A lone process is a team of one.
"""

import atexit
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

PATIENCE = timedelta(hours=2)
"""How long the others wait for the first process, which may be evaluating."""
Result = TypeVar("Result")


@dataclass(frozen=True)
class Distributed:
    """Who this process is among those that train one agent."""

    rank: int = 0
    size: int = 1
    _words: Any = field(default=None, repr=False)
    """The group for what is said about the run: on CPUs, so that a GPU's work is not waited for."""

    @property
    def is_main(self) -> bool:
        """Whether it is this process that writes, and speaks to the user."""
        return self.rank == 0

    def rows(self, batch_size: int) -> slice:
        """This process's part of a batch."""
        each = batch_size // self.size
        return slice(self.rank * each, (self.rank + 1) * each)

    def averaged(self, networks: nn.Module, losses: Callable[..., Any]) -> Callable[..., Any]:
        """The function `losses` of these networks; its backward pass leaves the mean gradient of all processes."""
        if self.size == 1:
            return losses
        # Which parameters a loss reaches is the method's affair: some may be in none.
        return DistributedDataParallel(_Losses(networks, losses), find_unused_parameters=True)

    def mean(self, figures: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The mean of each figure over all processes."""
        if self.size == 1:
            return dict(figures)
        values = torch.stack([value.float() for value in figures.values()])
        dist.all_reduce(values)
        return dict(zip(figures, (values / self.size).unbind(), strict=True))

    def any(self, *facts: bool) -> tuple[bool, ...]:
        """For each fact, whether any process knows of it: so that all stop at the same step."""
        if self.size == 1:
            return facts
        known = torch.tensor(facts, dtype=torch.uint8)
        dist.all_reduce(known, dist.ReduceOp.MAX, group=self._words)
        return tuple(bool(fact) for fact in known)

    def broadcast_from_main(self, call: Callable[[], Result]) -> Result:
        """What `call` gives in the first process, in all of them; an error there is an error everywhere."""
        if self.size == 1:
            return call()
        told: list[Any] = [None, None]
        if self.is_main:
            try:
                told[0] = call()
            except GCBError as error:
                told[1] = str(error)
        dist.broadcast_object_list(told, 0, group=self._words)
        if told[1] is not None:
            raise GCBError(told[1])
        return told[0]

    @contextmanager
    def together(self, kept: Callable[[], str]) -> Iterator[None]:
        """Say in plain words that another process has gone, which shows as a broken connection."""
        try:
            yield
        except RuntimeError as error:
            if self.size == 1 or not (isinstance(error, dist.DistError) or "gloo" in str(error)):
                raise
            gone = f"another of the {self.size} processes of this run has ended"
            raise GCBError(f"{gone}. {kept()}; the same command goes on") from error


SINGLE = Distributed()


class _Losses(nn.Module):
    """A function of some networks as a module, which is what DistributedDataParallel takes."""

    def __init__(self, networks: nn.Module, losses: Callable[..., Any]) -> None:
        super().__init__()
        self.networks, self._losses = networks, losses

    def forward(self, *inputs: Any) -> Any:
        return self._losses(*inputs)


def processes() -> int:
    """How many processes torchrun has started for this run; 1 without it."""
    return int(os.environ["WORLD_SIZE"]) if dist.is_available() and dist.is_torchelastic_launched() else 1


def is_main() -> bool:
    """Whether this process is the one that speaks to the user."""
    return processes() == 1 or os.environ.get("RANK") == "0"


def gather(device: torch.device) -> tuple[Distributed, torch.device]:
    """The team of this process, and its own device of the kind asked for."""
    size = processes()
    if size == 1:
        return SINGLE, device
    if device.type not in ("cpu", "cuda"):
        raise GCBError(f"device is {device.type!r}; several processes can use: cpu, cuda.")
    if device.type == "cuda":
        device = _own_gpu()
    words = _connect()
    return Distributed(dist.get_rank(), size, words), device


@cache
def _connect() -> Any:
    """Connect the processes, once and until they end: torchrun's rendezvous serves no second time."""
    if not dist.is_initialized():
        dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo", timeout=PATIENCE)
        atexit.register(dist.destroy_process_group)
    return dist.new_group(backend="gloo", timeout=PATIENCE)


def _own_gpu() -> torch.device:
    """The GPU of this process: one for each on a machine."""
    local, there = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if local >= there:
        raise GCBError(f"this machine has {there} GPUs; accepted: --nproc-per-node up to {there}, or --device cpu.")
    torch.cuda.set_device(local)
    return torch.device("cuda", local)


def shared_config(config: TrainConfig[Any], size: int) -> TrainConfig[Any]:
    """The configuration for so many processes: a part of the batch for each."""
    if size == 1 or config.microbatches == size:
        return config
    if config.microbatches != 1:
        raise GCBError(
            f"microbatches is {config.microbatches}; with {size} processes accepted: {size}, or leave it out."
        )
    return replace(config, microbatches=size)
