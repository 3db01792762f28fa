"""What a user holds: an agent that acts towards a goal image, or by analogy with an example pair."""

from gcb.agent.agent import Agent, Example, TaskPolicy, load

__all__ = ["Agent", "Example", "TaskPolicy", "load"]
