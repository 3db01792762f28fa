"""The connection to PyBullet."""

import subprocess
import sys

import pytest

PROGRAM = """
import atexit
from gcb.envs.bullet import connect

closed, left_open = connect(), connect()
closed.disconnect()
assert left_open.isConnected()
atexit._run_exitfuncs()
assert not left_open.isConnected()
"""


def test_simulators_left_open_are_disconnected_before_modules_are_unloaded() -> None:
    """Later, their destructors would print exceptions: those of evaluation workers did."""
    pytest.importorskip("pybullet")
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
