"""The program that each process of tests/training/test_distributed.py runs: `torchrun … distributed_member.py DIR`."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch

from gcb.data import Batch, Dataset
from gcb.errors import GCBError
from gcb.runs.config import TrainConfig
from gcb.training.learner import Learner
from gcb.training.trainer import train
from helpers.tiny import tiny_config, tiny_dataset

CONFIGS: dict[str, TrainConfig[Any]] = {
    "gcb": tiny_config(lr_schedule="cosine", warmup_steps=2),
    # Without the policy's gradient no loss depends on ψ: L_ψ trains a linear map on top of it.
    "unused parameters": tiny_config(steps=3, method_config={"rl_gradient": "none"}),
    "gcbc": tiny_config("gcbc", steps=3, max_grad_norm=1.0),
}
Gradients = dict[str, torch.Tensor]


def first_gradients(config: TrainConfig[Any], data: Dataset, out: Path) -> Gradients:
    """Train and return the gradients of the first step."""
    real, gradients = Learner.step, {}

    def recording_step(self: Learner, batch: Batch, step: int) -> Any:
        metrics = real(self, batch, step)
        if step == 0:
            named = self.modules.named_parameters()
            gradients.update({name: value.grad.clone() for name, value in named if value.grad is not None})
        return metrics

    Learner.step = recording_step
    try:
        train(config, data, out, quiet=True)
    finally:
        Learner.step = real
    return gradients


def stop_and_resume(data: Dataset, path: Path, rank: int) -> None:
    """Send SIGTERM to the second process in its seventh step: both stop, and resume when called again."""
    real = Learner.step

    def interrupted_step(self: Learner, batch: Batch, step: int) -> Any:
        if step == 6 and rank == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return real(self, batch, step)

    Learner.step = interrupted_step
    try:
        train(CONFIGS["gcb"], data, path / "stopped", quiet=True)
    except KeyboardInterrupt:
        (path / f"stopped-{rank}").touch()
    Learner.step = real
    train(CONFIGS["gcb"], data, path / "stopped", quiet=True)


def train_with_another_seed(data: Dataset, path: Path, rank: int) -> None:
    """Only the main process looks at the run directory; its error must be raised in all."""
    try:
        train(tiny_config("gcbc", seed=5), data, path / "gcbc", quiet=True)
    except GCBError as error:
        (path / f"refused-{rank}").write_text(str(error))


def main(path: Path) -> None:
    os.fsync = lambda fd: None
    rank, data = int(os.environ["RANK"]), tiny_dataset()
    for name, config in CONFIGS.items():
        torch.save(first_gradients(config, data, path / name), path / f"{name}-{rank}.pt")
    stop_and_resume(data, path, rank)
    train_with_another_seed(data, path, rank)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
