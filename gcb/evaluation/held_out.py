"""Action-prediction error on held-out data: an evaluation that needs no environment."""

from dataclasses import dataclass

import numpy as np

from gcb.agent.agent import Agent
from gcb.data import Dataset, GoalSampling, Sampler
from gcb.data.sampler import lacks_original_goals
from gcb.errors import GCBError
from gcb.runs.dataset_record import fingerprint, shapes_of
from gcb.utils.progress import Progress
from gcb.utils.statistics import Estimate, bootstrap


@dataclass(frozen=True)
class ActionError:
    """Mean squared errors of actions, with intervals over episodes, since steps of one episode are not independent."""

    true_goal: Estimate
    """The error of the agent conditioned on the episode's goal."""
    shuffled_goal: Estimate
    """The error of the agent conditioned on the goal of another episode: shows how much it uses the goal."""
    mean_action: Estimate
    """The error of the mean action of these transitions, the best constant prediction."""
    dimensions: tuple[float, ...]
    """`true_goal` by dimension of the action."""
    episodes: int
    """Number of episodes that the transitions come from."""


def action_error(
    agent: Agent, dataset: Dataset, transitions: int = 4000, seed: int = 0, *, batch: int = 250, quiet: bool = False
) -> ActionError:
    """Measure the error of the agent's mean actions on transitions sampled from a dataset.

    Goals are the episodes' own or, if they have none, future frames. An agent trained on successful episodes only is
    measured on successful episodes only.
    """
    _check(agent, dataset, transitions)
    goals = GoalSampling(p_original=1, p_future=0, p_next_frame=0)
    if lacks_original_goals(dataset):
        goals = goals.without_original()
    only_successful = (
        agent.run is not None and agent.run.config.only_successful and bool(np.any(dataset.episode_success))
    )
    sampler = Sampler(dataset, goals, np.random.default_rng(seed), only_successful=only_successful)
    indices = sampler.sample_indices(transitions)
    transition, states = indices.transition[:, 0], indices.state[:, 0]  # groups of one
    actions = np.asarray(dataset.actions)[transition]
    episode = dataset.episode_of_transition[transition]
    other_episodes = _rows_of_other_episodes(episode, seed)
    true_goal, shuffled_goal = np.empty_like(actions), np.empty_like(actions)
    with Progress("predicting actions", transitions, "transitions", quiet=quiet) as bar:
        for start in range(0, transitions, batch):
            rows = slice(start, start + batch)
            initial_state, state = sampler.gather(indices.initial_state[rows]), sampler.gather(states[rows])
            for predicted, goal in (
                (true_goal, indices.goal[rows]),
                (shuffled_goal, indices.goal[other_episodes[rows]]),
            ):
                predicted[rows] = agent.act(state, goal=sampler.gather(goal), initial_state=initial_state)
            bar.advance(len(state))
    squared = (true_goal - actions) ** 2
    return ActionError(
        true_goal=_mean(squared, episode),
        shuffled_goal=_mean((shuffled_goal - actions) ** 2, episode),
        mean_action=_mean((actions.mean(0) - actions) ** 2, episode),
        dimensions=tuple(float(value) for value in squared.mean(0)),
        episodes=len(np.unique(episode)),
    )


def _check(agent: Agent, dataset: Dataset, transitions: int) -> None:
    name, shapes, trained = dataset.path or "the dataset", shapes_of(dataset), agent.shapes
    if transitions < 2:
        raise GCBError(f"transitions is {transitions}; it must be at least 2.")
    if dataset.episodes < 2:
        raise GCBError(f"{name} has one episode; at least 2 are needed, to exchange their goals.")
    if shapes != trained:
        raise GCBError(
            f"{name} has observations {shapes.observation} and {shapes.action} action dimensions; "
            f"the agent was trained on {trained.observation} and {trained.action}."
        )
    if agent.run is not None and agent.run.dataset.fingerprint == fingerprint(dataset):
        raise GCBError(f"{name} is the dataset that the agent was trained on; use another one.")


def _rows_of_other_episodes(episode: np.ndarray, seed: int) -> np.ndarray:
    """Sample for each row a row of another episode."""
    rng, rows = np.random.default_rng([seed, 1]), np.arange(len(episode))
    if (episode == episode[0]).all():
        raise GCBError("all sampled transitions are of one episode; use more transitions.")
    other = rng.permutation(rows)
    while (same := episode[other] == episode).any():
        other[same] = rng.integers(len(rows), size=same.sum())
    return other


def _mean(squared: np.ndarray, episode: np.ndarray) -> Estimate:
    """Return the mean over transitions, with an interval by resampling whole episodes."""
    _, group = np.unique(episode, return_inverse=True)
    sums, counts = np.bincount(group, squared.mean(1)), np.bincount(group)
    return bootstrap(lambda total, count: float(total.sum() / count.sum()), sums, counts)
