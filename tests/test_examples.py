"""Every example runs from top to bottom, as small as possible, in a directory of its own."""

import runpy
import sys
from pathlib import Path

import pytest
from PIL import Image

import gcb
from gcb.data import open_dataset
from gcb.runs.run_dir import Run

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(name: str, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    """Run an example as `python examples/NAME.py ARGUMENTS` would."""
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")


def test_examples_are_short_and_listed() -> None:
    scripts = sorted(EXAMPLES.glob("*.py"))
    index = (EXAMPLES / "README.md").read_text()
    assert len(scripts) == 4
    for path in scripts:
        assert len(path.read_text().splitlines()) < 60, path.name
        assert f"({path.name})" in index


def test_quickstart(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run("quickstart", monkeypatch, "--episodes", "1")
    assert "of 1 tasks done" in capsys.readouterr().out
    with Image.open("quickstart.gif") as video:
        assert 1 < getattr(video, "n_frames", 1) <= 76 + 8
        assert video.width == 3 * 3 * 64 + 2 * 2


def test_own_images(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("panda_gym", reason="the robot that is recorded: pip install 'gcb[examples]'")
    run("own_images", monkeypatch, "--episodes", "10", "--steps", "11")
    dataset = open_dataset("own-images/data")
    assert (dataset.episodes, dataset.frames.shape) == (8, (88, 64, 64, 3))
    assert Path("own-images/data.png").exists()
    assert "given a wrong goal" in capsys.readouterr().out


def test_own_environment(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`test_docs.py` runs it at full length, and measures its success."""
    pytest.importorskip("panda_gym", reason="the environment: pip install 'gcb[examples]'")
    run("own_environment", monkeypatch, "--episodes", "8", "--steps", "21")
    assert open_dataset("own-environment/data").episodes == 8
    overall, left, right = capsys.readouterr().out.strip().splitlines()[-3:]
    assert overall.endswith("/40)")
    assert (left.split()[0], right.split()[0]) == ("left", "right")


def test_own_method(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run("own_method", monkeypatch, "--transitions", "200", "--steps", "6", "--episodes", "1")
    assert Run("own-method/run").config.method == "difference"
    assert gcb.load("own-method/run").step == 6
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines if line.endswith("/1)")} == {"goal", "strict"}


def test_notebook(tmp_path: Path) -> None:
    pytest.importorskip("pybullet")
    pytest.importorskip("nbclient", reason="runs the notebook: pip install 'gcb[notebook]'")
    from scripts.run_notebook import execute

    sizes = {"TRANSITIONS": 200, "STEPS": 4, "SCENES": 4, "EPISODES": 1}
    notebook = execute(EXAMPLES / "paper.ipynb", sizes, tmp_path, timeout=600)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    images = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(images) == 5  # metric, data, neighbours, arithmetic, video
    assert (tmp_path / "notebook" / "analogy.gif").exists()
