"""More steps on a finished run: what goes on, what the learning rate does, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.evaluated_runs import result
from helpers.tiny import tiny_config, tiny_dataset

from gcb.cli.train import describe_extension
from gcb.data import Dataset
from gcb.errors import GCBError
from gcb.report.run_groups import group_runs, read_runs
from gcb.runs.config import TrainConfig
from gcb.runs.run_dir import Run
from gcb.training.learner import lr_multiplier
from gcb.training.loggers import read_metrics
from gcb.training.trainer import train
from gcb.utils.files import write_json

SCHEDULE = {"lr_schedule": "cosine", "log_every": 1, "checkpoint_every": 2}


def config(steps: int, **changes: Any) -> TrainConfig[Any]:
    return tiny_config("gcbc", steps=steps, **{**SCHEDULE, **changes})


@pytest.fixture(scope="module")
def data() -> Dataset:
    return tiny_dataset()


def stop_at(last: int):
    def on_checkpoint(agent: object, step: int) -> dict[str, float]:
        if step == last:
            raise KeyboardInterrupt
        return {}

    return on_checkpoint


def test_a_finished_run_goes_on_with_the_longer_schedule(tmp_path: Path, data: Dataset) -> None:
    whole, interrupted = tmp_path / "whole", tmp_path / "interrupted"
    for path in (whole, interrupted):
        train(config(4), data, path, quiet=True)
    before = read_metrics(whole)
    extended = train(config(8), data, whole, quiet=True, extend=True)
    assert (extended.start_step, extended.step) == (4, 8)
    assert train(config(8), data, whole, quiet=True, extend=True).start_step == 8  # finished
    rows = read_metrics(whole)
    assert rows[: len(before)] == before
    expected = [lr_multiplier(config(4 if step < 4 else 8), step) for step in range(8)]
    assert [row["lr_multiplier"] for row in rows] == pytest.approx(expected)
    assert expected[3] < 0.15 < 0.5 <= expected[4]
    assert Run(whole).config == config(8)
    assert Run(whole).extended_from == (4,)
    # An extension that is interrupted resumes bit for bit, like any run.
    with pytest.raises(KeyboardInterrupt):
        train(config(8), data, interrupted, quiet=True, extend=True, on_checkpoint=stop_at(6))
    assert train(config(8), data, interrupted, quiet=True, extend=True).start_step == 6
    first, second = (Run(path).weights()[0] for path in (whole, interrupted))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_an_extended_run_is_not_taken_for_another_one(tmp_path: Path, data: Dataset) -> None:
    train(config(2), data, tmp_path / "extended", quiet=True)
    train(config(4), data, tmp_path / "extended", quiet=True, extend=True)
    train(config(4), data, tmp_path / "plain", quiet=True)
    with pytest.raises(GCBError, match="holds another run: it was extended, after 2 steps"):
        train(config(4), data, tmp_path / "extended", quiet=True)  # as a sweep does
    for name in ("extended", "plain"):
        write_json(tmp_path / name / "eval.json", {"goal": result("10")})
    groups = group_runs(read_runs([tmp_path / "extended", tmp_path / "plain"]))
    assert [group.label for group in groups] == ["gcbc, extended_from 2", "gcbc, extended_from None"]


@pytest.mark.parametrize(
    ("started", "asked", "extend", "message"),
    [
        (config(4), config(8), False, "steps is 4, not 8"),
        (config(4), config(2), True, "steps is 4, not 2"),
        (config(4), config(8, seed=1), True, "seed is 0, not 1"),
        (config(4, minutes=1e-9), config(8, minutes=1e-9), True, "steps is 4, not 8"),
    ],
)
def test_anything_else_is_refused_and_changes_nothing(
    tmp_path: Path, data: Dataset, started: TrainConfig[Any], asked: TrainConfig[Any], extend: bool, message: str
) -> None:
    train(started, data, tmp_path / "run", quiet=True)
    content = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with pytest.raises(GCBError, match=message):
        train(asked, data, tmp_path / "run", quiet=True, extend=extend)
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == content


def test_other_data_are_refused(tmp_path: Path, data: Dataset) -> None:
    train(config(2), data, tmp_path / "run", quiet=True)
    with pytest.raises(GCBError, match="the dataset's fingerprint"):
        train(config(4), tiny_dataset(seed=1), tmp_path / "run", quiet=True, extend=True)
    assert Run(tmp_path / "run").config == config(2)


def test_the_command_says_what_happens_to_the_learning_rate(tmp_path: Path, data: Dataset) -> None:
    train(config(4), data, tmp_path / "run", quiet=True)
    text = describe_extension(tmp_path / "run", config(8))
    assert text is not None
    assert "was finished after 4 steps and goes on to 8 steps" in text
    assert (
        "cosine schedule of 8 steps from here on: it ended at 15% of its maximum, goes on at 50% and ends at 0%" in text
    )
    assert describe_extension(tmp_path / "run", config(4)) is None
    assert describe_extension(tmp_path / "nowhere", config(4)) is None
