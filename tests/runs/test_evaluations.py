"""eval.json: which evaluation is shown, what is kept, and files of earlier versions."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.evaluated_runs import result, write_run

from gcb.errors import GCBError
from gcb.runs.evaluations import best_results, find_evaluation, read_evaluations, read_results, write_evaluation
from gcb.runs.run_dir import EVAL, Run


def entry(successes: str, mode: str = "goal", step: int = 12, **settings: Any) -> dict[str, Any]:
    return {**result(successes, mode, **settings), "mode": mode, "step": step}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run whose last checkpoint is of step 12."""
    run = Run(write_run(tmp_path / "run"))
    file = {"name": "weights", "bytes": 0, "sha256": ""}
    checkpoint = {"method": "gcb", "step": 12, "seconds": 1.0, "finished": True, "weights": file}
    (run.path / "checkpoint.json").write_text(json.dumps(checkpoint))
    return run


@pytest.mark.parametrize(
    "worse",
    [
        entry("1"),
        entry("0" * 9, step=6),
        entry("0" * 9, seed=1000),
        entry("0" * 9, eval_temperature=0.0),
        entry("0" * 9, env="button_drawer"),
    ],
    ids=["fewer episodes", "an earlier policy", "another seed", "another temperature", "another environment"],
)
@pytest.mark.parametrize("last", [True, False])
def test_the_largest_evaluation_of_the_final_policy_at_the_reported_seed_is_shown(
    run: Run, worse: dict[str, Any], last: bool
) -> None:
    best = entry("1101")
    for evaluation in (best, worse) if last else (worse, best):
        write_evaluation(run, evaluation)
    shown = read_results(run.path)["goal"]
    assert shown["outcomes"] == best["outcomes"]
    kept = read_evaluations(run.path)
    assert len(kept) == (1 if worse["outcomes"] == best["outcomes"][:1] else 2)
    assert {evaluation["mode"] for evaluation in kept} == {"goal"}
    assert all("date" in evaluation for evaluation in kept)
    assert (find_evaluation(run.path, worse) or {})["episodes"] == max(
        len(worse["outcomes"]), 4 if len(kept) == 1 else 0
    )


def test_a_sweep_with_another_seed_takes_the_evaluations_of_that_seed(run: Run) -> None:
    for evaluation in (entry("11"), entry("1010", seed=5), entry("0", mode="strict")):
        write_evaluation(run, evaluation)
    assert best_results(run)["goal"]["seed"] == 0
    assert best_results(run, 5)["goal"]["seed"] == 5
    assert best_results(run, 5)["strict"]["seed"] == 0  # there is no other


def test_files_of_earlier_versions_are_read_and_kept(run: Run) -> None:
    older = {"goal": {**result("110"), "gcb": "0.1.0"}, "strict": result("01", "strict")}
    (run.path / EVAL).write_text(json.dumps(older))
    assert read_results(run.path) == older
    assert [evaluation["mode"] for evaluation in read_evaluations(run.path)] == ["goal", "strict"]
    write_evaluation(run, entry("11"))
    assert read_results(run.path) == older  # the new one is smaller
    write_evaluation(run, entry("1111"))
    assert read_results(run.path)["goal"]["episodes"] == 4
    history = json.loads((run.path / EVAL).read_bytes())["history"]
    assert history == [{**older["goal"], "mode": "goal"}]


@pytest.mark.parametrize("history", [{}, [1], [{"all": {}, "tasks": {}}]])
def test_a_damaged_history_is_reported(run: Run, history: Any) -> None:
    (run.path / EVAL).write_text(json.dumps({"goal": result("1"), "history": history}))
    for read in (read_results, read_evaluations):
        with pytest.raises(GCBError, match=r"eval\.json is damaged: history"):
            read(run.path)
