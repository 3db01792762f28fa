"""What each process of tests/test_team.py does: `torchrun … team_member.py FOLDER`."""

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
    # Without the policy's gradient the passage from φ to the policy is in no loss at all.
    "left out": tiny_config(steps=3, method_config={"rl_gradient": "none"}),
    "gcbc": tiny_config("gcbc", steps=3, max_grad_norm=1.0),
}
Gradients = dict[str, torch.Tensor]


def first_gradients(config: TrainConfig[Any], data: Dataset, out: Path) -> Gradients:
    """Train; return the gradients of the first step."""
    real, gradients = Learner.step, {}

    def step(self: Learner, batch: Batch, number: int) -> Any:
        figures = real(self, batch, number)
        if number == 0:
            named = self.modules.named_parameters()
            gradients.update({name: one.grad.clone() for name, one in named if one.grad is not None})
        return figures

    Learner.step = step
    try:
        train(config, data, out, quiet=True)
    finally:
        Learner.step = real
    return gradients


def stopped_and_gone_on(data: Dataset, folder: Path, rank: int) -> None:
    """The second process is asked to stop in its seventh step; both do, and go on when called again."""
    real = Learner.step

    def step(self: Learner, batch: Batch, number: int) -> Any:
        if number == 6 and rank == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return real(self, batch, number)

    Learner.step = step
    try:
        train(CONFIGS["gcb"], data, folder / "stopped", quiet=True)
    except KeyboardInterrupt:
        (folder / f"stopped-{rank}").touch()
    Learner.step = real
    train(CONFIGS["gcb"], data, folder / "stopped", quiet=True)


def refused(data: Dataset, folder: Path, rank: int) -> None:
    """What only the first process looks at is an error in all."""
    try:
        train(tiny_config("gcbc", seed=5), data, folder / "gcbc", quiet=True)
    except GCBError as error:
        (folder / f"refused-{rank}").write_text(str(error))


def main(folder: Path) -> None:
    os.fsync = lambda fd: None
    rank, data = int(os.environ["RANK"]), tiny_dataset()
    for name, config in CONFIGS.items():
        torch.save(first_gradients(config, data, folder / name), folder / f"{name}-{rank}.pt")
    stopped_and_gone_on(data, folder, rank)
    refused(data, folder, rank)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
