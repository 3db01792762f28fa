"""What a wheel must carry."""

from fnmatch import fnmatch
from pathlib import Path

import pytest

import gcb

tomllib = pytest.importorskip("tomllib")


def test_every_data_file_is_packaged():
    """An editable install finds every file; a wheel has only those that pyproject.toml names."""
    folder = Path(gcb.__file__).parent
    settings = tomllib.loads((folder.parent / "pyproject.toml").read_text())
    patterns = settings["tool"]["setuptools"]["package-data"]["gcb"]
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    assert len(files) >= 4
    assert [path.name for path in files if not any(fnmatch(path.name, Path(one).name) for one in patterns)] == []
