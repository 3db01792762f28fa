"""Success rates, videos and image sheets of the scripted expert, for `gcb expert`, the demo and the docs."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gcb.envs import make_env
from gcb.envs.expert import play_expert
from gcb.utils.dataclass_io import EPISODES, check_interval
from gcb.utils.media import tile, write_png, write_video
from gcb.utils.progress import Progress
from gcb.utils.seeding import episode_noise, episode_seed
from gcb.utils.statistics import Rate

if TYPE_CHECKING:
    from gcb.envs.tabletop import TabletopEnv

SHEET_COLUMNS = ("state", "goal", "example: state", "example: goal")


@dataclass
class ExpertRates:
    """Success rates of the expert, with and without noise."""

    noise_free: Rate
    noisy: Rate
    per_task: dict[str, Rate] = field(default_factory=dict)
    mean_steps: float = float("nan")


def measure_expert(env_id: str, episodes: int, noise: float, seed: int, **options: Any) -> ExpertRates:
    """Play `episodes` episodes with seeds that no dataset uses.

    The noise-free rate is over all sampled scenes, including those rejected because the expert failed; the noisy rate
    is over scenes that have a goal image, as in a dataset.
    """
    check_interval("episodes", episodes, EPISODES)
    check_interval("noise", noise, "[0, inf)")
    env = make_env(env_id, **options)
    scenes, steps = 0, 0
    outcomes: dict[str, list[bool]] = {}
    with Progress("expert", episodes, "episodes") as bar:
        for index in range(episodes):
            _, info = env.reset(seed=episode_seed("eval", seed, index))
            scenes += info["attempts"]
            episode = list(play_expert(env, noise, episode_noise("eval", seed, index)))
            steps += len(episode)
            outcomes.setdefault(info["task"], []).append(episode[-1].info["success"])
            bar.advance()
    env.close()
    per_task = {task: Rate(sum(successes), len(successes)) for task, successes in sorted(outcomes.items())}
    noisy = Rate(sum(rate.successes for rate in per_task.values()), episodes)
    return ExpertRates(Rate(episodes, scenes), noisy, per_task, steps / episodes)


def expert_video(env_id: str, path: Path, episodes: int, seed: int, noise: float = 0.0, **options: Any) -> None:
    """Write a video of several episodes side by side, with the goal image below each."""
    env = make_env(env_id, **options)
    clips, goals = [], []
    for index in range(episodes):
        observation, _ = _reset_next_task(env, seed, index)
        goals.append(observation["desired_goal"])
        steps = play_expert(env, noise, episode_noise("eval", seed, index))
        clips.append([observation["observation"], *(step.observation["observation"] for step in steps)])
    env.close()
    longest = max(map(len, clips)) + 8
    padded = [clip + [clip[-1]] * (longest - len(clip)) for clip in clips]
    frames = (tile([*images, *goals], columns=episodes, scale=3) for images in zip(*padded, strict=True))
    write_video(path, frames, fps=12)


def scene_sheet(env_id: str, path: Path, rows: int, seed: int, **options: Any) -> None:
    """Write a PNG with a row per scene: its state and goal, and the state and goal of an analogous example."""
    env = make_env(env_id, analogy="strict", **options)
    images: list[np.ndarray] = []
    for index in range(rows):
        observation, info = _reset_next_task(env, seed, index)
        example = info["example"]
        images += [observation["observation"], observation["desired_goal"], example.state_image, example.goal_image]
    env.close()
    write_png(path, tile(images, columns=len(SHEET_COLUMNS), scale=2, labels=SHEET_COLUMNS * rows))


def _reset_next_task(env: "TabletopEnv", seed: int, index: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Start episode `index`, cycling through the tasks so that a few episodes show them all."""
    task = env.layout.tasks[index % len(env.layout.tasks)]
    return env.reset(seed=episode_seed("eval", seed, index), options={"task": task})
