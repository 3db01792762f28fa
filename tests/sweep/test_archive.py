"""The archive of a sweep's records, which continues as a sweep."""

from pathlib import Path

import pytest
from helpers.small_sweeps import gcb, sweep_args

from gcb.report.rows import read_rows
from gcb.training.loggers import read_metrics
from scripts.archive_runs import archive


@pytest.mark.usefixtures("inline")
def test_an_archived_sweep_has_no_weights_and_trains_only_what_is_missing(tmp_path: Path, data_root: Path) -> None:
    sweep, kept = tmp_path / "sweep", tmp_path / "kept"
    evaluated = ("--eval-every", "2", "--eval-episodes", "2")
    assert gcb(*sweep_args(sweep, data_root, *evaluated, overrides=("log_every=1",))) == 0
    assert archive(sweep, kept) == []
    run = kept / "runs" / "slide-goal_agnostic_bc-s0"
    names = ["checkpoint.json", "config.yaml", "eval.json", "metrics.jsonl", "run.json"]
    assert sorted(path.name for path in run.iterdir()) == names
    metrics = [read_metrics(path / "runs" / run.name) for path in (kept, sweep)]
    assert metrics[0] == [row for row in metrics[1] if "eval_goal" in row or row is metrics[1][-1]]
    assert [row["step"] for row in metrics[0]] == [2, 4]
    assert str(tmp_path) not in (run / "run.json").read_text()
    assert (kept / "results.csv").read_bytes() == (sweep / "results.csv").read_bytes()

    assert gcb(*sweep_args(kept, data_root, "--seeds", "2", overrides=("log_every=1",))) == 0
    assert not list(run.glob("weights-*"))
    assert {row.seed for row in read_rows([kept / "results.csv"])} == {0, 1}


@pytest.mark.usefixtures("inline")
def test_runs_without_an_evaluation_are_left_out(tmp_path: Path, data_root: Path) -> None:
    sweep = tmp_path / "sweep"
    assert gcb(*sweep_args(sweep, data_root)) == 0
    (sweep / "runs" / "slide-goal_agnostic_bc-s0" / "eval.json").unlink()
    assert archive(sweep, tmp_path / "kept") == ["slide-goal_agnostic_bc-s0"]
