"""The connection to PyBullet."""

import subprocess
import sys

SCRIPT = """
from gcb.envs import make_env
from gcb.utils.workers import run_in_order

class Runner:
    def __init__(self, config):
        self.env = make_env("gcb/Drawer-v0", image_size=8)

    def run(self, index):
        return index

if __name__ == "__main__":
    results = run_in_order(Runner, None, first=0, workers=2)
    assert next(results) == 0
    results.close()
"""


def test_workers_with_open_environments_exit_silently(tmp_path) -> None:
    """The simulator's destructor fails once the interpreter has unloaded its modules."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
