"""Your own images: train on recordings of camera images and actions, without rewards, goals or a simulator.

A recording is a directory of one episode: its images, 00.png, 01.png, …, and actions.csv with a row for each action
between them, in [-1, 1]. `--recordings` names a directory of recordings; if it does not exist, a simulated robot arm is
recorded first (pip install 'gcb[examples]').
"""

from pathlib import Path

import numpy as np
import tyro
from PIL import Image

import gcb
from gcb.data import contact_sheet, from_episodes, write_dataset
from gcb.evaluation.held_out import action_error
from gcb.runs.config import make_config
from gcb.training.trainer import train


def read(recording: Path) -> dict[str, np.ndarray]:
    """Read one episode: T + 1 images, scaled to 64 × 64 pixels, and T actions."""
    images = [Image.open(path).convert("RGB").resize((64, 64)) for path in sorted(recording.glob("*.png"))]
    actions = np.loadtxt(recording / "actions.csv", np.float32, delimiter=",", ndmin=2)
    return {"observations": np.stack([np.asarray(image) for image in images]), "actions": actions}


def record(recordings: Path, episodes: int) -> None:
    """Record a robot arm that moves to random places, ten steps each. Replace this by your own recordings."""
    from panda_gym.envs import PandaReachEnv

    camera = {"render_width": 96, "render_height": 96, "render_distance": 0.7, "render_yaw": 60}
    env = PandaReachEnv(renderer="Tiny", render_target_position=np.array([-0.1, 0, 0.2]), **camera)
    for number in range(episodes):
        (observation, _), actions = env.reset(seed=number), []
        (recording := recordings / f"{number:03}").mkdir(parents=True)
        for step in range(11):
            Image.fromarray(np.asarray(env.render())).save(recording / f"{step:02}.png")
            actions.append(np.clip(5 * (observation["desired_goal"] - observation["achieved_goal"]), -1, 1))
            observation, *_ = env.step(actions[-1])
        np.savetxt(recording / "actions.csv", actions[:-1], fmt="%.3f", delimiter=",")


def main(recordings: Path = Path("recordings"), out: Path = Path("own-images"), episodes: int = 40, steps: int = 200):
    """Write a dataset and a contact sheet of it, train an agent, and measure its error on held-out recordings."""
    if not recordings.exists():
        record(recordings, episodes)
    data = [read(recording) for recording in sorted(recordings.iterdir())]
    training, held_out = from_episodes(data[len(data) // 5 :]), from_episodes(data[: len(data) // 5])
    write_dataset(training, out / "data")
    contact_sheet(training, out / "data.png")  # look at it before you train
    goals = {"p_original": 0.0, "p_future": 1.0}  # later images of the same episode
    train(make_config("gcb", "laptop", {"steps": steps, "warmup_steps": 10, "goals": goals}), out / "data", out / "run")
    error = action_error(gcb.load(out / "run"), held_out, transitions=100)
    print(f"squared error of the actions: {error.true_goal}, given a wrong goal {error.shuffled_goal}")


if __name__ == "__main__":
    tyro.cli(main)
