"""Datasets of a tiny environment without a simulator, shared by the tests of sweeps."""

import os
from pathlib import Path

import pytest
from helpers.slide_env import ENV
from helpers.small_sweeps import inline, start_gcb  # noqa: F401 (fixtures)
from helpers.tiny import tiny_dataset

from gcb.data import Dataset, write_dataset

TESTS = Path(__file__).parents[1]


@pytest.fixture
def data_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory with the datasets "slide" and "slide_video"; worker processes can import their environment."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]))
    for seed, name in enumerate(("slide", "slide_video")):
        data = Dataset.from_arrays(
            **tiny_dataset(seed=seed).arrays(), config={"env": ENV, "options": {"check_actions": False}}
        )
        write_dataset(data, tmp_path / "datasets" / name)
    return tmp_path / "datasets"
