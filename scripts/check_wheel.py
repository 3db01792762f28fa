"""Build the wheel, install it into a new virtual environment and use it there: `python -m scripts.check_wheel`.

An editable install finds every file of the checkout; a wheel carries only what pyproject.toml names. The commands run
in an empty directory, so that nothing of the checkout can be imported by accident.
"""

import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = """
import importlib.resources, gcb
root = importlib.resources.files("gcb")
assert "site-packages" in str(root), root
for name in ("py.typed", "envs/distractors.json", "explorer/static/index.html", "runs/bundled/button-drawer/run.json"):
    assert root.joinpath(name).is_file(), name
"""
LOAD = """
import gymnasium, gcb, gcb.envs
agent, env = gcb.load("run"), gymnasium.make("gcb/ButtonDrawer-v0")
observation, _ = env.reset(seed=0)
assert agent.act(observation["observation"], goal=observation["desired_goal"]).shape == (5,)
gcb.load("button-drawer").act(observation["observation"], goal=observation["desired_goal"])
print("gcb", gcb.__version__, "acts")
"""
COMMANDS = (
    "gcb --help",
    "gcb collect --env gcb/ButtonDrawer-v0 --transitions 60 --video --out data",
    "gcb data show data --sheet sheet.png",
    "gcb train --data data --out run --preset smoke --quiet",
    "gcb eval run --episodes 2",
    "gcb report run --out report.html",
    "gcb expert --episodes 2 --video-out expert.gif",
)


def main() -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        call([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", name, str(ROOT)], place)
        (wheel,) = place.glob("gcb-*.whl")
        venv.create(place / "venv", with_pip=True)
        python = place / "venv" / "bin" / "python"
        call([str(python), "-m", "pip", "install", "--quiet", str(wheel)], place)
        (place / "empty").mkdir()
        for command in COMMANDS:
            call([str(python.with_name("gcb")), *command.split()[1:]], place / "empty")
        call([str(python), "-c", FILES], place / "empty")
        call([str(python), "-c", LOAD], place / "empty")
    print(f"the wheel works: {wheel.name}, checked in {time.monotonic() - began:.0f} s")


def call(command: list[str], directory: Path) -> None:
    """Run a command without this checkout on its path; show its output if it fails."""
    settings = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(command, cwd=directory, env=settings, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
