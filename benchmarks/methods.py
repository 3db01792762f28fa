"""A training step of every method against GCB's, with the same encoder."""

import torch

from benchmarks.rows import Row, cpu_medians
from benchmarks.training import random_images
from gcb.methods import METHODS
from gcb.models.networks import parameter_count
from gcb.runs.config import make_config
from gcb.training.trainer import Trainer

ROUNDS = 7
LIMIT = 2.5


def run() -> list[Row]:
    """Measure steps with sampling and augmentation, in the preset laptop with the same batch and encoder for all."""
    data = random_images()
    trainers = {
        name: Trainer(make_config(name, "laptop", {"device": "cpu"}), data, torch.device("cpu")) for name in METHODS
    }
    jobs = [lambda trainer=trainer: trainer.learner.step(trainer.next_batch(), 0) for trainer in trainers.values()]
    times = dict(zip(trainers, cpu_medians(*jobs, rounds=ROUNDS), strict=True))
    return [
        Row(
            f"{name}: training step / gcb's",
            times[name] / times["gcb"],
            LIMIT if name != "gcb" else None,
            f"{1e3 * times[name]:.0f} ms on one core, {parameter_count(trainer.learner.method) / 1e6:.2f} M parameters",
        )
        for name, trainer in trainers.items()
    ]
