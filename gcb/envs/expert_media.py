"""Pictures and figures of the worlds and their expert, for `gcb expert`, the demo and the docs."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gcb.envs import TabletopEnv, make_env
from gcb.envs.expert import play_expert
from gcb.errors import GCBError
from gcb.utils.media import tile, write_png, write_video
from gcb.utils.progress import Progress
from gcb.utils.seeding import episode_noise, episode_seed
from gcb.utils.statistics import Rate

SHEET_COLUMNS = ("state", "goal", "example: state", "example: goal")


@dataclass
class ExpertRates:
    """How often the expert does its task, with and without noise."""

    noise_free: Rate
    noisy: Rate
    per_task: dict[str, Rate] = field(default_factory=dict)
    mean_steps: float = float("nan")


def measure_expert(env_id: str, episodes: int, noise: float, seed: int, **options: Any) -> ExpertRates:
    """Play `episodes` episodes of seeds that no dataset uses.

    The noise-free rate counts every scene that was drawn, the ones rejected because the expert failed included; the
    noisy rate is over scenes that have a goal image, as in a dataset.
    """
    if episodes < 1:
        raise GCBError(f"episodes is {episodes}; it must be at least 1.")
    env = make_env(env_id, **options)
    draws, steps = 0, 0
    outcomes: dict[str, list[bool]] = {}
    with Progress("expert", episodes, "episodes") as bar:
        for index in range(episodes):
            _, info = env.reset(seed=episode_seed("eval", seed, index))
            draws += info["draws"]
            episode = list(play_expert(env, noise, episode_noise("eval", seed, index)))
            steps += len(episode)
            outcomes.setdefault(info["task"], []).append(episode[-1].info["success"])
            bar.advance()
    env.close()
    per_task = {task: Rate(sum(done), len(done)) for task, done in sorted(outcomes.items())}
    noisy = Rate(sum(rate.successes for rate in per_task.values()), episodes)
    return ExpertRates(Rate(episodes, draws), noisy, per_task, steps / episodes)


def expert_video(env_id: str, path: Path, episodes: int, seed: int, noise: float = 0.0, **options: Any) -> None:
    """Several episodes side by side: above what the expert does, below the goal image it pursues."""
    env = make_env(env_id, **options)
    clips, goals = [], []
    for index in range(episodes):
        observation, _ = _reset_in_turn(env, seed, index)
        goals.append(observation["desired_goal"])
        frames, rng = [observation["observation"]], episode_noise("eval", seed, index)
        frames += [step.observation["observation"] for step in play_expert(env, noise, rng)]
        clips.append(frames)
    env.close()
    longest = max(map(len, clips)) + 8
    padded = [clip + [clip[-1]] * (longest - len(clip)) for clip in clips]
    rows = (tile([*now, *goals], columns=episodes, scale=3) for now in zip(*padded, strict=True))
    write_video(path, rows, fps=12)


def scene_sheet(env_id: str, path: Path, rows: int, seed: int, **options: Any) -> None:
    """A picture of states beside goals beside an analogous pair, of scenes drawn by seed."""
    env = make_env(env_id, analogy="strict", **options)
    pictures: list[np.ndarray] = []
    for index in range(rows):
        observation, info = _reset_in_turn(env, seed, index)
        example = info["example"]
        pictures += [observation["observation"], observation["desired_goal"], example.state_image, example.goal_image]
    env.close()
    write_png(path, tile(pictures, columns=len(SHEET_COLUMNS), scale=2, labels=SHEET_COLUMNS * rows))


def _reset_in_turn(env: TabletopEnv, seed: int, index: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Episode number `index`, its task taken in turn, so that a few episodes show every one."""
    task = env.layout.tasks[index % len(env.layout.tasks)]
    return env.reset(seed=episode_seed("eval", seed, index), options={"task": task})
