"""The training loop, the same for every method (Algorithm 1): representation and policy learn concurrently."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcb.agent.agent import Agent
from gcb.agent.build import pick_device
from gcb.data import Batch, Dataset, Sampler, open_dataset
from gcb.data.augment import Augmenter
from gcb.errors import GCBError
from gcb.runs.config import TrainConfig
from gcb.runs.dataset_record import DatasetRecord, record_dataset, shapes_of
from gcb.runs.extension import extend as extend_run
from gcb.runs.extension import extends
from gcb.runs.run_dir import RECORD, Run, open_or_create, run_exists
from gcb.training.clock import TrainingClock
from gcb.training.collapse import CollapseAlarm, representation_metrics
from gcb.training.distributed import SINGLE, Distributed, config_for_processes, join_processes
from gcb.training.learner import Learner, lr_multiplier
from gcb.training.loggers import Logger, check_extras, open_loggers
from gcb.training.loss_monitor import LossMonitor
from gcb.training.malloc import keep_freed_memory
from gcb.training.partner_search import PartnerSearch, partners_from_tensors, partners_to_tensors
from gcb.utils.dataclass_io import check_interval
from gcb.utils.files import directory_lock
from gcb.utils.os_errors import explain_os_errors
from gcb.utils.progress import Progress

PROGRESS_LOSSES = ("representation_loss", "critic_loss", "value_loss", "actor_loss")
"""Losses shown by the progress bar; metrics.jsonl has every metric."""
THREADS_PER_CORE = 4
"""More threads than this would only wait for each other."""
OnCheckpoint = Callable[[Agent, int], Mapping[str, float]]


@dataclass(frozen=True)
class TrainResult:
    """The outcome of a call of `train`."""

    path: Path
    step: int
    seconds: float
    """Training time, summed over all calls for this run."""
    start_step: int
    """The step training resumed from; equal to `step` if the run was already finished."""


def train(
    config: TrainConfig[Any],
    data: Dataset | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    quiet: bool = False,
    on_checkpoint: OnCheckpoint | None = None,
    extend: bool = False,
) -> TrainResult:
    """Train an agent in the directory `out`, or resume from its last checkpoint; return at once if it is finished.

    A resumed run matches an uninterrupted one bit for bit on a CPU. `on_checkpoint(agent, step)` is called after every
    checkpoint; the metrics it returns are logged. With `extend`, a finished run is trained further if `config` has more
    steps and is otherwise the run's (`gcb.runs.extension`). Processes started by torchrun train the run together: see
    `gcb.training.distributed`.
    """
    check_extras(config)
    distributed, device = join_processes(pick_device(config.device))
    config = config_for_processes(config, distributed.size)
    dataset = data if isinstance(data, Dataset) else open_dataset(data, preload=config.preload)
    path, record = Path(out), record_dataset(dataset)
    if done := distributed.broadcast_from_main(lambda: _finished_before(path, config, record, extend)):
        return done
    with torch.random.fork_rng(), _num_threads(config.threads), ExitStack() as stack:
        # Fail early: everything that can be refused is checked before the run directory is created.
        trainer = Trainer(config, dataset, device, distributed)
        distributed.broadcast_from_main(lambda: _check_data(dataset))
        if done := distributed.broadcast_from_main(lambda: _lock_run_dir(path, config, record, stack, extend)):
            return done
        run = Run(path)
        start_step = trainer.resume(run)
        stop = stack.enter_context(_stop_signals())
        loggers = open_loggers(run, start_step) if distributed.is_main else []
        for logger in loggers:
            stack.callback(logger.close)
        with distributed.explain_lost_process(run.kept):
            trainer.run(loggers, stop, on_checkpoint, quiet or not distributed.is_main)
    return TrainResult(path, trainer.step, trainer.clock(), start_step)


def _check_data(dataset: Dataset) -> None:
    """Raise an error if a file is damaged, or holds numbers that are not finite or out of range."""
    if dataset.path is not None:
        dataset.verify()
    dataset.check_values()


def _finished_before(path: Path, config: TrainConfig[Any], record: DatasetRecord, extend: bool) -> TrainResult | None:
    """Return a result if the directory holds this run and it is finished; raise an error if it holds another one."""
    if extend and _is_extension(path, config):
        return None
    return _finished(path) if run_exists(path, config, record, extended=extend) else None


def _lock_run_dir(
    path: Path, config: TrainConfig[Any], record: DatasetRecord, stack: ExitStack, extend: bool
) -> TrainResult | None:
    """Create the run directory if needed and lock it until `stack` closes; return a result if it is finished."""
    with explain_os_errors(path):
        path.mkdir(parents=True, exist_ok=True)
    stack.enter_context(directory_lock(path))
    if extend and _is_extension(path, config):
        run_exists(path, Run(path).config, record, extended=True)  # raises an error if the data differ
        extend_run(Run(path), config)
    open_or_create(path, config, record, extended=extend)
    return _finished(path)  # another process may have finished it before this one got the lock


def _is_extension(path: Path, config: TrainConfig[Any]) -> bool:
    return (path / RECORD).is_file() and extends(Run(path), config)


def _finished(path: Path) -> TrainResult | None:
    run = Run(path)
    checkpoint = run.checkpoint()
    if checkpoint is None or not checkpoint.finished or checkpoint.step in run.extended_from:
        return None
    return TrainResult(path, checkpoint.step, checkpoint.seconds, checkpoint.step)


class Trainer:
    """Trains one run from the start or from a checkpoint, until it is finished, stopped or has diverged."""

    def __init__(
        self, config: TrainConfig[Any], dataset: Dataset, device: torch.device, distributed: Distributed = SINGLE
    ) -> None:
        self.config, self.device, self.distributed, self.shapes = config, device, distributed, shapes_of(dataset)
        if device.type == "cpu":
            keep_freed_memory()
        torch.manual_seed(config.seed)
        self.learner = Learner(config, self.shapes, device, distributed)
        sampler_rng, augment_rng = (np.random.default_rng([config.seed, stream]) for stream in (1, 2))
        self.sampler = Sampler(
            dataset,
            config.goals,
            sampler_rng,
            group_size=config.transitions_per_episode,
            p_final_state=config.p_final_state,
            future_discount=config.future_discount,
            only_successful=config.only_successful,
        )
        self.augmenter = Augmenter(
            dataset,
            augment_rng,
            random_shift=config.random_shift,
            channel_shuffle=config.channel_shuffle,
            random_overlay=config.random_overlay,
            horizontal_flip=config.horizontal_flip,
            shifted_independently=self.learner.method.shifted_independently,
        )
        self.partner_search = PartnerSearch(self.learner.method, self.sampler, config, device)
        self.loss_monitor, self.collapse_alarm = LossMonitor(config.max_loss), CollapseAlarm()
        self.step, self.clock = 0, TrainingClock(0.0)

    def resume(self, run: Run) -> int:
        """Load the last checkpoint of a run, if it has one; return its step."""
        self.run_dir, checkpoint = run, run.checkpoint()
        if checkpoint is not None:
            self._load_checkpoint()
            self.step = checkpoint.step
        self.clock = TrainingClock(checkpoint.seconds if checkpoint else 0.0)
        return self.step

    def run(
        self, loggers: list[Logger], stop: threading.Event, on_checkpoint: OnCheckpoint | None, quiet: bool
    ) -> None:
        """Train until the steps or the minutes are used up; once `stop` is set, write a checkpoint and raise."""
        config, finished = self.config, False
        with Progress(f"training {config.method}", config.steps, start=self.step, quiet=quiet, clock=self.clock) as bar:
            while not finished:
                batch = self.next_batch()
                self.loss_monitor.add(self.step + 1, self.learner.step(batch, self.step))
                self.step += 1
                if self.device.type == "cpu" or self.step % config.log_every == 0:
                    self.loss_monitor.check(self.run_dir)
                bar.advance(1, **self.loss_monitor.latest(PROGRESS_LOSSES))
                if self.step % config.log_every == 0 and self.distributed.is_main:
                    self._log(batch, loggers)
                last = self.step >= config.steps
                interrupted, out_of_time = self.distributed.any(stop.is_set(), self._out_of_time())
                if last or interrupted or self.step % config.checkpoint_every == 0:
                    finished = last or out_of_time
                    self._save_checkpoint(loggers, finished)
                    if interrupted and not finished:
                        raise KeyboardInterrupt
                    if on_checkpoint is not None and self.distributed.is_main:
                        with self.clock.paused():
                            self._call_on_checkpoint(loggers, on_checkpoint)

    def next_batch(self) -> Batch[Tensor]:
        """Sample this process's rows of the next batch, on the device and augmented."""
        size = self.config.batch_size
        rows = self.distributed.rows(size)
        if self.partner_search.is_due(self.step):
            self.sampler.partners = self.partner_search(self.step)
        batch = self.sampler.sample(size, rows, self.learner.method.extra_frames)
        return self.augmenter(batch.to(self.device), size, rows)

    def _out_of_time(self) -> bool:
        """Return whether the time limit is reached, by the main process's clock."""
        limit = self.config.minutes
        return limit is not None and self.distributed.is_main and self.clock() >= 60 * limit

    def _log(self, batch: Batch[Tensor], loggers: list[Logger]) -> None:
        """Log the means of the metrics since the last row, and the representation's metrics on this batch."""
        representation = representation_metrics(self.learner.method, batch)
        self.collapse_alarm.check(representation, self.step)
        row = {"seconds": round(self.clock(), 3), **self.loss_monitor.means(), **representation}
        row["lr_multiplier"] = lr_multiplier(self.config, self.step - 1)
        for logger in loggers:
            logger.write(self.step, row)

    def _call_on_checkpoint(self, loggers: list[Logger], on_checkpoint: OnCheckpoint) -> None:
        modules = self.learner.modules.eval()
        agent = Agent(self.learner.method, self.learner.iql, self.shapes, self.device, self.run_dir, self.step)
        metrics = on_checkpoint(agent, self.step)
        modules.train()
        for logger in loggers if metrics else ():
            logger.write(self.step, metrics)

    def _save_checkpoint(self, loggers: list[Logger], finished: bool) -> None:
        self.loss_monitor.check(self.run_dir)
        if not self.distributed.is_main:
            return
        for logger in loggers:
            logger.sync()
        state = {
            "optimizer": self.learner.optimizer.state_dict(),
            "scaler": self.learner.scaler.state_dict(),
            "sampler": json.dumps(self.sampler.state_dict()),
            "partners": partners_to_tensors(self.sampler.partners),
            "augmenter": json.dumps(self.augmenter.state_dict()),
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state() if self.device.type == "cuda" else None,
            "loss_monitor": self.loss_monitor.state_dict(),
        }
        self.run_dir.save(self.learner.modules.state_dict(), state, self.step, self.clock(), finished)

    def _load_checkpoint(self) -> None:
        weights, _ = self.run_dir.weights()
        state = self.run_dir.state()
        try:
            self.learner.modules.load_state_dict(weights)
            self.learner.optimizer.load_state_dict(state["optimizer"])
            self.learner.scaler.load_state_dict(state["scaler"])
            self.sampler.load_state_dict(json.loads(state["sampler"]))
            self.sampler.partners = partners_from_tensors(state["partners"])
            self.augmenter.load_state_dict(json.loads(state["augmenter"]))
            torch.set_rng_state(state["torch"])
            if state["cuda"] is not None and self.device.type == "cuda":
                torch.cuda.set_rng_state(state["cuda"])
            self.loss_monitor.load_state_dict(state["loss_monitor"])
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            reason = str(error).splitlines()[0]
            raise GCBError(f"the checkpoint in {self.run_dir.path} does not fit its configuration: {reason}") from error


@contextmanager
def _num_threads(count: int | None) -> Iterator[None]:
    check_interval("threads", count, f"[1, {THREADS_PER_CORE * (os.cpu_count() or 1)}]")
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """Yield an event that the first Ctrl-C or SIGTERM sets instead of interrupting; the second one interrupts."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def handle(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
