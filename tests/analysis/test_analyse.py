"""`gcb analyse` from a run to its figures and numbers: complete, repeatable, and explicit about what it skips."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.tiny import tiny_config, tiny_dataset, write_tiny_dataset
from PIL import Image

from gcb.agent.agent import load
from gcb.analysis import analyse as module
from gcb.analysis.analyse import ANALYSIS_DIR, FIGURES, Analysis, AnalysisSize, analyse, read_numbers, to_json
from gcb.analysis.embed import sample_tasks
from gcb.analysis.figures import map_figure
from gcb.cli.main import main
from gcb.data import CollectConfig, Dataset, collect, open_dataset, write_dataset
from gcb.errors import GCBError
from gcb.report.text_tables import analysis_tables, format_estimate, format_rate
from gcb.runs.run_dir import Run
from gcb.training.trainer import train
from gcb.utils.files import directory_lock
from gcb.utils.statistics import Estimate, Rate

SMALL = AnalysisSize(samples=8, pool=60, scenes=3, points=30, rows=2)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a small dataset and a run with φ and ψ, one without ψ and one without φ."""
    directory = tmp_path_factory.mktemp("analyse")
    collect(CollectConfig("gcb/ButtonDrawer-v0", 150, 1, options={"image_size": 32}), directory / "data", quiet=True)
    for method in ("gcb", "gcbc", "goal_agnostic_bc"):
        train(tiny_config(method, steps=2), directory / "data", directory / method, quiet=True)
    return directory


@pytest.fixture(scope="module")
def numbers(directory: Path) -> dict[str, Any]:
    return analyse(directory / "gcb", size=SMALL, workers=1, quiet=True)


def files(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((run / ANALYSIS_DIR).iterdir())}


def test_all_files_are_written_and_no_others(directory: Path, numbers: dict[str, Any]) -> None:
    assert set(files(directory / "gcb")) == {*(f"{name}.png" for name in FIGURES), "numbers.json", "scenes.npz"}
    for name in FIGURES:
        assert min(Image.open(directory / "gcb" / ANALYSIS_DIR / f"{name}.png").size) > 200
    assert read_numbers(directory / "gcb") == json.loads(json.dumps(numbers))
    assert numbers["skipped"] == {}
    assert numbers["about"]["training_data"] is True
    assert numbers["about"]["step"] == 2


def test_every_part_has_numbers(numbers: dict[str, Any]) -> None:
    assert numbers["neighbours"]["pool"] == 60
    for name in ("phi", "pixels", "random"):
        assert 0 <= numbers["neighbours"][name]["same_task"]["value"] <= 1
        assert numbers["neighbours"][name]["travel_error"]["of"] == numbers["neighbours"]["samples"]
    assert numbers["arithmetic"]["candidates"] == 9
    assert numbers["arithmetic"]["random"]["function"]["of"] == 3
    assert [table.figure for table in analysis_tables(numbers)] == ["neighbours", "values", "arithmetic"]
    for table in analysis_tables(numbers):
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_the_same_seed_gives_the_same_files(directory: Path, numbers: dict[str, Any]) -> None:
    before = files(directory / "gcb")
    assert analyse(directory / "gcb", size=SMALL, workers=1, quiet=True) == numbers
    assert files(directory / "gcb") == before


def test_an_interrupted_analysis_leaves_the_old_files(
    directory: Path, numbers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(directory / "gcb")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "evaluate_arithmetic", interrupt)
    with pytest.raises(KeyboardInterrupt):
        analyse(directory / "gcb", seed=7, size=SMALL, workers=1, quiet=True)
    after = files(directory / "gcb")
    assert {**after, "scenes.npz": b""} == {**before, "scenes.npz": b""}


def test_a_method_without_psi_has_no_arithmetic(directory: Path) -> None:
    (directory / "gcbc" / ANALYSIS_DIR).mkdir()
    (directory / "gcbc" / ANALYSIS_DIR / "arithmetic.png").write_bytes(b"of an earlier analysis")
    numbers = analyse(directory / "gcbc", size=SMALL, workers=1, quiet=True)
    assert numbers["skipped"] == {"arithmetic": "gcbc has no state embedding ψ"}
    assert set(files(directory / "gcbc")) == {"neighbours.png", "map.png", "values.png", "numbers.json"}


def test_a_method_without_phi_uses_differences_of_psi(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--samples", "8", "--pool", "60", "--scenes", "3", "--points", "30", "--rows", "1", "--workers", "1"]
    main(["analyse", str(directory / "goal_agnostic_bc"), *options])
    output = " ".join(capsys.readouterr().out.split())
    assert "map (goal_agnostic_bc has no task embedding φ)" in output
    assert "position error" in output
    numbers = read_numbers(directory / "goal_agnostic_bc")
    assert set(numbers["skipped"]) == {"neighbours", "map", "values"}
    assert numbers["arithmetic"]["shown"] == "psi_difference"
    assert numbers["arithmetic"]["closer_to_goal"] is None
    assert set(files(directory / "goal_agnostic_bc")) == {"arithmetic.png", "numbers.json", "scenes.npz"}


def test_data_of_an_unknown_environment(tmp_path: Path) -> None:
    data = write_tiny_dataset(tmp_path)
    train(tiny_config(steps=2), data, tmp_path / "run", quiet=True)
    numbers = analyse(tmp_path / "run", size=SMALL, workers=1, quiet=True)
    assert numbers["skipped"] == {"arithmetic": "there are no fresh scenes of an unknown environment"}
    assert numbers["neighbours"]["phi"] == {"same_task": None, "travel_error": None, "gripper_error": None}
    assert next(analysis_tables(numbers)).rows[0] == ("nearest in φ", "–", "–", "–")


def test_without_a_simulator_only_the_arithmetic_is_skipped(tmp_path: Path) -> None:
    arrays, out = tiny_dataset().arrays(), tmp_path / "run"
    data = write_dataset(Dataset.from_arrays(**arrays, config={"env": "gcb/Drawer-v0"}), tmp_path / "data")
    train(tiny_config(steps=2), data, out, quiet=True)
    (tmp_path / "pybullet.py").write_text("raise ModuleNotFoundError(\"No module named 'pybullet'\")")
    options = "samples=8, pool=60, scenes=3, points=30, rows=2"
    program = f"from gcb.analysis.analyse import *; analyse({str(out)!r}, size=AnalysisSize({options}), quiet=True)"
    path = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); "
    subprocess.run([sys.executable, "-c", path + program], check=True)
    assert set(files(out)) == {"neighbours.png", "map.png", "values.png", "numbers.json"}
    assert "PyBullet, which gcb's environments need," in read_numbers(out)["skipped"]["arithmetic"]


def test_an_agent_without_value_functions(tmp_path: Path) -> None:
    """As those that come with gcb."""
    data = write_tiny_dataset(tmp_path)
    train(tiny_config(steps=2), data, tmp_path / "run", quiet=True)
    agent = load(tmp_path / "run")
    agent.iql.policy("goal").value = None  # pyright: ignore[reportAttributeAccessIssue]
    analysis = Analysis(agent, Run(tmp_path / "run"), open_dataset(data), SMALL, seed=0, quiet=True)
    analysis.analyse_tasks()
    assert set(analysis.figures) == {"neighbours", "map"}
    assert analysis.skipped == {"values": "the agent comes without its value functions"}
    tasks = sample_tasks(agent, open_dataset(data), 30, seed=0)
    (points,) = map_figure(None, tasks, np.zeros((30, 2)), []).axes[0].collections
    assert points.get_facecolor()[:, 3].min() > 0.5  # type: ignore[index]


def test_invalid_paths_and_sizes_are_named(directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path, message in (
        (tmp_path / "nowhere", "nowhere"),
        (directory / "data", "run.json"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["analyse", str(path)])
        assert ended.value.code == 2
        assert message in capsys.readouterr().err
    with pytest.raises(GCBError, match=r"is not a dataset|manifest"):
        analyse(directory / "gcb", tmp_path, size=SMALL)
    with pytest.raises(GCBError, match=r"scenes is 1; it must be in \[2, "):
        AnalysisSize(scenes=1)
    with pytest.raises(GCBError, match="points is 9999"):
        AnalysisSize(points=9999)
    with pytest.raises(GCBError, match="workers is 0"):
        analyse(directory / "gcb", size=SMALL, workers=0)


def test_data_of_another_shape_or_moved(directory: Path, tmp_path: Path) -> None:
    other = write_tiny_dataset(tmp_path, size=40)
    with pytest.raises(GCBError, match=r"has observations \(40, 40, 3\); .* was trained on \(32, 32, 3\)"):
        analyse(directory / "gcb", other, size=SMALL)
    data = write_tiny_dataset(tmp_path / "b")
    train(tiny_config(steps=2), data, tmp_path / "run", quiet=True)
    data.rename(tmp_path / "moved")
    with pytest.raises(GCBError, match=r"no longer at .*--data"):
        analyse(tmp_path / "run", size=SMALL)
    assert analyse(tmp_path / "run", tmp_path / "moved", size=SMALL, quiet=True)["about"]["training_data"] is True


def test_a_second_analysis_at_once_is_rejected(directory: Path, numbers: dict[str, Any]) -> None:
    with directory_lock(directory / "gcb" / ANALYSIS_DIR), pytest.raises(GCBError, match="is in use"):
        analyse(directory / "gcb", size=SMALL, quiet=True)


def test_numbers_to_json_and_text() -> None:
    assert to_json({"a": Rate(1, 4)})["a"]["value"] == 0.25
    undefined = to_json(Estimate(float("nan"), (float("nan"), 1.0), 3))
    assert undefined == {"value": None, "interval": [None, 1.0], "of": 3}
    assert format_estimate(undefined) == "–"
    assert format_estimate(to_json(Estimate(0.0312, (0.03, 0.05), 9)), 100, 1) == "3.1 [3.0, 5.0]"
    assert format_rate(to_json(Rate(1, 4)), interval=False) == "25.0 %"
    assert format_rate(None) == "–"
    assert np.isfinite(to_json(Rate(0, 4))["interval"]).all()
