"""The order of jobs, retries, failures, and results.csv."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.small_sweeps import InlinePool, gcb, sweep_args
from rich.console import Console

from gcb.data import CollectConfig, open_dataset
from gcb.errors import GCBError
from gcb.report.rows import read_rows
from gcb.runs.run_dir import Run
from gcb.sweep.dashboard import Dashboard
from gcb.sweep.grid import Grid
from gcb.sweep.jobs import DataJob
from gcb.sweep.results import run_rows
from gcb.sweep.scheduler import Plan, Scheduler
from gcb.sweep.sweep_dir import SweepDir
from gcb.training.loggers import read_metrics
from gcb.utils.files import directory_lock, write_json
from gcb.utils.text_files import read_json

pytestmark = pytest.mark.usefixtures("inline")

RUN = "slide-goal_agnostic_bc-s0"
TINY = {"steps": 4, "batch_size": 4, "checkpoint_every": 2, "device": "cpu", "method_config": {"size": 8}}


def tiny_grid(**changes: object) -> Grid:
    values = {
        "methods": ("goal_agnostic_bc",),
        "envs": ("slide",),
        "preset": "smoke",
        "episodes": 4,
        "overrides": TINY,
        **changes,
    }
    return Grid(**values)  # pyright: ignore[reportArgumentType]


def run_sweep(grid: Grid, out: Path, data_root: Path, deaths: dict[str, int] | None = None) -> tuple:
    """Return the failures, the jobs that were started, and the output."""
    sweep_dir, output = SweepDir(out), io.StringIO()
    plan = Plan(grid.datasets(data_root), grid.jobs(sweep_dir.runs, data_root))
    pool = InlinePool(sweep_dir)
    pool.deaths = deaths or {}
    with sweep_dir.lock():
        failures = Scheduler(plan, sweep_dir, pool, Dashboard(Console(width=300, file=output)), retries=2).run()
    return failures, pool.started, output.getvalue()


def test_a_dataset_is_collected_before_its_runs(tmp_path: Path) -> None:
    grid = tiny_grid(envs=("drawer",), transitions=40, image_size=32, episodes=1, modes=("goal",))
    failures, started, output = run_sweep(grid, tmp_path / "out", tmp_path / "data")
    assert not failures
    assert started == [("data-drawer", 2), ("drawer-goal_agnostic_bc-s0", 1)]
    assert open_dataset(tmp_path / "data" / "drawer").transitions == 40
    assert "2 of 2 done" in output
    assert [row.task for row in read_rows([tmp_path / "out" / "results.csv"])] == ["all", "drawer"]


def test_a_failed_run_is_reported_and_does_not_stop_the_others(tmp_path: Path, data_root: Path, capsys) -> None:
    out = tmp_path / "out"
    assert gcb(*sweep_args(out, data_root, "--vary", "max_loss=1e-9,1e6")) == 1
    assert "1 of 2 runs are done" in capsys.readouterr().out
    reason = (out / "failed" / "slide-goal_agnostic_bc-max_loss=1e-9-s0.txt").read_text()
    assert "max_loss" in reason
    assert {row.variant for row in read_rows([out / "results.csv"])} == {"max_loss=1e6"}


def test_runs_without_a_dataset_fail_with_the_reason(tmp_path: Path, data_root: Path) -> None:
    failures, started, _ = run_sweep(tiny_grid(envs=("nowhere", "slide")), tmp_path / "out", data_root)
    assert started == [(RUN, 1)]
    assert failures.keys() == {"data-nowhere", "nowhere-goal_agnostic_bc-s0"}
    assert f"there is no dataset {data_root / 'nowhere'}" in failures["nowhere-goal_agnostic_bc-s0"]
    reason = (tmp_path / "out" / "failed" / "nowhere-goal_agnostic_bc-s0.txt").read_text()
    assert reason.strip() == failures["nowhere-goal_agnostic_bc-s0"]


@pytest.mark.parametrize(("deaths", "starts", "fails"), [(2, 3, False), (3, 3, True)])
def test_a_job_whose_process_dies_is_retried_twice(tmp_path, data_root, deaths, starts, fails) -> None:
    failures, started, output = run_sweep(tiny_grid(modes=("goal",)), tmp_path / "out", data_root, {RUN: deaths})
    assert len(started) == starts
    assert bool(failures) == fails
    assert output.count("is retried: out of memory") == 2


def test_runs_are_evaluated_during_training(tmp_path: Path, data_root: Path) -> None:
    run_sweep(tiny_grid(eval_every=2, eval_episodes=1), tmp_path / "out", data_root)
    rows = read_metrics(tmp_path / "out" / "runs" / RUN)
    assert [row["step"] for row in rows if "eval_goal" in row] == [2, 4]
    with pytest.raises(GCBError, match="goal_agnostic_bc: eval_every is 3; accepted: a multiple of 2"):
        tiny_grid(eval_every=3).jobs(tmp_path, data_root)


def test_a_run_with_other_settings_is_not_touched(tmp_path: Path, data_root: Path) -> None:
    out = tmp_path / "out"
    run_sweep(tiny_grid(), out, data_root)
    content = (out / "results.csv").read_bytes()
    failures, started, _ = run_sweep(tiny_grid(overrides={**TINY, "steps": 6}), out, data_root)
    assert started == []
    assert "holds another run: steps is 4, not 6" in failures[RUN]
    assert (out / "results.csv").read_bytes() == content
    assert run_sweep(tiny_grid(), out, data_root)[0] == {}
    assert not (out / "failed" / f"{RUN}.txt").exists()


def test_more_episodes_are_a_new_evaluation_of_the_same_agent(tmp_path: Path, data_root: Path) -> None:
    out = tmp_path / "out"
    run_sweep(tiny_grid(modes=("goal",)), out, data_root)
    checkpoint = Run(out / "runs" / RUN).checkpoint()
    run_sweep(tiny_grid(modes=("goal", "loose"), episodes=6), out, data_root)
    rows = [row for row in read_rows([out / "results.csv"]) if row.task == "all"]
    assert [(row.mode, row.episodes) for row in rows] == [("goal", 6), ("loose", 6)]
    assert Run(out / "runs" / RUN).checkpoint() == checkpoint
    assert run_sweep(tiny_grid(episodes=5, modes=("loose",)), out, data_root)[1] == []
    assert run_sweep(tiny_grid(modes=("goal",), eval_seed=1), out, data_root)[1] == [(RUN, 1)]
    rows = [row for row in read_rows([out / "results.csv"]) if row.task == "all"]
    assert [(row.mode, row.eval_seed) for row in rows] == [("goal", 1), ("loose", 0)]


def test_results_keep_the_runs_of_earlier_grids(tmp_path: Path, data_root: Path) -> None:
    out = tmp_path / "out"
    run_sweep(tiny_grid(modes=("goal",)), out, data_root)
    run_sweep(tiny_grid(modes=("goal",), seeds=(1,)), out, data_root)
    assert {row.seed for row in read_rows([out / "results.csv"])} == {0, 1}
    (out / "runs" / RUN / "config.yaml").write_text("method: !!python/object/apply:os.system ['touch owned']")
    _, _, output = run_sweep(tiny_grid(modes=("goal",), seeds=(1,)), out, data_root)
    assert f"{RUN} is not in results.csv" in output
    assert {row.seed for row in read_rows([out / "results.csv"])} == {1}
    assert not Path("owned").exists()


def test_results_have_the_columns_of_the_grid(tmp_path: Path, data_root: Path) -> None:
    out = tmp_path / "out"
    run_sweep(tiny_grid(methods=("gcbc",), video=(True,), seeds=(3,)), out, data_root)
    rows = [row for row in read_rows([out / "results.csv"]) if row.task == "all"]
    # gcbc does not support analogies.
    assert [(row.mode, row.episodes) for row in rows] == [("free", 0), ("goal", 4), ("strict", 0)]
    assert {(row.env, row.video, row.method, row.variant, row.seed) for row in rows} == {("slide", True, "gcbc", "", 3)}


def test_results_have_the_successes_by_every_criterion(tmp_path: Path, data_root: Path) -> None:
    out = tmp_path / "out"
    run_sweep(tiny_grid(modes=("goal",)), out, data_root)
    (row,) = [row for row in read_rows([out / "results.csv"]) if row.task == "all"]
    path = out / "runs" / RUN / "eval.json"
    results = read_json(path)
    outcomes = results["goal"]["outcomes"]  # task, reached_at, at_end, declared_at, declared
    assert row.successes == sum(outcome[1] is not None for outcome in outcomes)
    assert (row.successes_at_end, row.successes_declared) == tuple(
        sum(outcome[place] for outcome in outcomes) for place in (2, 4)
    )
    del results["goal"]["all"]["declared"]  # as in an older evaluation
    write_json(path, results)
    (older,) = [row for row in run_rows(path.parent) if row.task == "all"]
    assert older == replace(row, successes_declared=None)


def test_a_copied_run_is_not_a_result_of_its_new_name(tmp_path: Path, data_root: Path) -> None:
    out = tmp_path / "out"
    run_sweep(tiny_grid(modes=("goal",)), out, data_root)
    (out / "runs" / RUN).rename(out / "runs" / "slide-gcb-s0")
    _, _, output = run_sweep(tiny_grid(modes=("goal",), seeds=(1,)), out, data_root)
    assert "slide-gcb-s0 is not in results.csv" in output
    assert {row.seed for row in read_rows([out / "results.csv"])} == {1}


def test_a_second_sweep_in_one_directory_is_refused(tmp_path: Path, data_root: Path, capsys) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with directory_lock(out):
        assert gcb(*sweep_args(out, data_root)) == 2
    assert f"{out} is in use" in capsys.readouterr().err


def test_a_directory_with_other_files_is_refused(tmp_path: Path, data_root: Path, capsys) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").touch()
    assert gcb(*sweep_args(tmp_path / "out", data_root)) == 2
    assert "holds other files (thesis.tex)" in capsys.readouterr().err


def test_an_existing_dataset_must_match_the_grid(tmp_path: Path, data_root: Path) -> None:
    assert DataJob(data_root / "slide", None).state().status == "done"
    config = CollectConfig("gcb/Drawer-v0", 50_000, options={"image_size": 64, "video": "builtin"})
    state = DataJob(data_root / "slide", config).state()
    assert state.status == "invalid"
    for part in (
        "env is 'helpers.slide_env:SlideAnyAction-v0', not 'gcb/Drawer-v0'",
        "video is False, not True",
        "image_size is 32, not 64",
        ", not 50000",
    ):
        assert part in state.reason


def test_a_dry_run_lists_the_jobs_and_writes_nothing(tmp_path: Path, data_root: Path, capsys) -> None:
    out = tmp_path / "out"
    assert gcb(*sweep_args(out, data_root, "--dry-run")) == 0
    assert "1 run on 1 dataset: 1 done, 1 new; 4 steps, 12 episodes" in " ".join(capsys.readouterr().out.split())
    assert not out.exists()
    assert gcb(*sweep_args(out, data_root)) == 0
    capsys.readouterr()
    for episodes, left in (("4", "0 steps, 0 episodes"), ("6", "0 steps, 18 episodes, about 0.0 hours of one core")):
        assert gcb(*sweep_args(out, data_root, "--dry-run", "--episodes", episodes)) == 0
        assert left in " ".join(capsys.readouterr().out.split())


def test_the_time_left_follows_from_the_finished_runs(tmp_path: Path, data_root: Path) -> None:
    sweep_dir = SweepDir(tmp_path / "out")

    def plan(**changes: object) -> Plan:
        grid = tiny_grid(**changes)
        return Plan(grid.datasets(data_root), grid.jobs(sweep_dir.runs, data_root))

    assert plan().seconds_left() is None
    run_sweep(tiny_grid(), tmp_path / "out", data_root)
    assert plan().seconds_left() == 0
    path = sweep_dir.runs / RUN / "checkpoint.json"
    write_json(path, read_json(path) | {"seconds": 8.0})  # 2 s for each of its 4 steps
    longer = plan(seeds=(1, 2), overrides={**TINY, "steps": 40})
    assert longer.seconds_left() == pytest.approx(2 * 40 * 2 / 0.8)
