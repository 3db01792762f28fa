"""Goal-conditioned bisimulation: offline goal-conditioned RL from goal images and analogies."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gcb.agent.agent import Agent

__version__ = "0.3.0"


def load(run: str | os.PathLike[str], device: str = "cpu") -> "Agent":
    """Load the agent of a run: `agent.act(observation, goal=g)` or `agent.act(observation, example=(s_a, g_a))`."""
    # Imported here because PyTorch takes seconds to load, and `import gcb` should not.
    from gcb.agent.agent import load as load_agent

    return load_agent(run, device)
