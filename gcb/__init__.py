"""Goal-conditioned bisimulation: offline goal-conditioned RL from goal images and analogies.

Importing it registers the environments with Gymnasium. PyBullet and PyTorch are imported when they are first needed.
"""

import os
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if sys.argv[:1] == ["-m"] and ("-m", "gcb") in pairwise(sys.orig_argv) and sys.path[0] == os.getcwd() != _HOME:
    # `python -m gcb` searches the current directory first: a downloaded agent there could bring a numpy.py of its own.
    del sys.path[0]

from gcb import envs  # noqa: E402

if TYPE_CHECKING:
    from gcb.agent.agent import Agent

__version__ = "0.3.0"
__all__ = ["envs", "load"]


def load(run: str | os.PathLike[str], device: str = "cpu") -> "Agent":
    """Load the agent of a run: `agent.act(observation, goal=g)` or `agent.act(observation, example=(s_a, g_a))`.

    `run` is its directory, the name of an agent that comes with the package, such as "button-drawer", or
    "hf://owner/name" for an agent on the Hugging Face Hub.
    """
    # Imported here because PyTorch takes seconds to load, and `import gcb` should not.
    from gcb.agent.agent import load as load_agent

    return load_agent(run, device)
