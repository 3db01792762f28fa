"""Goal-conditioned bisimulation: tell an offline agent what to do by example."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gcb.agent.agent import Agent

__version__ = "0.2.0"


def load(run: str | os.PathLike[str], device: str = "cpu") -> "Agent":
    """The agent of a run's folder: `agent.act(observation, goal=g)` or `agent.act(observation, example=(s_a, g_a))`."""
    # Imported here: most of the package, and its command line, does without torch.
    from gcb.agent.agent import load as load_agent

    return load_agent(run, device)
