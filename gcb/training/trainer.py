"""The training loop, the same for every method (Algorithm 1): concurrent representation and policy."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gcb.agent.agent import Agent
from gcb.agent.build import pick_device
from gcb.data import Dataset, Sampler, open_dataset
from gcb.data.augment import draw_orders, mirror_actions, mirror_frames, overlay_frames, recolour_frames, shift_frames
from gcb.envs.adapters import ADAPTERS
from gcb.errors import GCBError
from gcb.methods import Batch
from gcb.runs.config import TrainConfig
from gcb.runs.dataset_record import DatasetRecord, record_dataset, shapes_of
from gcb.runs.run_dir import Run, open_or_create, run_exists
from gcb.training.collapse import CollapseAlarm, representation_metrics
from gcb.training.distributed import SINGLE, Distributed, gather, shared_config
from gcb.training.learner import Learner, lr_multiplier
from gcb.training.loggers import Logger, check_extras, open_loggers
from gcb.training.loss_monitor import LossMonitor
from gcb.training.malloc import keep_freed_memory
from gcb.utils.files import directory_lock, explain_os_errors
from gcb.utils.progress import Progress

SHOWN = ("representation_loss", "critic_loss", "value_loss", "actor_loss")
"""What the progress bar shows; metrics.jsonl has all."""
OnCheckpoint = Callable[[Agent, int], Mapping[str, float]]


@dataclass(frozen=True)
class TrainResult:
    """What a call of `train` found and did."""

    path: Path
    step: int
    seconds: float
    """Time spent on training, over all trainers."""
    start_step: int
    """Steps that were done already; equal to `step` if the run was finished."""


def train(
    config: TrainConfig[Any],
    data: Dataset | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    quiet: bool = False,
    on_checkpoint: OnCheckpoint | None = None,
) -> TrainResult:
    """Train in the folder `out` what `config` describes, or go on with it, or find it finished.

    A run that was stopped and gone on with equals one that never was, bit for bit on a CPU. `on_checkpoint` is called
    with the agent as it stands after every checkpoint; the figures that it returns join the metrics. Processes that
    torchrun has started share the run: see `gcb.training.distributed`.
    """
    check_extras(config)
    distributed, device = gather(pick_device(config.device))
    config = shared_config(config, distributed.size)
    dataset = data if isinstance(data, Dataset) else open_dataset(data, preload=config.preload)
    path, record = Path(out), record_dataset(dataset)
    if done := distributed.broadcast_from_main(lambda: _finished(path) if run_exists(path, config, record) else None):
        return done
    with torch.random.fork_rng(), _threads(config.threads), ExitStack() as closing:
        # Whatever is impossible is found here, before a folder is made.
        trainer = Trainer(config, dataset, device, distributed)
        distributed.broadcast_from_main(lambda: dataset.path and dataset.verify())
        if done := distributed.broadcast_from_main(lambda: _moved_in(path, config, record, closing)):
            return done
        run = Run(path)
        start_step = trainer.resume(run)
        stop = closing.enter_context(_asked_to_stop())
        loggers = open_loggers(run, start_step) if distributed.is_main else []
        for logger in loggers:
            closing.callback(logger.close)
        with distributed.together(run.kept):
            trainer.run(loggers, stop, on_checkpoint, quiet or not distributed.is_main)
    return TrainResult(path, trainer.step, trainer.clock(), start_step)


def _moved_in(path: Path, config: TrainConfig[Any], record: DatasetRecord, closing: ExitStack) -> TrainResult | None:
    """Make the run's folder this process's own until `closing`; what it holds if that is finished after all."""
    with explain_os_errors(path):
        path.mkdir(parents=True, exist_ok=True)
    closing.enter_context(directory_lock(path))
    open_or_create(path, config, record)
    return _finished(path)


def _finished(path: Path) -> TrainResult | None:
    checkpoint = Run(path).checkpoint()
    if checkpoint is None or not checkpoint.finished:
        return None
    return TrainResult(path, checkpoint.step, checkpoint.seconds, checkpoint.step)


class Trainer:
    """One stretch of training, from a start or a checkpoint until it is finished, stopped or broken."""

    def __init__(
        self, config: TrainConfig[Any], dataset: Dataset, device: torch.device, distributed: Distributed = SINGLE
    ) -> None:
        self.config, self.device, self.distributed, self.shapes = config, device, distributed, shapes_of(dataset)
        if device.type == "cpu":
            keep_freed_memory()
        torch.manual_seed(config.seed)
        self.learner = Learner(config, self.shapes, device, distributed)
        sampling, self.shifting = (np.random.default_rng([config.seed, stream]) for stream in (1, 2))
        self.sampler = Sampler(
            dataset,
            config.goals,
            sampling,
            future_discount=config.future_discount,
            only_successful=config.only_successful,
            p_absorbing=config.p_absorbing,
        )
        self.turning = turned_by_mirror(dataset) if config.horizontal_flip else ()
        self.watch, self.alarm = LossMonitor(config.max_loss), CollapseAlarm()
        self.step, self.clock = 0, Stopwatch(0.0)

    def resume(self, run: Run) -> int:
        """Go to where a run stands; return its step."""
        self.run_dir, checkpoint = run, run.checkpoint()
        if checkpoint is not None:
            self._restore()
            self.step = checkpoint.step
        self.clock = Stopwatch(checkpoint.seconds if checkpoint else 0.0)
        return self.step

    def run(
        self, loggers: list[Logger], stop: threading.Event, on_checkpoint: OnCheckpoint | None, quiet: bool
    ) -> None:
        """Train to the end of the budget; when `stop` is set, to the end of a step and a checkpoint."""
        config, finished = self.config, False
        with Progress(f"training {config.method}", config.steps, start=self.step, quiet=quiet, clock=self.clock) as bar:
            while not finished:
                frames = self._next_frames()
                self.watch.add(self.step + 1, self.learner.step(frames, self.step))
                self.step += 1
                if self.device.type == "cpu" or self.step % config.log_every == 0:
                    self.watch.check(self.run_dir)
                bar.advance(1, **self.watch.latest(SHOWN))
                if self.step % config.log_every == 0 and self.distributed.is_main:
                    self._log(frames, loggers)
                last = self.step >= config.steps
                halted, late = self.distributed.any(stop.is_set(), self._late())
                if last or halted or self.step % config.checkpoint_every == 0:
                    finished = last or late
                    self._save(loggers, finished)
                    if halted and not finished:
                        raise KeyboardInterrupt
                    if on_checkpoint is not None and self.distributed.is_main:
                        with self.clock.paused():
                            self._report(loggers, on_checkpoint)

    def _late(self) -> bool:
        """Whether the minutes are over, by the first process's clock."""
        limit = self.config.minutes
        return limit is not None and self.distributed.is_main and self.clock() >= 60 * limit

    def _next_frames(self) -> Batch:
        """This process's rows of a batch on the device, augmented."""
        size = self.config.batch_size
        rows = self.distributed.rows(size)
        batch = self.sampler.sample(size, rows)
        arrays = {"state": batch.state, "next_state": batch.next_state, "goal": batch.goal}
        for role in sorted(self.learner.method.extra_frames):
            arrays[role] = self.sampler.gather(getattr(batch.indices, role))
        frames = {role: torch.from_numpy(array).to(self.device) for role, array in arrays.items()}
        action = torch.from_numpy(batch.action).to(self.device, torch.float32)
        if len(self.shapes.observation) == 3:
            frames, action = self._augmented(frames, action, size, rows)
        return Batch(
            **frames,
            action=action,
            reward=torch.from_numpy(batch.reward).to(self.device),
            terminal=torch.from_numpy(batch.terminal).to(self.device),
        )

    def _augmented(
        self, frames: dict[str, torch.Tensor], action: torch.Tensor, size: int, rows: slice
    ) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """Images, and actions with them, changed as the settings say; the draws are those of the whole batch."""
        config, rng = self.config, self.shifting
        if config.random_shift:
            frames = shift_frames(frames, config.random_shift, self.learner.method.shifted_together, rng, size, rows)
        if config.channel_shuffle and self.shapes.observation[2] % 3 == 0:
            frames = recolour_frames(frames, draw_orders(size, rng)[rows])
        if config.random_overlay:
            picture, chosen = (
                self.sampler.random_frames(size, rng)[rows],
                rng.random(size)[rows] < config.random_overlay,
            )
            pictures = torch.from_numpy(self.sampler.gather(picture)).to(self.device)
            frames = overlay_frames(frames, pictures, torch.from_numpy(chosen))
        if self.turning:
            mirrored = torch.from_numpy(rng.random(size)[rows] < 0.5)
            frames, action = mirror_frames(frames, mirrored), mirror_actions(action, mirrored, self.turning)
        return frames, action

    def _log(self, frames: Batch, loggers: list[Logger]) -> None:
        """One row: the means since the row before, and how much of the representation is left."""
        representation = representation_metrics(self.learner.method, frames)
        self.alarm.check(representation, self.step)
        row = {"seconds": round(self.clock(), 3), **self.watch.means(), **representation}
        row["lr_multiplier"] = lr_multiplier(self.config, self.step - 1)
        for logger in loggers:
            logger.write(self.step, row)

    def _report(self, loggers: list[Logger], on_checkpoint: OnCheckpoint) -> None:
        """What an observer makes of the agent; its time is not training time."""
        modules = self.learner.modules.eval()
        agent = Agent(self.learner.method, self.learner.iql, self.shapes, self.device, self.run_dir, self.step)
        figures = on_checkpoint(agent, self.step)
        modules.train()
        for logger in loggers if figures else ():
            logger.write(self.step, figures)

    def _save(self, loggers: list[Logger], finished: bool) -> None:
        self.watch.check(self.run_dir)
        if not self.distributed.is_main:
            return
        for logger in loggers:
            logger.sync()
        state = {
            "optimizer": self.learner.optimizer.state_dict(),
            "scaler": self.learner.scaler.state_dict(),
            "sampler": json.dumps(self.sampler.state_dict()),
            "shifting": json.dumps(self.shifting.bit_generator.state),
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state() if self.device.type == "cuda" else None,
            "watch": self.watch.state_dict(),
        }
        self.run_dir.save(self.learner.modules.state_dict(), state, self.step, self.clock(), finished)

    def _restore(self) -> None:
        weights, _ = self.run_dir.weights()
        state = self.run_dir.state()
        try:
            self.learner.modules.load_state_dict(weights)
            self.learner.optimizer.load_state_dict(state["optimizer"])
            self.learner.scaler.load_state_dict(state["scaler"])
            self.sampler.load_state_dict(json.loads(state["sampler"]))
            self.shifting.bit_generator.state = json.loads(state["shifting"])
            torch.set_rng_state(state["torch"])
            if state["cuda"] is not None and self.device.type == "cuda":
                torch.cuda.set_rng_state(state["cuda"])
            self.watch.load_state_dict(state["watch"])
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            reason = str(error).splitlines()[0]
            raise GCBError(f"the checkpoint in {self.run_dir.path} does not fit its configuration: {reason}") from error


def turned_by_mirror(dataset: Dataset) -> tuple[int, ...]:
    """The dimensions of the actions that a mirror turns, as the dataset's world says; none if it says nothing.

    Data that names no adapter is ours only if its world is; an adapter of a user's own is not imported for this.
    """
    named = dataset.config.get("adapter", "gcb" if str(dataset.config.get("env")).startswith("gcb/") else "goal")
    return ADAPTERS[named].flipped_actions if named in ADAPTERS else ()


class Stopwatch:
    """Time spent on training, over all trainers."""

    def __init__(self, before: float) -> None:
        self._began = time.monotonic() - before

    def __call__(self) -> float:
        return time.monotonic() - self._began

    @contextmanager
    def paused(self) -> Iterator[None]:
        now = time.monotonic()
        try:
            yield
        finally:
            self._began += time.monotonic() - now


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C (or SIGTERM) sets instead of breaking into a step; the second one breaks."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def ask(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
