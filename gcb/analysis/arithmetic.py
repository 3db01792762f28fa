"""Analogy arithmetic: infer the goal of an analogy as a point in ψ's space, and measure how good it is.

ĝ = ψ(s) + φ(s_a, g_a) - φ(g_a, g_a). The point is shown as its nearest neighbour (ℓ2) among the frames of a test set of
fresh scenes. The scene's own frames are excluded, since its goal is to be inferred, not looked up. The retrieved frame
shows another cabinet and can be right in two ways:

function    the task is done: `gcb.analysis.geometry.same_function`
pose        the cabinet stands as in s: within 15° and .05 m

Both are compared with the neighbours of other estimates, from chance to the true goal (`ESTIMATES`). An example's
cabinet stands near that of s (σ 5° and .08 m in each direction), so the pose alone could be copied from the example;
the estimate ψ(g_a) shows how far that gets.
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

ESTIMATES = {
    "arithmetic": "ψ(s) + φ(s_a, g_a) - φ(g_a, g_a)",
    "psi_difference": "ψ(s) + ψ(g_a) - ψ(s_a)",
    "example_goal": "ψ(g_a): the example itself",
    "state": "ψ(s): no example",
    "random": "a random frame",
    "goal": "ψ(g): the true goal",
}
"""Estimates of the goal whose nearest frames are evaluated."""


@dataclass(frozen=True)
class RetrievalMetrics:
    """How often the nearest frame has the right function and the right pose."""

    function: Rate
    pose: Rate
    both: Rate
    yaw_error: Estimate
    position_error: Estimate
    function_by_task: dict[str, Rate]


@dataclass(frozen=True, eq=False)
class Retrieval:
    """The frame nearest to one estimate of the goal, for each scene."""

    neighbour: np.ndarray
    """(n,) index into the test set's frames."""
    function: np.ndarray
    """(n,) bool: the task is done."""
    pose: np.ndarray
    """(n,) bool: the cabinet stands as in s."""
    yaw_error: np.ndarray
    """(n,) degrees"""
    position_error: np.ndarray
    """(n,) metres"""

    def metrics(self, task: np.ndarray) -> RetrievalMetrics:
        """Return rates and mean errors with their intervals; `task` names each scene's task."""
        return RetrievalMetrics(
            function=_rate(self.function),
            pose=_rate(self.pose),
            both=_rate(self.function & self.pose),
            yaw_error=bootstrap(np.mean, self.yaw_error),
            position_error=bootstrap(np.mean, self.position_error),
            function_by_task={name: _rate(self.function[task == name]) for name in sorted(set(task))},
        )


@dataclass(frozen=True, eq=False)
class ArithmeticResult:
    """The result of analogy arithmetic on a test set."""

    retrievals: dict[str, Retrieval]
    """By name (`ESTIMATES`), for the estimates that the method can compute."""
    closer_to_goal: Rate | None
    """How often ĝ is nearer to ψ(g) than ψ(s) is, that is, whether the step has the right direction."""


def infer_goal(agent: Agent, state: np.ndarray, example: Example) -> np.ndarray:
    """Return ψ(s) + φ(s_a, g_a) - φ(g_a, g_a), the goal of the example (s_a, g_a) for `state`; single or batched."""
    before, after = example
    return agent.psi(state) + agent.phi(before, after) - agent.phi(after, after)


def evaluate_arithmetic(agent: Agent, scenes: Scenes, seed: int) -> ArithmeticResult:
    """Evaluate the frame nearest to each estimate of the goal; `seed` selects the random frames."""
    if len(scenes) < 2:
        raise GCBError(f"the test set has {len(scenes)} scenes; at least 2 are needed.")
    if reason := missing_embeddings(agent).get("psi"):
        raise GCBError(f"{reason}: analogy arithmetic needs it.")
    points = _estimates(agent, scenes)
    keys, own = in_batches(agent.psi, scenes.frames), np.arange(len(scenes))
    neighbours = {name: nearest(point, keys, exclude=(own, scenes.scene))[0][:, 0] for name, point in points.items()}
    neighbours["random"] = _random_frames(scenes, np.random.default_rng(seed))
    closer_to_goal = None
    if "arithmetic" in points:
        before, after = (np.linalg.norm(points[name] - points["goal"], axis=1) for name in ("state", "arithmetic"))
        closer_to_goal = _rate(after < before)
    retrievals = {name: evaluate_retrieval(scenes, neighbours[name]) for name in ESTIMATES if name in neighbours}
    return ArithmeticResult(retrievals, closer_to_goal)


def evaluate_retrieval(scenes: Scenes, neighbour: np.ndarray) -> Retrieval:
    """Compare one frame of the test set for each scene with that scene's goal and pose."""
    hidden, pose = scenes.hidden[neighbour], scenes.pose[scenes.scene[neighbour]]
    function = same_function(hidden, pose, scenes.hidden_goal, scenes.pose, scenes.task == "button")
    return Retrieval(neighbour, function, same_pose(pose, scenes.pose), *pose_error(pose, scenes.pose))


def _estimates(agent: Agent, scenes: Scenes) -> dict[str, np.ndarray]:
    """Return the (n, d) points of each estimate that the method can compute."""
    names = ("state", "goal", "example_state", "example_goal")
    psi = {name: in_batches(agent.psi, getattr(scenes, name)) for name in names}
    points = {name: psi[name] for name in ("state", "goal", "example_goal")}
    points["psi_difference"] = psi["state"] + psi["example_goal"] - psi["example_state"]
    if "phi" not in missing_embeddings(agent):
        inputs = (scenes.state, scenes.example_state, scenes.example_goal)
        points["arithmetic"] = in_batches(lambda state, *example: infer_goal(agent, state, example), *inputs)
    return points


def _random_frames(scenes: Scenes, rng: np.random.Generator) -> np.ndarray:
    """Sample a frame of another scene for each scene."""
    other = (np.arange(len(scenes)) + rng.integers(1, len(scenes), size=len(scenes))) % len(scenes)
    return other + len(scenes) * rng.integers(3, size=len(scenes))


def _rate(success: np.ndarray) -> Rate:
    return Rate(int(success.sum()), len(success))
