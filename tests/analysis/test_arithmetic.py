"""Analogy arithmetic on embeddings for which the right answer is known."""

from typing import Any

import numpy as np
import pytest
from helpers.toy import WithoutPhi, hidden, image, scenes_of, toy_agent

from gcb.analysis.arithmetic import evaluate_arithmetic, evaluate_retrieval, infer_goal
from gcb.analysis.scenes import Scenes
from gcb.errors import GCBError
from gcb.methods.bc import GoalConditionedBC
from gcb.utils.statistics import Rate

POSES = [(0.6, 0.0, 0.0), (0.6, 0.0, 0.1), (0.7, 0.1, 3.0), (0.7, 0.1, 3.1)]
PRESSED = -0.15


def scene(place: int, pose: tuple[float, float, float], task: str) -> dict[str, Any]:
    """Return a scene whose images hold (place, progress, 0); progress is 10, then 20, then 100 or 200."""
    done = {"drawer": 100, "button": 200}[task]
    goal = hidden(pose, 0.15) if task == "drawer" else hidden(pose, 0.0, 0.1564, PRESSED)
    return {
        "state": image(place, 10, 0),
        "intermediate": image(place, 20, 0),
        "goal": image(place, done, 0),
        # The example stands elsewhere and looks different; only its task is the same.
        "example_state": image(place + 50, 10, 90),
        "example_goal": image(place + 50, done, 90),
        "hidden_state": hidden(pose, 0.0),
        "hidden_intermediate": hidden(pose, 0.02),
        "hidden_goal": goal,
        "pose": np.array(pose),
        "task": np.array(task),
    }


@pytest.fixture
def scenes() -> Scenes:
    """Return two pairs of similar scenes: the nearest other scene of each is its partner, with the same task."""
    tasks = ("drawer", "drawer", "button", "button")
    places = (0, 2, 100, 102)
    return scenes_of([scene(*row) for row in zip(places, POSES, tasks, strict=True)])


def test_infer_goal_by_hand() -> None:
    agent = toy_agent()
    inferred = infer_goal(agent, image(5, 10, 3), (image(60, 12, 9), image(62, 40, 9)))
    # ψ(s) + (ψ(g_a) - ψ(s_a) + c) - c: the change from s_a to g_a, added to s.
    np.testing.assert_allclose(inferred, [5 + 2, 10 + 28, 3 + 0])
    many = infer_goal(agent, np.stack([image(5, 10, 3)] * 2), (image(60, 12, 9)[None], image(62, 40, 9)[None]))
    np.testing.assert_allclose(many, [inferred] * 2)


def test_the_inferred_goal_is_nearest_to_the_partners_goal(scenes: Scenes) -> None:
    result = evaluate_arithmetic(toy_agent(), scenes, seed=0)
    retrieval = result.retrievals["arithmetic"]
    goals = 2 * len(scenes)
    assert retrieval.neighbour.tolist() == [goals + 1, goals + 0, goals + 3, goals + 2]
    assert retrieval.function.all()
    assert retrieval.pose.all()
    np.testing.assert_allclose(retrieval.yaw_error, np.degrees(0.1))
    np.testing.assert_allclose(retrieval.position_error, 0)
    assert result.closer_to_goal == Rate(4, 4)
    metrics = retrieval.metrics(scenes.task)
    assert metrics.function == metrics.both == Rate(4, 4)
    assert metrics.function_by_task == {"button": Rate(2, 2), "drawer": Rate(2, 2)}


def test_the_state_alone_finds_the_pose_but_not_the_function(scenes: Scenes) -> None:
    retrievals = evaluate_arithmetic(toy_agent(), scenes, seed=0).retrievals
    assert retrievals["state"].neighbour.tolist() == [1, 0, 3, 2]
    assert not retrievals["state"].function.any()
    assert retrievals["state"].pose.all()
    np.testing.assert_array_equal(retrievals["goal"].neighbour, retrievals["arithmetic"].neighbour)
    np.testing.assert_array_equal(retrievals["psi_difference"].neighbour, retrievals["arithmetic"].neighbour)


def test_a_scenes_own_frames_are_excluded(scenes: Scenes) -> None:
    for seed in range(20):
        for retrieval in evaluate_arithmetic(toy_agent(), scenes, seed).retrievals.values():
            assert (retrieval.neighbour % len(scenes) != np.arange(len(scenes))).all()


def test_retrieval_by_hand(scenes: Scenes) -> None:
    """Every scene retrieves the same frame: the goal of scene 1, with its drawer open by .15."""
    retrieval = evaluate_retrieval(scenes, np.full(4, 2 * len(scenes) + 1))
    assert retrieval.function.tolist() == [True, True, False, False]
    assert retrieval.pose.tolist() == [True, True, False, False]
    np.testing.assert_allclose(retrieval.yaw_error, np.degrees([0.1, 0.0, 2.9, 3.0]))
    np.testing.assert_allclose(retrieval.position_error, [0, 0, np.hypot(0.1, 0.1), np.hypot(0.1, 0.1)])


def test_a_method_without_phi_uses_differences_of_psi(scenes: Scenes) -> None:
    result = evaluate_arithmetic(toy_agent(WithoutPhi), scenes, seed=0)
    assert list(result.retrievals) == ["psi_difference", "example_goal", "state", "random", "goal"]
    assert result.closer_to_goal is None
    with pytest.raises(GCBError, match="without_phi has no task embedding φ"):
        infer_goal(toy_agent(WithoutPhi), image(0, 0, 0), (image(0, 0, 0), image(0, 0, 0)))


def test_invalid_inputs_are_rejected(scenes: Scenes) -> None:
    with pytest.raises(GCBError, match="bc has no state embedding ψ"):
        evaluate_arithmetic(toy_agent(GoalConditionedBC), scenes, seed=0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(GCBError, match="has 1 scenes"):
        evaluate_arithmetic(toy_agent(), scenes_of([scene(0, POSES[0], "drawer")]), seed=0)
