"""Where PyBullet is not installed, a test is skipped as soon as it would import it."""

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from types import ModuleType

import pytest

REASON = "needs PyBullet, which is not installed for this Python (docs/guide.md has the way to it)"


class SkipAtImport:
    """A finder of modules that skips the test, or the file of tests, that imports PyBullet."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        if name == "pybullet":
            pytest.skip(REASON, allow_module_level=True)


if find_spec("pybullet") is None:
    sys.meta_path.insert(0, SkipAtImport())
