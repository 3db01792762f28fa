"""Fresh scenes for a test set: drawn from evaluation seeds, so that no training set can hold them."""

import hashlib
import io
import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from gcb.analysis.geometry import as_shown
from gcb.data.formats.npz import Archive
from gcb.data.rollout import flatten_scene
from gcb.envs import ENVS
from gcb.envs.spec import EnvSpec
from gcb.errors import GCBError
from gcb.utils.files import explain_os_errors, write_atomically
from gcb.utils.progress import Progress
from gcb.utils.seeding import episode_noise, episode_seed
from gcb.utils.workers import run_in_order

KEPT, VERSION = "scenes.npz", 2
LONGEST_WAY = 25
"""Steps to a moment on the way, at most: the mean length of the expert's episodes."""


@dataclass(frozen=True, eq=False)
class Scenes:
    """n scenes, one in each row: s, a moment on the way, g, and an analogous pair (s_a, g_a), with what is hidden."""

    state: np.ndarray
    """(n, H, W, 3) the first frame."""
    between: np.ndarray
    """(n, H, W, 3) the noisy expert at work, after a number of steps drawn at random."""
    goal: np.ndarray
    """(n, H, W, 3) the goal image."""
    example_state: np.ndarray
    """(n, H, W, 3) s_a"""
    example_goal: np.ndarray
    """(n, H, W, 3) g_a"""
    hidden_state: np.ndarray
    """(n, D)"""
    hidden_between: np.ndarray
    """(n, D)"""
    hidden_goal: np.ndarray
    """(n, D) as the goal image shows it."""
    pose: np.ndarray
    """(n, 3) the cabinet's x, y and yaw."""
    task: np.ndarray
    """(n,) name of the task."""

    def __len__(self) -> int:
        return len(self.task)

    @property
    def frames(self) -> np.ndarray:
        """(3 n, H, W, 3) the test set: first frames, moments on the way, goals; no frame of any example."""
        return np.concatenate([self.state, self.between, self.goal])

    @property
    def hidden(self) -> np.ndarray:
        """(3 n, D) the hidden states of `frames`."""
        return np.concatenate([self.hidden_state, self.hidden_between, self.hidden_goal])

    @property
    def scene(self) -> np.ndarray:
        """(3 n,) the scene that each of `frames` is of."""
        return np.tile(np.arange(len(self)), 3)


@dataclass(frozen=True)
class Job:
    """What decides every byte of a test set, but for its size."""

    env_spec: EnvSpec
    seed: int
    noise: float = 0.3


def fresh_scenes(job: Job, count: int, keep: Path, *, workers: int = 1, quiet: bool = False) -> Scenes:
    """The first `count` scenes; they are kept in the folder `keep`, and what is kept is not made again."""
    path, key = keep / KEPT, _key(job)
    kept = _read(path, key)
    if kept is not None and len(kept) >= count:
        return kept if len(kept) == count else _cut(kept, count)
    SceneRunner(job).close()  # what is impossible is better told here than by a worker that dies of it
    rows: list[Mapping[str, Any]] = []
    results = run_in_order(SceneRunner, job, 0, min(workers, count))
    with closing(results), Progress("fresh scenes", count, "scenes", quiet=quiet) as bar:
        for row in islice(results, count):
            rows.append(row)
            bar.advance()
    scenes = Scenes(**{one.name: np.stack([row[one.name] for row in rows]) for one in fields(Scenes)})
    buffer = io.BytesIO()
    np.savez_compressed(buffer, key=np.array(key), **{one.name: getattr(scenes, one.name) for one in fields(Scenes)})
    with explain_os_errors(path):
        keep.mkdir(parents=True, exist_ok=True)
        write_atomically(path, buffer.getvalue())
    return scenes


class SceneRunner:
    """Makes scene after scene, each from its own seed."""

    renderer = ""

    def __init__(self, job: Job) -> None:
        if job.env_spec.env not in ENVS:
            raise GCBError(f"fresh scenes are made in {' or '.join(ENVS)}; the agent's world is {job.env_spec.env!r}")
        self.job, self.env = job, job.env_spec.make("strict")

    def run(self, index: int) -> dict[str, Any]:
        job = self.job
        observation, info = self.env.reset(seed=episode_seed("eval", job.seed, index))
        example, numbers = info["example"], dict(flatten_scene(info["scene"]))
        button_task = np.array([info["task"] == "button"])
        image, hidden = self._moment(episode_noise("eval", job.seed, index))
        return {
            "state": observation["observation"],
            "between": image,
            "goal": observation["desired_goal"],
            "example_state": example.state_image,
            "example_goal": example.goal_image,
            "hidden_state": info["state"],
            "hidden_between": hidden,
            "hidden_goal": as_shown(info["goal_state"][None], info["state"][None], button_task)[0],
            "pose": np.array([numbers["cabinet_xy.0"], numbers["cabinet_xy.1"], numbers["cabinet_yaw"]]),
            "task": np.array(info["task"]),
        }

    def close(self) -> None:
        self.env.close()

    def _moment(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """What the noisy expert has come to after some steps, or at success: picture and hidden state."""
        from gcb.envs.expert import play_expert

        steps = int(rng.integers(1, LONGEST_WAY + 1))
        env: Any = self.env.unwrapped
        for step in islice(play_expert(env, self.job.noise, rng), steps):
            if step.info["success"]:
                break
        return step.observation["observation"], step.info["state"]


def _key(job: Job) -> str:
    """Another world, seed or noise is another test set."""
    plain = {"env": job.env_spec.env, "options": dict(job.env_spec.options), "seed": job.seed, "noise": job.noise}
    plain |= {"version": VERSION}
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()


def _read(path: Path, key: str) -> Scenes | None:
    """What was kept, if it is whole and of this key; whatever else is there is made anew."""
    try:
        kept = Archive(path)
        if str(kept.array("key")) != key:
            return None
        return Scenes(**{one.name: kept.array(one.name) for one in fields(Scenes)})
    except (GCBError, KeyError):
        return None


def _cut(scenes: Scenes, count: int) -> Scenes:
    return Scenes(**{one.name: getattr(scenes, one.name)[:count] for one in fields(Scenes)})
