"""The search for partners in training: when, by what, and that the table survives a resumed run."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.tiny import tiny_config, tiny_dataset

from gcb.data import Dataset
from gcb.data.partners import Partners
from gcb.runs.dataset_record import record_dataset
from gcb.runs.run_dir import Run, open_or_create
from gcb.training.partner_search import STAGES
from gcb.training.trainer import Trainer

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def data() -> Dataset:
    return tiny_dataset(episodes=12)


def trainer(data: Dataset, steps: int = 40, **partners: Any) -> Trainer:
    goals = {"p_original": 1.0, "p_future": 0.0, "p_next_frame": 0.0}
    changes = {"steps": steps, "goals": goals, "method_config": {"partners": partners}}
    return Trainer(tiny_config("gcb", **changes), data, CPU)


def due_steps(made: Trainer, steps: int) -> list[int]:
    due = []
    for step in range(steps):
        if made.partner_search.is_due(step):
            made.sampler.partners = made.partner_search(step)
            due.append(step)
    return due


def test_the_metric_is_searched_again_and_again_and_pixels_once(data: Dataset) -> None:
    assert due_steps(trainer(data, start=0.25, every=8), 40) == [10, 18, 26, 34]
    assert due_steps(trainer(data, source="pixels", start=0.25, every=8), 40) == [10]
    assert due_steps(trainer(data, source="random", start=0.0), 40) == [0]
    assert due_steps(trainer(data, source="none"), 40) == []


def test_without_own_goals_there_are_no_partners(data: Dataset) -> None:
    config = tiny_config("gcb", goals={"p_original": 0.0, "p_future": 1.0, "p_next_frame": 0.0})
    assert not Trainer(config, data, CPU).partner_search.is_due(39)


def test_partners_are_nearest_by_the_methods_embedding(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedding is of four states along the episode; here it is the mean brightness of the goal's left half."""
    made = trainer(data, neighbors=1, max_hops=1)
    calls = []

    def phi(state: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
        calls.append(len(state))
        return goal[:, :, :16].float().mean((1, 2, 3))[:, None]

    monkeypatch.setattr(made.learner.method, "phi", phi)
    partners = made.partner_search(0)
    assert len(calls) == len(STAGES)
    goals = made.sampler.goals_of(partners.episodes)[:, :, :16].mean((1, 2, 3))
    distance = np.abs(goals[:, None] - goals[None])
    np.fill_diagonal(distance, np.inf)
    nearest = distance.argmin(1)
    mutual = nearest[nearest] == np.arange(len(nearest))
    np.testing.assert_array_equal(partners.table[mutual, 0], partners.episodes[nearest[mutual]])


def test_the_table_survives_a_resumed_run(data: Dataset, tmp_path: Path) -> None:
    first = trainer(data, start=0.0, every=1000)
    open_or_create(tmp_path, first.config, record_dataset(data))
    first.resume(Run(tmp_path))
    first.learner.step(first.next_batch(), 0)
    first.step = 1
    first._save_checkpoint([], finished=False)
    second = trainer(data, start=0.0, every=1000)
    assert second.resume(Run(tmp_path)) == 1
    kept, made = first.sampler.partners, second.sampler.partners
    assert isinstance(kept, Partners)
    assert isinstance(made, Partners)
    np.testing.assert_array_equal(kept.table, made.table)
    np.testing.assert_array_equal(kept.episodes, made.episodes)
    same, resumed = first.next_batch(), second.next_batch()
    assert torch.equal(same.state, resumed.state)
    assert same.has_partner is not None
    assert same.has_partner.any()
