"""A trained agent: loading it, acting with it, exporting it."""

from gcb.agent.agent import Agent, Example, TaskPolicy, load

__all__ = ["Agent", "Example", "TaskPolicy", "load"]
