"""Tasks drawn from a dataset, as an agent sees them: φ, ψ and the critic's value."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch

from gcb.agent.agent import Agent
from gcb.analysis.geometry import as_shown
from gcb.data import Dataset
from gcb.envs import ENVS
from gcb.errors import GCBError

BATCH = 256


@dataclass(frozen=True, eq=False)
class Tasks:
    """n tasks (s, g), one in each row. What the method or the dataset does not have is None."""

    state_frame: np.ndarray
    """(n,) frame of s in the dataset."""
    goal_frame: np.ndarray
    """(n,) frame of g in the dataset."""
    episode: np.ndarray
    """(n,) the episode that both belong to."""
    task: np.ndarray
    """(n,) the task's name; "all" where the dataset tells none apart."""
    value: np.ndarray
    """(n,) the critic's V(s, g)."""
    phi: np.ndarray | None = None
    """(n, d) φ(s, g)."""
    psi_state: np.ndarray | None = None
    """(n, d) ψ(s)."""
    psi_goal: np.ndarray | None = None
    """(n, d) ψ(g)."""
    hidden_state: np.ndarray | None = None
    """(n, D) the hidden state of s."""
    hidden_goal: np.ndarray | None = None
    """(n, D) the hidden state of g, as its picture shows it."""

    def __len__(self) -> int:
        return len(self.state_frame)

    def rows(self, chosen: Any) -> "Tasks":
        """Some of the tasks: `chosen` is a slice, or an array of numbers or booleans."""
        parts = {one.name: getattr(self, one.name) for one in fields(self)}
        return replace(self, **{name: part[chosen] for name, part in parts.items() if part is not None})


def sample_tasks(
    agent: Agent,
    dataset: Dataset,
    count: int,
    seed: int,
    *,
    batch: int = BATCH,
    advance: Callable[[int], object] | None = None,
) -> Tasks:
    """`count` different tasks, in random order: s any frame that an action was taken in, g its episode's goal.

    A dataset without goals of its own has each episode's last frame in their place; episodes without a goal among
    others with one are left out. If there are fewer tasks than `count`, all of them. `advance` is told how many more
    are done.
    """
    if count < 1:
        raise GCBError(f"count is {count}; it must be at least 1.")
    state, goal, episode = _draw(dataset, count, np.random.default_rng(seed))
    lacks = missing_embeddings(agent)
    parts: dict[str, list[np.ndarray]] = {}
    for start in range(0, len(state), batch):
        rows = slice(start, start + batch)
        for name, part in _embed(agent, dataset.frames[state[rows]], dataset.frames[goal[rows]], lacks).items():
            parts.setdefault(name, []).append(part)
        if advance is not None:
            advance(len(state[rows]))
    return Tasks(
        state_frame=state,
        goal_frame=goal,
        episode=episode,
        task=_names(dataset, episode),
        hidden_state=None if dataset.states is None else np.asarray(dataset.states[state]),
        hidden_goal=_hidden_goals(dataset, goal, episode),
        **{name: np.concatenate(part) for name, part in parts.items()},
    )


def missing_embeddings(agent: Agent) -> dict[str, str]:
    """Which of "phi" and "psi" the agent's method does not have, each with the reason to show to a user."""
    blank = torch.zeros(1, *agent.shapes.observation, device=agent.device)
    if len(agent.shapes.observation) == 3:
        blank = blank.to(torch.uint8)
    reasons = {}
    for name, embed in (("phi", lambda: agent.method.phi(blank, blank)), ("psi", lambda: agent.method.psi(blank))):
        try:
            embed()
        except NotImplementedError as error:
            reasons[name] = str(error)
    return reasons


def in_batches(embed: Callable[..., np.ndarray], *inputs: np.ndarray, batch: int = BATCH) -> np.ndarray:
    """`embed` applied to rows of the inputs, a batch at a time."""
    starts = range(0, len(inputs[0]), batch)
    return np.concatenate([embed(*(one[start : start + batch] for one in inputs)) for start in starts])


def _draw(dataset: Dataset, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Frames of state and goal, and episode, of some tasks."""
    goals = np.asarray(dataset.episode_goal_frame)
    if (goals < 0).all():
        goals = np.asarray(dataset.episode_first_frame) + np.asarray(dataset.episode_length)
    eligible = np.flatnonzero(goals[dataset.episode_of_transition] >= 0)
    transition = rng.permutation(eligible)[:count]
    episode = dataset.episode_of_transition[transition]
    return dataset.frame_of_transition[transition], goals[episode], episode


def _hidden_goals(dataset: Dataset, goal: np.ndarray, episode: np.ndarray) -> np.ndarray | None:
    if dataset.states is None:
        return None
    hidden = np.asarray(dataset.states[goal])
    if dataset.config.get("env") not in ENVS:
        return hidden
    before = np.asarray(dataset.states[np.asarray(dataset.episode_first_frame)[episode]])
    return as_shown(hidden, before, _names(dataset, episode) == "button")


def _names(dataset: Dataset, episode: np.ndarray) -> np.ndarray:
    if dataset.episode_task is None:
        return np.full(len(episode), "all")
    return np.asarray(dataset.task_names)[np.asarray(dataset.episode_task)[episode]]


def _embed(agent: Agent, state: np.ndarray, goal: np.ndarray, lacks: dict[str, str]) -> dict[str, np.ndarray]:
    """Every embedding that the method has, of one batch."""
    parts = {"value": agent.value(state, goal=goal)}
    if "phi" not in lacks:
        parts["phi"] = agent.phi(state, goal)
    if "psi" not in lacks:
        parts |= {"psi_state": agent.psi(state), "psi_goal": agent.psi(goal)}
    return parts
