"""Your own environment: collect data in a Gymnasium environment, train on it, and evaluate the agent there.

A robot arm moves its gripper to a target (pip install 'gcb[examples]'); the agent observes the gripper's position.
"""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import tyro

import gcb
from gcb.data import from_episodes, write_dataset
from gcb.envs.adapters import AchievedGoalAdapter
from gcb.envs.spec import EnvSpec
from gcb.evaluation.evaluate import evaluate
from gcb.runs.config import make_config
from gcb.training.trainer import train

ENV = "panda_gym:PandaReach-v3"  # Gymnasium imports the module in front of the colon


class ReachAdapter(AchievedGoalAdapter):
    """Observe "achieved_goal", as the adapter it extends, and report targets on the left and on the right apart."""

    def reset(self, env: gym.Env, seed: int) -> tuple[Any, dict[str, Any]]:
        observation, info = env.reset(seed=seed)
        return observation, {**info, "task": "left" if observation["desired_goal"][1] > 0 else "right"}


def play(env: gym.Env, seed: int, rng: np.random.Generator) -> dict[str, Any]:
    """Play one episode of at most 20 steps with a hand-written policy and noise."""
    observation, _ = env.reset(seed=seed)
    goal, positions, actions, over = observation["desired_goal"], [observation["achieved_goal"]], [], False
    while not over:
        actions.append(np.clip(4 * (goal - positions[-1]) + rng.normal(0, 0.5, 3), -1, 1).astype(np.float32))
        observation, _, success, _, _ = env.step(actions[-1])
        positions.append(observation["achieved_goal"])
        over = success or len(actions) == 20
    reached = np.array([False] * (len(actions) - 1) + [success])
    outcome = {"rewards": reached.astype(np.float32), "terminated": reached, "success": bool(success)}
    return {"observations": np.stack(positions), "actions": np.stack(actions), "goal": goal, **outcome}


def main(out: Path = Path("own-environment"), episodes: int = 60, steps: int = 300) -> None:
    """Collect data, train an agent and measure its success."""
    env, rng = gym.make(ENV), np.random.default_rng(0)
    source = {"env": ENV, "adapter": "achieved"}  # tells `gcb eval` how to evaluate
    write_dataset(from_episodes([play(env, seed, rng) for seed in range(episodes)], config=source), out / "data")
    train(make_config("gcb", "laptop", {"steps": steps, "warmup_steps": 20}), out / "data", out / "run")
    result = evaluate(gcb.load(out / "run"), EnvSpec(ENV, adapter=ReachAdapter()), episodes=40)
    print("success:", result.rate(), *(f"{task} {result.rate(task)}" for task in result.tasks), sep="\n")


if __name__ == "__main__":
    tyro.cli(main)
