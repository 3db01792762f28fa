"""Every code block of the documentation runs, in order, as a reader would run it."""

import json
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.tiny import tiny_config

from gcb.cli.main import main
from gcb.data import CollectConfig, collect, open_dataset
from gcb.training.trainer import train

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document: str) -> Iterator[tuple[str, str, str]]:
    """Name, language and text of each fenced block of a document."""
    text = (ROOT / document).read_text()
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        # So many empty lines in front, that an error names the document's own line.
        yield f"{document}:{line}", match[1], "\n" * (line - 1) + match[2]


def run(document: str, languages: tuple[str, ...]) -> dict[str, Any]:
    """Run the blocks of a document in one namespace; return what they defined."""
    names: dict[str, Any] = {"__name__": "document"}
    for name, language, text in blocks(document):
        assert language in (*languages, "text"), f"{name}: a block of {language or 'no language'}"
        if language == "python":
            exec(compile(text, name, "exec"), names)
        elif language == "bash":
            for line in filter(None, map(str.strip, text.splitlines())):
                run_command(*shlex.split(line), name=name)
    return names


def run_command(program: str, *arguments: str, name: str) -> None:
    """Run a line of a shell: `gcb …` or `python examples/….py …`."""
    if program == "gcb":
        main(arguments)
        return
    assert program == "python", f"{name}: {program}"
    script, *rest = arguments
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [script, *rest])
        runpy.run_path(str(ROOT / script), run_name="__main__")


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The dataset and the run that README and guide load, as small as possible."""
    monkeypatch.chdir(tmp_path)
    config = CollectConfig(env="gcb/ButtonDrawer-v0", transitions=60)
    collect(config, "datasets/button_drawer", quiet=True)
    train(tiny_config(steps=2, batch_size=4), "datasets/button_drawer", "runs/gcb", quiet=True)


@pytest.mark.usefixtures("trained")
def test_readme() -> None:
    names = run("README.md", ("python",))
    assert names["action"].shape == (5,)


@pytest.mark.usefixtures("trained")
def test_guide() -> None:
    names = run("docs/guide.md", ("python",))
    assert names["batch"].state.shape == (256, 64, 64, 3)
    assert names["image"].ndim == 3
    assert names["action"].shape == (5,)
    assert 0 <= float(names["done"]) <= 1
    assert np.isfinite(names["value"])


def test_theory() -> None:
    names = run("docs/theory.md", ("python",))
    assert names["d"][names["at_goal"], names["two_steps"]] == pytest.approx(1.0)


def test_extend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An agent for another environment is well above chance, and no format loses anything."""
    pytest.importorskip("panda_gym", reason="the environment of docs/extend.md: pip install 'gcb[examples]'")
    pytest.importorskip("minari", reason="docs/extend.md exports to Minari: pip install 'gcb[minari]'")
    pytest.importorskip("pyarrow", reason="docs/extend.md exports to LeRobot: pip install 'gcb[lerobot]'")
    pytest.importorskip("huggingface_hub", reason="docs/extend.md shares an agent: pip install 'gcb[hub]'")
    monkeypatch.chdir(tmp_path)
    names = run("docs/extend.md", ("python", "bash"))
    rate = json.loads(Path("reach/run/eval.json").read_bytes())["goal"]["all"]["at_end"]
    assert rate["of"] == 20
    assert rate["rate"] >= 0.7  # random actions: .14
    assert names["value"].shape == (3,)
    made = open_dataset("reach/data").arrays()
    for copy in ("from-ogbench", "from-minari", "from-lerobot"):
        arrays = open_dataset(copy).arrays()
        assert arrays.keys() == made.keys()
        for name, array in arrays.items():
            np.testing.assert_array_equal(array, made[name], err_msg=f"{copy}: {name}")
    assert "imported from" in capsys.readouterr().out
