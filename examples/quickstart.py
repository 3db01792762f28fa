"""Quickstart: show an agent a task in one scene and watch it do the same in another.

The agent comes with the package; to watch one that you trained:

    python examples/quickstart.py --agent runs/gcb
"""

from pathlib import Path

import gymnasium as gym
import numpy as np
import tyro

import gcb  # registers the environments
from gcb.agent import Agent
from gcb.utils.media import tile, write_video

LABELS = ("example: before", "example: after", "agent")


def play(agent: Agent, env: gym.Env, seed: int) -> tuple[list[np.ndarray], bool]:
    """Play one episode by analogy; return its frames and whether the task was done."""
    observation, info = env.reset(seed=seed)
    example = info["example"].state_image, info["example"].goal_image  # two images of another scene
    policy = agent.start_task(observation["observation"], example=example)
    rng, frames, over = np.random.default_rng(seed), [observation["observation"]], False
    while not over:  # the episode ends when the task is done, or after 75 steps
        noise = 0.5 * rng.standard_normal(5)  # samples actions with half of the policy's standard deviation
        action, _ = policy.step(frames[-1], noise)
        observation, _, terminated, truncated, info = env.step(action)
        frames.append(observation["observation"])
        over = terminated or truncated
    return [tile([*example, frame], columns=3, scale=3, labels=LABELS) for frame in frames], info["success"]


def main(agent: str = "button-drawer", episodes: int = 6, seed: int = 1, out: Path = Path("quickstart.gif")) -> None:
    """Play episodes in new scenes, each with an example from another scene, and write a video of them."""
    player = gcb.load(agent)
    env = gym.make("gcb/ButtonDrawer-v0", analogy="strict")
    video, successes = [], 0
    for episode in range(episodes):
        frames, success = play(player, env, seed + episode)
        print(f"episode {episode}: {'done' if success else 'not done'} after {len(frames) - 1} steps")
        video += frames + frames[-1:] * 8  # holds the last frame
        successes += success
    write_video(out, video, fps=12)
    print(f"{successes} of {episodes} tasks done; video: {out}")


if __name__ == "__main__":
    tyro.cli(main)
