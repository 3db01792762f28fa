"""What `import gcb` makes known to Gymnasium, and what it does not import."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import {module}
import gymnasium as gym
heavy = {{"torch", "pybullet", "matplotlib", "scipy", "tyro"}} & set(sys.modules)
assert not heavy, heavy
assert gym.spec("gcb/ButtonDrawer-v0").entry_point == "gcb.envs:make_tabletop"
"""


@pytest.mark.parametrize("module", ["gcb", "gcb.envs"])
def test_importing_gcb_registers_the_environments_and_nothing_heavy(module: str) -> None:
    program = PROGRAM.format(module=module)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_gymnasium_imports_gcb_if_the_id_says_so() -> None:
    pytest.importorskip("pybullet")
    program = "import gymnasium as gym; gym.make('gcb:gcb/Drawer-v0', image_size=16).close()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_missing_simulator_is_one_clear_line(tmp_path) -> None:
    """As on a Python that PyBullet has no wheels for."""
    (tmp_path / "pybullet.py").write_text("raise ModuleNotFoundError(\"No module named 'pybullet'\")")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from gcb.cli.main import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", program, "expert", "--env", "gcb/Drawer-v0", "--episodes", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    version = ".".join(map(str, sys.version_info[:2]))
    assert done.stderr.startswith("gcb: PyBullet, which gcb's environments need, is not installed for this CPython")
    assert f"CPython {version}: `conda install -c conda-forge pybullet`" in done.stderr
    assert done.stderr.count("\n") == 1
