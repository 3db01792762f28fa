"""How well an agent foretells the actions of data it has not seen: an evaluation that needs no environment."""

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
    """Mean squared errors of actions, with intervals over episodes: steps of one episode are not independent."""

    true_goal: Estimate
    """Of the agent, told the goal of the episode."""
    shuffled_goal: Estimate
    """Of the same agent, told the goal of another episode: what the goal is worth to it."""
    mean_action: Estimate
    """Of the best single action for all of these transitions: what there is to foretell."""
    dimensions: tuple[float, ...]
    """Of the agent told its goal, dimension by dimension of the action."""
    episodes: int
    """Episodes that the transitions come from."""


def action_error(
    agent: Agent, dataset: Dataset, transitions: int = 4000, seed: int = 0, *, batch: int = 250, quiet: bool = False
) -> ActionError:
    """The errors of the agent's mean actions on transitions drawn from a dataset.

    Goals are the episodes' own; where these are missing, frames of their future. An agent that learned from successful
    episodes only is measured on such: it was never to foretell how others fail.
    """
    _check(agent, dataset, transitions)
    shares = GoalSampling(p_original=1, p_future=0, p_next_frame=0)
    if lacks_original_goals(dataset):
        shares = shares.without_original()
    only_successful = (
        agent.run is not None and agent.run.config.only_successful and bool(np.any(dataset.episode_success))
    )
    sampler = Sampler(dataset, shares, np.random.default_rng(seed), only_successful=only_successful)
    indices = sampler.sample_indices(transitions)
    actions = np.asarray(dataset.actions)[indices.transition]
    episode = dataset.episode_of_transition[indices.transition]
    strangers = _of_other_episodes(episode, seed)
    true_goal, shuffled_goal = np.empty_like(actions), np.empty_like(actions)
    with Progress("foretelling", transitions, "transitions", quiet=quiet) as bar:
        for start in range(0, transitions, batch):
            rows = slice(start, start + batch)
            initial_state, state = sampler.gather(indices.initial_state[rows]), sampler.gather(indices.state[rows])
            for foretold, goal in ((true_goal, indices.goal[rows]), (shuffled_goal, indices.goal[strangers[rows]])):
                foretold[rows] = agent.act(state, goal=sampler.gather(goal), initial_state=initial_state)
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
    name, found = dataset.path or "the dataset", shapes_of(dataset)
    if transitions < 2:
        raise GCBError(f"transitions is {transitions}; it must be at least 2.")
    if dataset.episodes < 2:
        raise GCBError(f"{name} has one episode; at least 2 are needed, whose goals can be exchanged.")
    if found != agent.shapes:
        wanted = agent.shapes
        raise GCBError(
            f"{name} has observations {found.observation} and actions of {found.action} numbers; "
            f"the agent was trained on {wanted.observation} and {wanted.action}."
        )
    if agent.run is not None and agent.run.dataset.fingerprint == fingerprint(dataset):
        raise GCBError(f"{name} is what the agent was trained on; give it data that it has not seen.")


def _of_other_episodes(episode: np.ndarray, seed: int) -> np.ndarray:
    """For each row another one, drawn from those of other episodes."""
    rng, rows = np.random.default_rng([seed, 1]), np.arange(len(episode))
    if (episode == episode[0]).all():
        raise GCBError("all transitions drawn are of one episode; draw more of them.")
    strangers = rng.permutation(rows)
    while (same := episode[strangers] == episode).any():
        strangers[same] = rng.integers(len(rows), size=same.sum())
    return strangers


def _mean(squared: np.ndarray, episode: np.ndarray) -> Estimate:
    """The mean over transitions, resampled by whole episodes."""
    _, place = np.unique(episode, return_inverse=True)
    sums, counts = np.bincount(place, squared.mean(1)), np.bincount(place)
    return bootstrap(lambda total, count: float(total.sum() / count.sum()), sums, counts)
