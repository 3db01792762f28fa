"""What runs when, what is tried again, what fails, and what is told of it."""

from pathlib import Path

import pytest
from helpers.small_sweeps import InlinePool, gcb, words
from rich.console import Console

from gcb.data import CollectConfig, open_dataset
from gcb.report.rows import read_rows
from gcb.runs.run_dir import Run
from gcb.sweep.board import Board
from gcb.sweep.conduct import Conductor, Plan
from gcb.sweep.data_job import DataJob
from gcb.sweep.folder import Folder
from gcb.sweep.grid import Grid
from gcb.utils.files import directory_lock

pytestmark = pytest.mark.usefixtures("inline")

RUN = "slide-blind-s0"
QUICK = {"steps": 4, "batch_size": 4, "checkpoint_every": 2, "device": "cpu", "method_config": {"size": 8}}


def grid(**changes: object) -> Grid:
    values = {
        "methods": ("goal_agnostic_bc",),
        "envs": ("slide",),
        "preset": "smoke",
        "episodes": 4,
        "set": QUICK,
        **changes,
    }
    return Grid(**values)  # pyright: ignore[reportArgumentType]


def conducted(grid: Grid, out: Path, data_root: Path, deaths: dict[str, int] | None = None) -> tuple:
    """The failures, what was started, and what was said."""
    folder = Folder(out)
    plan = Plan(grid.datasets(data_root), grid.runs(out, data_root))
    pool, console = InlinePool(folder), Console(record=True, width=300, file=open("/dev/null", "w"))  # noqa: SIM115
    pool.deaths = deaths or {}
    with folder.held():
        failed = Conductor(plan, folder, pool, Board(console, folder, plan.jobs, plan.states), retries=2).conduct()
    return failed, pool.started, console.export_text()


def test_a_dataset_is_collected_before_its_runs(tmp_path: Path) -> None:
    small = grid(envs=("drawer",), transitions=40, image_size=32, episodes=1, modes=("goal",))
    failed, started, said = conducted(small, tmp_path / "out", tmp_path / "data")
    assert not failed
    assert started == [("data-drawer", 2), ("drawer-blind-s0", 1)]
    assert open_dataset(tmp_path / "data" / "drawer").transitions == 40
    assert "2 of 2 done" in said
    assert [row.task for row in read_rows([tmp_path / "out" / "results.csv"])] == ["all", "drawer"]


def test_a_failed_run_is_told_and_does_not_stop_the_others(tmp_path: Path, data_root: Path, capsys) -> None:
    out = tmp_path / "out"
    asked = words(out, data_root, "--vary", "max_loss=1e-9,1e6")
    assert gcb(*asked) == 1
    assert "1 of 2 runs are done" in capsys.readouterr().out
    reason = (out / "failed" / "slide-blind-max_loss=1e-9-s0.txt").read_text()
    assert "max_loss" in reason
    assert {row.variant for row in read_rows([out / "results.csv"])} == {"max_loss=1e6"}


def test_what_a_missing_dataset_stops_is_told_with_its_reason(tmp_path: Path, data_root: Path) -> None:
    failed, started, _ = conducted(grid(envs=("nowhere", "slide")), tmp_path / "out", data_root)
    assert started == [(RUN, 1)]
    assert failed.keys() == {"data-nowhere", "nowhere-blind-s0"}
    assert "its dataset is missing: there is no dataset" in failed["nowhere-blind-s0"]
    assert (tmp_path / "out" / "failed" / "nowhere-blind-s0.txt").read_text().startswith("its dataset is missing")


@pytest.mark.parametrize(("deaths", "starts", "fails"), [(2, 3, False), (3, 3, True)])
def test_a_job_whose_process_dies_is_started_again_twice(tmp_path, data_root, deaths, starts, fails) -> None:
    failed, started, said = conducted(grid(modes=("goal",)), tmp_path / "out", data_root, {RUN: deaths})
    assert len(started) == starts
    assert bool(failed) == fails
    assert said.count("goes on: it was struck by lightning") == 2


def test_a_folder_with_other_settings_is_left_alone(tmp_path: Path, data_root: Path) -> None:
    out = tmp_path / "out"
    conducted(grid(), out, data_root)
    content = (out / "results.csv").read_bytes()
    failed, started, _ = conducted(grid(set={**QUICK, "steps": 6}), out, data_root)
    assert started == []
    assert "holds another run: steps is 4 there and 6 here" in failed[RUN]
    assert (out / "results.csv").read_bytes() == content
    assert conducted(grid(), out, data_root)[0] == {}
    assert not (out / "failed" / f"{RUN}.txt").exists()


def test_more_episodes_are_a_new_evaluation_of_the_same_agent(tmp_path: Path, data_root: Path) -> None:
    out = tmp_path / "out"
    conducted(grid(modes=("goal",)), out, data_root)
    seconds = Run(out / "runs" / RUN).checkpoint()
    conducted(grid(modes=("goal", "loose"), episodes=6), out, data_root)
    rows = [row for row in read_rows([out / "results.csv"]) if row.task == "all"]
    assert [(row.mode, row.episodes) for row in rows] == [("goal", 6), ("loose", 6)]
    assert Run(out / "runs" / RUN).checkpoint() == seconds
    assert conducted(grid(episodes=5, modes=("loose",)), out, data_root)[1] == []
    assert conducted(grid(modes=("goal",), eval_seed=1), out, data_root)[1] == [(RUN, 1)]


def test_results_keep_the_runs_of_earlier_grids(tmp_path: Path, data_root: Path) -> None:
    out = tmp_path / "out"
    conducted(grid(modes=("goal",)), out, data_root)
    conducted(grid(modes=("goal",), seeds=(1,)), out, data_root)
    assert {row.seed for row in read_rows([out / "results.csv"])} == {0, 1}
    (out / "jobs" / f"{RUN}.yaml").write_text("kind: !!python/object/apply:os.system ['touch owned']")
    _, _, said = conducted(grid(modes=("goal",), seeds=(1,)), out, data_root)
    assert f"{RUN} is not in results.csv" in said
    assert {row.seed for row in read_rows([out / "results.csv"])} == {1}
    assert not Path("owned").exists()


def test_a_second_sweep_on_one_folder_is_told_so(tmp_path: Path, data_root: Path, capsys) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with directory_lock(out):
        assert gcb(*words(out, data_root)) == 2
    assert f"{out} is in use" in capsys.readouterr().err


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path, data_root: Path, capsys) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").touch()
    assert gcb(*words(tmp_path / "out", data_root)) == 2
    assert "holds other files (thesis.tex)" in capsys.readouterr().err


def test_an_existing_dataset_must_be_what_is_asked_for(tmp_path: Path, data_root: Path) -> None:
    assert DataJob(data_root / "slide", None).state().word == "done"
    config = CollectConfig("gcb/Drawer-v0", 50_000, options={"image_size": 64, "video": "builtin"})
    state = DataJob(data_root / "slide", config).state()
    assert state.word == "impossible"
    for part in (
        "env is 'helpers.slide_env:Slide-v0' there and 'gcb/Drawer-v0' here",
        "video is False there and True here",
        "image size is 32 there and 64 here",
        "and 50000 here",
    ):
        assert part in state.reason


def test_a_dry_run_tells_what_is_done_and_touches_nothing(tmp_path: Path, data_root: Path, capsys) -> None:
    out = tmp_path / "out"
    assert gcb(*words(out, data_root, "--dry-run")) == 0
    assert "1 runs on 1 datasets: 1 done, 1 new" in " ".join(capsys.readouterr().out.split())
    assert not out.exists()
