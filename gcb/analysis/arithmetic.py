"""Analogy arithmetic: the goal that an example means for a state, as a point in ψ's space, and how good it is.

ĝ = ψ(s) + φ(s_a, g_a) - φ(g_a, g_a); the picture of it is its nearest neighbour (ℓ2) among the frames of a test set of
fresh scenes. The scene's own frames are left out, for its goal is not to be found but inferred; what is found shows
another cabinet, so that it can be right in two ways:

function    what was to be done is done: `gcb.analysis.geometry.same_function`
pose        the cabinet stands as in s: within 15° and .05 m

Both are counted against neighbours of other points, from chance to the true goal (`POINTS`). An example's cabinet
stands near that of s (σ 5° and .08 m in each direction), so that pose alone may also be borrowed from the example; the
point ψ(g_a) says how far that gets.
"""

from dataclasses import dataclass

import numpy as np

from gcb.agent.agent import Agent, Example
from gcb.analysis.embed import in_batches, missing_embeddings
from gcb.analysis.geometry import pose_error, same_function, same_pose
from gcb.analysis.neighbours import nearest
from gcb.analysis.scenes import Scenes
from gcb.errors import GCBError
from gcb.utils.statistics import Estimate, Rate, bootstrap

POINTS = {
    "arithmetic": "ψ(s) + φ(s_a, g_a) - φ(g_a, g_a)",
    "psi_difference": "ψ(s) + ψ(g_a) - ψ(s_a)",
    "example_goal": "ψ(g_a): the example itself",
    "state": "ψ(s): no example",
    "random": "a random frame",
    "goal": "ψ(g): the true goal",
}
"""Whose neighbours are judged."""


@dataclass(frozen=True, eq=False)
class Judged:
    """The neighbours of one kind of point, one for each scene."""

    neighbour: np.ndarray
    """(n,) index into the test set's frames."""
    function: np.ndarray
    """(n,) bool: what was to be done is done."""
    pose: np.ndarray
    """(n,) bool: the cabinet stands as in s."""
    yaw_error: np.ndarray
    """(n,) degrees"""
    position_error: np.ndarray
    """(n,) metres"""

    def summary(self, task: np.ndarray) -> "Summary":
        """Shares and mean errors with their intervals."""
        rates = {name: Rate(int(self.function[task == name].sum()), int((task == name).sum())) for name in set(task)}
        return Summary(
            function=Rate(int(self.function.sum()), len(self.function)),
            pose=Rate(int(self.pose.sum()), len(self.pose)),
            both=Rate(int((self.function & self.pose).sum()), len(self.pose)),
            yaw_error=bootstrap(np.mean, self.yaw_error),
            position_error=bootstrap(np.mean, self.position_error),
            function_by_task={name: rates[name] for name in sorted(rates)},
        )


@dataclass(frozen=True)
class Summary:
    """How often a kind of point finds the right function and the right pose."""

    function: Rate
    pose: Rate
    both: Rate
    yaw_error: Estimate
    position_error: Estimate
    function_by_task: dict[str, Rate]


@dataclass(frozen=True, eq=False)
class Arithmetic:
    """What came of the arithmetic on a test set."""

    judged: dict[str, Judged]
    """By the name of the point (`POINTS`), as far as the method has what it needs."""
    towards: Rate | None
    """How often ĝ is nearer to ψ(g) than ψ(s) is: whether the step goes in the right direction at all."""


def infer_goal(agent: Agent, state: np.ndarray, example: Example) -> np.ndarray:
    """The goal that the example (s_a, g_a) means for `state`: ψ(s) + φ(s_a, g_a) - φ(g_a, g_a), single or batched."""
    before, after = example
    return agent.psi(state) + agent.phi(before, after) - agent.phi(after, after)


def measure(agent: Agent, scenes: Scenes, seed: int) -> Arithmetic:
    """Judge the neighbours of every kind of point; `seed` draws the random ones."""
    if len(scenes) < 2:
        raise GCBError(f"the test set has {len(scenes)} scenes; at least 2 are needed: a neighbour is of another one.")
    if reason := missing_embeddings(agent).get("psi"):
        raise GCBError(f"{reason}: no arithmetic.")
    points = _points(agent, scenes)
    keys, own = in_batches(agent.psi, scenes.frames), np.arange(len(scenes))
    found = {name: nearest(point, keys, exclude=(own, scenes.scene))[0][:, 0] for name, point in points.items()}
    found["random"] = _random_others(scenes, np.random.default_rng(seed))
    towards = None
    if "arithmetic" in points:
        closer = _length(points["arithmetic"] - points["goal"]) < _length(points["state"] - points["goal"])
        towards = Rate(int(closer.sum()), len(closer))
    return Arithmetic({name: judge(scenes, found[name]) for name in POINTS if name in found}, towards)


def judge(scenes: Scenes, neighbour: np.ndarray) -> Judged:
    """Compare one frame of the test set for each scene with that scene's goal and pose."""
    hidden, pose = scenes.hidden[neighbour], scenes.pose[scenes.scene[neighbour]]
    yaw, position = pose_error(pose, scenes.pose)
    return Judged(
        neighbour,
        same_function(hidden, pose, scenes.hidden_goal, scenes.pose, scenes.task == "button"),
        same_pose(pose, scenes.pose),
        yaw,
        position,
    )


def _points(agent: Agent, scenes: Scenes) -> dict[str, np.ndarray]:
    """(n, d) the points of each kind that the method can make."""
    kinds = ("state", "goal", "example_state", "example_goal")
    psi = {name: in_batches(agent.psi, getattr(scenes, name)) for name in kinds}
    points = {name: psi[name] for name in ("state", "goal", "example_goal")}
    points["psi_difference"] = psi["state"] + psi["example_goal"] - psi["example_state"]
    if "phi" not in missing_embeddings(agent):
        inputs = (scenes.state, scenes.example_state, scenes.example_goal)
        points["arithmetic"] = in_batches(lambda state, *example: infer_goal(agent, state, example), *inputs)
    return points


def _random_others(scenes: Scenes, rng: np.random.Generator) -> np.ndarray:
    """A frame of another scene for each scene."""
    other = (np.arange(len(scenes)) + rng.integers(1, len(scenes), size=len(scenes))) % len(scenes)
    return other + len(scenes) * rng.integers(3, size=len(scenes))


def _length(rows: np.ndarray) -> np.ndarray:
    return np.linalg.norm(rows, axis=1)
