"""`gcb analyse` from a run to its figures and numbers: whole, repeatable, and honest about what it leaves out."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.tiny import tiny_config, tiny_data_folder
from PIL import Image

from gcb.analysis import analyse as module
from gcb.analysis.analyse import ANALYSIS_DIR, FIGURES, AnalysisSize, analyse, plain, read_numbers
from gcb.cli.main import main
from gcb.data import CollectConfig, collect
from gcb.errors import GCBError
from gcb.report.text_tables import measured, share, tables_of
from gcb.training.trainer import train
from gcb.utils.files import directory_lock
from gcb.utils.statistics import Estimate, Rate

SMALL = AnalysisSize(samples=8, pool=60, scenes=3, points=30, rows=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small dataset of the real world, and a run of each kind of method on it."""
    folder = tmp_path_factory.mktemp("analyse")
    collect(CollectConfig("gcb/ButtonDrawer-v0", 150, 1, options={"image_size": 32}), folder / "data", quiet=True)
    for method in ("gcb", "gcbc", "goal_agnostic_bc"):
        train(tiny_config(method, steps=2), folder / "data", folder / method, quiet=True)
    return folder


@pytest.fixture(scope="module")
def numbers(folder: Path) -> dict[str, Any]:
    return analyse(folder / "gcb", size=SMALL, workers=1, quiet=True)


def files(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((run / ANALYSIS_DIR).iterdir())}


def test_everything_is_there_and_nothing_else(folder: Path, numbers: dict[str, Any]) -> None:
    assert set(files(folder / "gcb")) == {*(f"{name}.png" for name in FIGURES), "numbers.json", "scenes.npz"}
    for name in FIGURES:
        assert min(Image.open(folder / "gcb" / ANALYSIS_DIR / f"{name}.png").size) > 200
    assert read_numbers(folder / "gcb") == json.loads(json.dumps(numbers))
    assert numbers["skipped"] == {}
    assert numbers["about"]["training_data"] is True
    assert numbers["about"]["step"] == 2


def test_every_part_has_its_numbers(numbers: dict[str, Any]) -> None:
    assert numbers["neighbours"]["pool"] == 60
    for kind in ("phi", "pixels", "random"):
        assert 0 <= numbers["neighbours"][kind]["same_task"]["value"] <= 1
        assert numbers["neighbours"][kind]["travel_left"]["of"] == numbers["neighbours"]["samples"]
    assert numbers["arithmetic"]["candidates"] == 9
    assert numbers["arithmetic"]["random"]["function"]["of"] == 3
    assert [table.figure for table in tables_of(numbers)] == ["neighbours", "values", "arithmetic"]
    for table in tables_of(numbers):
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_the_same_seed_gives_the_same_files(folder: Path, numbers: dict[str, Any]) -> None:
    before = files(folder / "gcb")
    assert analyse(folder / "gcb", size=SMALL, workers=1, quiet=True) == numbers
    assert files(folder / "gcb") == before


def test_a_kill_leaves_the_old_files_whole(
    folder: Path, numbers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(folder / "gcb")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "measure", die)
    with pytest.raises(KeyboardInterrupt):
        analyse(folder / "gcb", seed=7, size=SMALL, workers=1, quiet=True)
    after = files(folder / "gcb")
    assert {**after, "scenes.npz": b""} == {**before, "scenes.npz": b""}


def test_a_method_without_psi_has_no_arithmetic(folder: Path) -> None:
    (folder / "gcbc" / ANALYSIS_DIR).mkdir()
    (folder / "gcbc" / ANALYSIS_DIR / "arithmetic.png").write_bytes(b"of an earlier analysis")
    numbers = analyse(folder / "gcbc", size=SMALL, workers=1, quiet=True)
    assert numbers["skipped"] == {"arithmetic": "gcbc has no state embedding ψ"}
    assert set(files(folder / "gcbc")) == {"neighbours.png", "map.png", "values.png", "numbers.json"}


def test_a_method_without_phi_has_only_differences_of_psi(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--samples", "8", "--pool", "60", "--scenes", "3", "--points", "30", "--rows", "1", "--workers", "1"]
    main(["analyse", str(folder / "goal_agnostic_bc"), *words])
    said = " ".join(capsys.readouterr().out.split())
    assert "left out: map (goal_agnostic_bc has no task embedding φ)" in said
    assert "right function" in said
    numbers = read_numbers(folder / "goal_agnostic_bc")
    assert set(numbers["skipped"]) == {"neighbours", "map", "values"}
    assert numbers["arithmetic"]["point"] == "psi_difference"
    assert numbers["arithmetic"]["towards"] is None
    assert set(files(folder / "goal_agnostic_bc")) == {"arithmetic.png", "numbers.json", "scenes.npz"}


def test_own_data_of_no_known_world(tmp_path: Path) -> None:
    data = tiny_data_folder(tmp_path)
    train(tiny_config(steps=2), data, tmp_path / "run", quiet=True)
    numbers = analyse(tmp_path / "run", size=SMALL, workers=1, quiet=True)
    assert numbers["skipped"] == {"arithmetic": "there are no fresh scenes of an unknown environment"}
    assert numbers["neighbours"]["phi"] == {"same_task": None, "travel_left": None, "gripper": None}
    assert next(tables_of(numbers)).rows[0] == ("nearest in φ", "–", "–", "–")


def test_wrong_folders_and_sizes_are_named(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for where, message in (
        (tmp_path / "nowhere", "is not a folder; a run is a folder"),
        (folder / "data", "is not a run: it has no run.json"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["analyse", str(where)])
        assert ended.value.code == 2
        assert message in capsys.readouterr().err
    with pytest.raises(GCBError, match=r"is not a dataset|manifest"):
        analyse(folder / "gcb", tmp_path, size=SMALL)
    with pytest.raises(GCBError, match="scenes is 1; it must be at least 2"):
        AnalysisSize(scenes=1)
    with pytest.raises(GCBError, match="points is 9999; it must be at most"):
        AnalysisSize(points=9999)
    with pytest.raises(GCBError, match="workers is 0"):
        analyse(folder / "gcb", size=SMALL, workers=0)


def test_data_that_does_not_fit_or_is_gone(folder: Path, tmp_path: Path) -> None:
    other = tiny_data_folder(tmp_path, size=40)
    with pytest.raises(GCBError, match=r"has observations \(40, 40, 3\); .* was trained on \(32, 32, 3\)"):
        analyse(folder / "gcb", other, size=SMALL)
    data = tiny_data_folder(tmp_path / "b")
    train(tiny_config(steps=2), data, tmp_path / "run", quiet=True)
    data.rename(tmp_path / "moved")
    with pytest.raises(GCBError, match=r"is not at .* any more; say where it is: --data DIR"):
        analyse(tmp_path / "run", size=SMALL)
    assert analyse(tmp_path / "run", tmp_path / "moved", size=SMALL, quiet=True)["about"]["training_data"] is True


def test_two_at_once_are_kept_apart(folder: Path, numbers: dict[str, Any]) -> None:
    with directory_lock(folder / "gcb" / ANALYSIS_DIR), pytest.raises(GCBError, match="is in use"):
        analyse(folder / "gcb", size=SMALL, quiet=True)


def test_numbers_as_json_and_as_text() -> None:
    assert plain({"a": Rate(1, 4)})["a"]["value"] == 0.25
    nothing = plain(Estimate(float("nan"), (float("nan"), 1.0), 3))
    assert nothing == {"value": None, "interval": [None, 1.0], "of": 3}
    assert measured(nothing) == "–"
    assert measured(plain(Estimate(0.0312, (0.03, 0.05), 9)), 100, 1) == "3.1 [3.0, 5.0]"
    assert share(plain(Rate(1, 4)), interval=False) == "25.0 %"
    assert share(None) == "–"
    assert np.isfinite(plain(Rate(0, 4))["interval"]).all()
