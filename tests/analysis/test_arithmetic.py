"""Analogy arithmetic on embeddings built so that the right answer is known."""

from typing import Any

import numpy as np
import pytest
from helpers.toy import Half, hidden, picture, scenes_of, toy_agent

from gcb.analysis.arithmetic import infer_goal, judge, measure
from gcb.analysis.scenes import Scenes
from gcb.errors import GCBError
from gcb.methods.bc import GoalConditionedBC
from gcb.utils.statistics import Rate

POSES = [(0.6, 0.0, 0.0), (0.6, 0.0, 0.1), (0.7, 0.1, 3.0), (0.7, 0.1, 3.1)]
PRESSED = -0.15


def scene(place: int, pose: tuple[float, float, float], task: str) -> dict[str, Any]:
    """A scene whose picture says (place, what is done, 0): 10 at the start, 20 on the way, then 100 or 200."""
    done = {"drawer": 100, "button": 200}[task]
    goal = hidden(pose, 0.15) if task == "drawer" else hidden(pose, 0.0, 0.1564, PRESSED)
    return {
        "state": picture(place, 10, 0),
        "between": picture(place, 20, 0),
        "goal": picture(place, done, 0),
        # The example stands elsewhere and looks different; only what is done in it is the same.
        "example_state": picture(place + 50, 10, 90),
        "example_goal": picture(place + 50, done, 90),
        "hidden_state": hidden(pose, 0.0),
        "hidden_between": hidden(pose, 0.02),
        "hidden_goal": goal,
        "pose": np.array(pose),
        "task": np.array(task),
    }


@pytest.fixture
def scenes() -> Scenes:
    """Two pairs of like scenes: the nearest other scene to each is its partner, which does the same."""
    tasks = ("drawer", "drawer", "button", "button")
    places = (0, 2, 100, 102)
    return scenes_of([scene(*row) for row in zip(places, POSES, tasks, strict=True)])


def test_the_formula() -> None:
    agent = toy_agent()
    inferred = infer_goal(agent, picture(5, 10, 3), (picture(60, 12, 9), picture(62, 40, 9)))
    # ψ(s) + (ψ(g_a) - ψ(s_a) + c) - c: what changes from s_a to g_a, added to s.
    np.testing.assert_allclose(inferred, [5 + 2, 10 + 28, 3 + 0])
    many = infer_goal(agent, np.stack([picture(5, 10, 3)] * 2), (picture(60, 12, 9)[None], picture(62, 40, 9)[None]))
    np.testing.assert_allclose(many, [inferred] * 2)


def test_the_inferred_goals_neighbour_is_the_partners_goal(scenes: Scenes) -> None:
    found = measure(toy_agent(), scenes, seed=0)
    judged = found.judged["arithmetic"]
    goals = 2 * len(scenes)
    assert judged.neighbour.tolist() == [goals + 1, goals + 0, goals + 3, goals + 2]
    assert judged.function.all()
    assert judged.pose.all()
    np.testing.assert_allclose(judged.yaw_error, np.degrees(0.1))
    np.testing.assert_allclose(judged.position_error, 0)
    assert found.towards == Rate(4, 4)
    summary = judged.summary(scenes.task)
    assert summary.function == summary.both == Rate(4, 4)
    assert summary.function_by_task == {"button": Rate(2, 2), "drawer": Rate(2, 2)}


def test_without_the_example_nothing_is_done(scenes: Scenes) -> None:
    judged = measure(toy_agent(), scenes, seed=0).judged
    assert judged["state"].neighbour.tolist() == [1, 0, 3, 2]
    assert not judged["state"].function.any()
    assert judged["state"].pose.all()
    np.testing.assert_array_equal(judged["goal"].neighbour, judged["arithmetic"].neighbour)
    np.testing.assert_array_equal(judged["psi_difference"].neighbour, judged["arithmetic"].neighbour)


def test_a_scenes_own_frames_are_never_found(scenes: Scenes) -> None:
    for seed in range(20):
        for judged in measure(toy_agent(), scenes, seed).judged.values():
            assert (judged.neighbour % len(scenes) != np.arange(len(scenes))).all()


def test_judged_by_hand(scenes: Scenes) -> None:
    """Each scene is shown the same frame: the goal of scene 1, its drawer open by .15."""
    judged = judge(scenes, np.full(4, 2 * len(scenes) + 1))
    assert judged.function.tolist() == [True, True, False, False]
    assert judged.pose.tolist() == [True, True, False, False]
    np.testing.assert_allclose(judged.yaw_error, np.degrees([0.1, 0.0, 2.9, 3.0]))
    np.testing.assert_allclose(judged.position_error, [0, 0, np.hypot(0.1, 0.1), np.hypot(0.1, 0.1)])


def test_a_method_without_phi_still_has_differences_of_psi(scenes: Scenes) -> None:
    found = measure(toy_agent(Half), scenes, seed=0)
    assert list(found.judged) == ["psi_difference", "example_goal", "state", "random", "goal"]
    assert found.towards is None
    with pytest.raises(GCBError, match="half has no task embedding φ"):
        infer_goal(toy_agent(Half), picture(0, 0, 0), (picture(0, 0, 0), picture(0, 0, 0)))


def test_what_cannot_be_measured_is_said(scenes: Scenes) -> None:
    with pytest.raises(GCBError, match="bc has no state embedding ψ: no arithmetic"):
        measure(toy_agent(GoalConditionedBC), scenes, seed=0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(GCBError, match="the test set has 1 scenes"):
        measure(toy_agent(), scenes_of([scene(0, POSES[0], "drawer")]), seed=0)
