"""The layout of the package: which subpackage may import which, and which files a wheel contains."""

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

import gcb

PACKAGE = Path(gcb.__file__).parent
ORDER = [
    *("errors", "utils", "envs", "data", "models", "theory", "methods", "runs", "agent"),
    *("training", "evaluation", "analysis", "report", "sweep", "explorer", "cli"),
]
"""A subpackage imports itself and those before it (docs/architecture.md)."""


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and subpackage of every import of the package's own modules, including those inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != "gcb" else [f"gcb.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            if name.startswith("gcb."):
                yield node.lineno, name.split(".")[1]


def test_subpackages_import_only_those_before_them() -> None:
    offending = []
    for path in sorted(PACKAGE.rglob("*.py")):
        subpackage = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if subpackage.startswith("__"):
            continue
        for line, imported in imports(path):
            if ORDER.index(imported) > ORDER.index(subpackage):
                offending.append(f"{path.relative_to(PACKAGE.parent)}:{line}: {subpackage} imports {imported}")
    assert not offending, "\n".join(offending)


def test_the_root_has_no_other_modules() -> None:
    files = {path.name for path in PACKAGE.iterdir() if path.is_file()}
    assert files == {"__init__.py", "__main__.py", "errors.py", "py.typed"}
    subpackages = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert subpackages | {"errors"} == set(ORDER)


def test_every_data_file_is_packaged() -> None:
    """An editable install finds every file; a wheel has only those that pyproject.toml names."""
    tomllib = pytest.importorskip("tomllib")
    settings = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())
    patterns = settings["tool"]["setuptools"]["package-data"]["gcb"]
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    assert len(files) >= 4
    assert [path.name for path in files if not any(fnmatch(path.name, Path(glob).name) for glob in patterns)] == []
