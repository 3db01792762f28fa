"""Where a run is: in a directory of its own or, by its name, in the package."""

import os
from pathlib import Path

from gcb.errors import GCBError, suggestion

BUNDLED = Path(__file__).parent / "bundled"
"""One directory for each trained agent that comes with the package; `scripts/bundle_agent.py` makes them."""
DEFAULT_AGENT = "button-drawer"


def bundled_agents() -> list[str]:
    """Return the names of the agents that come with the package."""
    return sorted(path.parent.name for path in BUNDLED.glob("*/run.json"))


def find_run(run: str | os.PathLike[str]) -> Path:
    """Return the directory of a run, given its path or the name of an agent that comes with the package.

    A directory of that name comes first. A path that does not exist is returned as it is: `Run` explains it.
    """
    path, name = Path(run), str(run)
    if path.exists() or path.name != name:
        return path
    names = bundled_agents()
    if name not in names:
        accepted = suggestion(name, names, " or the directory of a run")
        raise GCBError(f"{name} is not a directory, nor an agent that comes with gcb; {accepted}")
    return BUNDLED / name


def is_bundled(path: str | os.PathLike[str]) -> bool:
    """Return whether a run's directory is one of the package's own, in which nothing is to be written."""
    return Path(path).parent == BUNDLED


def check_own_run(path: str | os.PathLike[str]) -> None:
    """Raise an error if results for this run would be written into the package."""
    if is_bundled(path):
        name = Path(path).name
        raise GCBError(
            f"{name} comes with gcb, and nothing is written there; copy it first: gcb export {name} --out DIR"
        )
