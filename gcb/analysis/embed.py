"""Tasks sampled from a dataset with an agent's embeddings of them: φ, ψ and the critic's value."""

import os
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gcb.agent.agent import Agent
from gcb.analysis.geometry import as_shown
from gcb.data import Dataset, open_dataset
from gcb.envs import ENVS
from gcb.errors import GCBError
from gcb.runs.dataset_record import shapes_of
from gcb.runs.run_dir import Run

BATCH_SIZE = 256


@dataclass(frozen=True, eq=False)
class Tasks:
    """n tasks (s, g), one in each row. Fields that the method or the dataset does not have are None."""

    state_frame: np.ndarray
    """(n,) index of s in the dataset's frames."""
    goal_frame: np.ndarray
    """(n,) index of g in the dataset's frames."""
    episode: np.ndarray
    """(n,) the episode of both."""
    task: np.ndarray
    """(n,) the task's name; "all" if the dataset does not distinguish tasks."""
    value: np.ndarray
    """(n,) V(s, g); NaN if the agent comes without its value functions."""
    phi: np.ndarray | None = None
    """(n, d) φ(s, g)."""
    psi_state: np.ndarray | None = None
    """(n, d) ψ(s)."""
    psi_goal: np.ndarray | None = None
    """(n, d) ψ(g)."""
    hidden_state: np.ndarray | None = None
    """(n, D) the hidden state of s."""
    hidden_goal: np.ndarray | None = None
    """(n, D) the hidden state of g, as its image shows it."""

    def __len__(self) -> int:
        return len(self.state_frame)

    def rows(self, index: Any) -> "Tasks":
        """Return the tasks selected by a slice or an array of indices or booleans."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: column[index] for name, column in columns.items() if column is not None})


def open_run_data(run: Run, data: str | os.PathLike[str] | None = None) -> Dataset:
    """Open the dataset at `data`, by default the run's training data; observations must have the shape of the run's."""
    path = data if data is not None else run.dataset.path
    if path is None:
        raise GCBError(_without_data(run))
    if data is None and not Path(path).is_dir():
        raise GCBError(f"the training data of {run.path} is no longer at {path}; pass its new path with --data")
    dataset = open_dataset(path)
    actual, expected = tuple(shapes_of(dataset).observation), tuple(run.dataset.shapes.observation)
    if actual != expected:
        raise GCBError(f"{path} has observations {actual}; {run.path} was trained on {expected}")
    return dataset


def _without_data(run: Run) -> str:
    """Return why a run has no path to its dataset, and how to get the dataset."""
    data, command = run.dataset, run.dataset.collect_command()
    if data.name is None:
        return f"{run.path} was trained on data in memory; pass a dataset with --data"
    lacks = f"{run.path.name} comes without its dataset, {data.transitions:,} transitions"
    if command is None:
        return f"{lacks} named {data.name}; pass it with --data DATA"
    return f"{lacks}; collect it with `{command}` and pass it with --data DATA"


def sample_tasks(
    agent: Agent,
    dataset: Dataset,
    count: int,
    seed: int,
    *,
    batch_size: int = BATCH_SIZE,
    advance: Callable[[int], object] | None = None,
) -> Tasks:
    """Sample `count` different tasks in random order: s is any frame with an action, g its episode's goal.

    If no episode has a goal, its last frame takes that place; otherwise episodes without one are skipped. Returns all
    tasks if there are fewer than `count`. Calls `advance` with the number of tasks embedded since the last call.
    """
    if count < 1:
        raise GCBError(f"count is {count}; it must be at least 1.")
    state, goal, episode = _sample(dataset, count, np.random.default_rng(seed))
    missing = missing_embeddings(agent)
    columns: dict[str, list[np.ndarray]] = {}
    for start in range(0, len(state), batch_size):
        rows = slice(start, start + batch_size)
        embeddings = _embed(agent, dataset.frames[state[rows]], dataset.frames[goal[rows]], missing)
        for name, values in embeddings.items():
            columns.setdefault(name, []).append(values)
        if advance is not None:
            advance(len(state[rows]))
    task = _task_names(dataset, episode)
    return Tasks(
        state_frame=state,
        goal_frame=goal,
        episode=episode,
        task=task,
        hidden_state=None if dataset.states is None else np.asarray(dataset.states[state]),
        hidden_goal=_hidden_goals(dataset, goal, episode, task),
        **{name: np.concatenate(values) for name, values in columns.items()},
    )


def missing_embeddings(agent: Agent) -> dict[str, str]:
    """Return which of "phi" and "psi" the agent's method does not have, each with a reason for the user."""
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


def in_batches(embed: Callable[..., np.ndarray], *inputs: np.ndarray) -> np.ndarray:
    """Apply `embed` to the rows of the inputs, a batch at a time."""
    starts = range(0, len(inputs[0]), BATCH_SIZE)
    return np.concatenate([embed(*(array[start : start + BATCH_SIZE] for array in inputs)) for start in starts])


def _sample(dataset: Dataset, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return state frames, goal frames and episodes of random tasks."""
    goals = np.asarray(dataset.episode_goal_frame)
    if (goals < 0).all():
        goals = np.asarray(dataset.episode_first_frame) + np.asarray(dataset.episode_length)
    eligible = np.flatnonzero(goals[dataset.episode_of_transition] >= 0)
    transition = rng.permutation(eligible)[:count]
    episode = dataset.episode_of_transition[transition]
    return dataset.frame_of_transition[transition], goals[episode], episode


def _hidden_goals(dataset: Dataset, goal: np.ndarray, episode: np.ndarray, task: np.ndarray) -> np.ndarray | None:
    if dataset.states is None:
        return None
    hidden = np.asarray(dataset.states[goal])
    if dataset.config.get("env") not in ENVS:
        return hidden
    first = np.asarray(dataset.states[np.asarray(dataset.episode_first_frame)[episode]])
    return as_shown(hidden, first, task == "button")


def _task_names(dataset: Dataset, episode: np.ndarray) -> np.ndarray:
    if dataset.episode_task is None:
        return np.full(len(episode), "all")
    return np.asarray(dataset.task_names)[np.asarray(dataset.episode_task)[episode]]


def _embed(agent: Agent, state: np.ndarray, goal: np.ndarray, missing: dict[str, str]) -> dict[str, np.ndarray]:
    """Return every embedding that the method has, for one batch."""
    embeddings = {"value": agent.value(state, goal=goal) if agent.has_value else np.full(len(state), np.nan)}
    if "phi" not in missing:
        embeddings["phi"] = agent.phi(state, goal)
    if "psi" not in missing:
        embeddings |= {"psi_state": agent.psi(state), "psi_goal": agent.psi(goal)}
    return embeddings
