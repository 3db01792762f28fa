"""Datasets of a tiny environment without a simulator, shared by the tests of sweeps."""

import os
from pathlib import Path

import pytest
from helpers.small_runs import TESTS, write_slide_dataset
from helpers.small_sweeps import inline, start_gcb  # noqa: F401 (fixtures)


@pytest.fixture
def data_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory with the datasets "slide" and "slide_video"; worker processes can import their environment."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("GCB_PLUGINS", "helpers.slide_env")
    for seed, name in enumerate(("slide", "slide_video")):
        write_slide_dataset(tmp_path / "datasets" / name, episodes=6, seed=seed)
    return tmp_path / "datasets"
