"""A sweep on a real Ray instance on this machine."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.faults import wait_until
from helpers.small_sweeps import checkpoint_step, gcb, sweep_args, worker_pid

from gcb.report.rows import read_rows

STEPS = 40
LONG = (f"steps={STEPS}", "checkpoint_every=1", "log_every=1")
RUN = "slide-goal_agnostic_bc-s0"


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Set a temporary directory whose path is short enough for Ray's sockets."""
    path = tempfile.mkdtemp(prefix="gcb-", dir="/tmp")
    monkeypatch.setenv("TMPDIR", path)
    yield Path(path)
    shutil.rmtree(path, ignore_errors=True)


@pytest.mark.ray
def test_four_runs_on_two_workers_one_of_which_is_killed(
    tmp_path: Path, data_root: Path, temporary: Path, start_gcb
) -> None:
    out = tmp_path / "out"
    options = ["--seeds", "4", "--ray", "local", "--workers", "2", "--modes", "goal", "--episodes", "2"]
    process = start_gcb(*sweep_args(out, data_root, *options, overrides=LONG))
    wait_until(lambda: checkpoint_step(out / "runs" / RUN) >= 3 or process.poll() is not None, 600)
    assert process.poll() is None, process.communicate()[1].decode()
    log = out / "logs" / f"{RUN}.log"
    os.kill(worker_pid(out, RUN), signal.SIGKILL)
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors.decode()
    assert f"{RUN} is retried: its worker died".encode() in output
    assert log.read_text().count(" process ") == 2
    rows = [row for row in read_rows([out / "results.csv"]) if row.task == "all"]
    assert [(row.seed, row.steps, row.episodes) for row in rows] == [(seed, STEPS, 2) for seed in range(4)]
    assert not list(temporary.glob("gcb-ray-*"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ray", "local", "--cpus-per-run", "0"], "cpus_per_run is 0.0"),
        (["--ray", "local", "--gpus-per-run", "-1"], "gpus_per_run is -1.0"),
        (["--ray", "local", "--workers", "0"], "workers is 0"),
    ],
)
def test_invalid_options_are_named(tmp_path: Path, data_root: Path, options: list[str], message: str, capsys) -> None:
    assert gcb(*sweep_args(tmp_path / "out", data_root, *options)) == 2
    assert message in capsys.readouterr().err


def test_a_missing_ray_names_the_extra(tmp_path: Path, data_root: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("gcb.sweep.ray_pool.find_spec", lambda name: None)
    assert gcb(*sweep_args(tmp_path / "out", data_root, "--ray", "auto")) == 2
    assert "pip install 'gcb[ray]'" in capsys.readouterr().err


def test_a_ray_that_does_not_start_is_tried_again_and_reported(
    tmp_path: Path, data_root: Path, temporary: Path, capsys, monkeypatch
):
    import ray

    tries = []

    def slow(**settings: object) -> None:
        tries.append(settings["_temp_dir"])
        raise Exception("The current node timed out during startup.\nMore of it.")

    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(ray, "init", slow)
    assert gcb(*sweep_args(tmp_path / "out", data_root, "--ray", "local")) == 2
    assert "ray is 'local': The current node timed out" in capsys.readouterr().err
    assert len(set(tries)) == 3
    assert not list(temporary.iterdir())
