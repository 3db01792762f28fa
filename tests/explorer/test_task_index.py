"""Neighbours and inferred goals on embeddings worked out by hand, and the cache of the index."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from gcb.agent.agent import Agent, load
from gcb.analysis.embed import Tasks
from gcb.data import Dataset, open_dataset
from gcb.envs.layout import BOTTOM_CLOSED, HANDLE_CLOSED, TRAVEL
from gcb.errors import GCBError
from gcb.explorer import task_index as module
from gcb.explorer.task_index import CACHE, TaskIndex, build_index, draw_map


class PixelAgent:
    """ψ(s) is the first pixel and φ(s, g) the difference of two, so that the arithmetic is exact."""

    def psi(self, state: np.ndarray) -> np.ndarray:
        return state.reshape(*state.shape[:-3], -1)[..., :3].astype(float)

    def phi(self, state: np.ndarray, goal: np.ndarray) -> np.ndarray:
        return self.psi(goal) - self.psi(state)


def frame(*pixel: int) -> np.ndarray:
    image = np.zeros((8, 8, 3), np.uint8)
    image[0, 0] = pixel
    return image


FRAMES = np.stack([frame(value, 0, 0) for value in (0, 10, 20, 30, 40, 50, 60, 70)])


def hand_made_index() -> TaskIndex:
    """Four tasks (0, 10), (20, 30), (40, 60) and (50, 70), of two episodes."""
    agent = cast(Agent, PixelAgent())
    dataset = Dataset.from_arrays(FRAMES, np.zeros((7, 5), np.float32), [7])
    state, goal = np.array([0, 2, 4, 5]), np.array([1, 3, 6, 7])
    tasks = Tasks(
        state_frame=state,
        goal_frame=goal,
        episode=np.array([0, 0, 1, 1]),
        task=np.array(["drawer"] * 4),
        value=np.zeros(4),
        phi=agent.phi(FRAMES[state], FRAMES[goal]),
        psi_state=agent.psi(FRAMES[state]),
        psi_goal=agent.psi(FRAMES[goal]),
    )
    return TaskIndex(agent, dataset, tasks)


def test_neighbours_are_the_nearest_in_phi() -> None:
    neighbours = hand_made_index().neighbours((frame(100, 0, 0), frame(118, 0, 0)), 2)
    assert [task["index"] for task in neighbours] == [2, 0]  # one of each episode
    assert neighbours[0]["distance"] == pytest.approx(2 / 3)  # |20 - 18|, averaged over three dimensions
    assert neighbours[0]["label"] == "drawer"


def test_a_task_is_not_its_own_neighbour() -> None:
    index = hand_made_index()
    assert [task["index"] for task in index.neighbours(index.pair(0), 2, own=0)] == [2]
    assert [task["index"] for task in index.neighbours(index.pair(0), 2)] == [0, 2]


def test_the_inferred_goal_follows_the_arithmetic() -> None:
    index = hand_made_index()
    # 41 + (120 - 100) - 0 = 61: nearest is the goal of task 2.
    assert index.inferred_goal(frame(41, 0, 0), (frame(100, 0, 0), frame(120, 0, 0))) == ("goal", 2)
    # 45 + (95 - 100) - 0 = 40: nearest is the state of task 2.
    assert index.inferred_goal(frame(45, 0, 0), (frame(100, 0, 0), frame(95, 0, 0))) == ("state", 2)


def test_task_indices_are_checked() -> None:
    with pytest.raises(GCBError, match=r"index is 4; .* 0 to 3"):
        hand_made_index().pair(4)


def test_datasets_without_hidden_states_have_no_openings_and_no_scores() -> None:
    index = hand_made_index()
    assert index.drawer_after(0) is None
    assert index.score("goal", 0, np.zeros(15), np.zeros(3), button=False) == {}


def test_inferred_goals_are_scored_by_function_and_pose(run: Path, data: Path) -> None:
    """The drawer is open by 60 % where the true goal has 50 %, in the same pose; then the pose differs by 20°."""
    index = build_index(load(run), open_dataset(data), lambda _: None)
    assert index.pose is not None
    pose = index.pose[0]
    goal = np.zeros(15)
    axis = np.array([np.sin(pose[2]), -np.cos(pose[2])])
    goal[8:10] = pose[:2] + (HANDLE_CLOSED + 0.5 * TRAVEL) * axis
    goal[11:13] = pose[:2] + BOTTOM_CLOSED * axis
    inferred = goal.copy()
    inferred[8:10] = pose[:2] + (HANDLE_CLOSED + 0.6 * TRAVEL) * axis
    assert index.tasks.hidden_goal is not None
    index.tasks.hidden_goal[0] = inferred
    score = index.score("goal", 0, goal, pose, button=False)
    assert score["same_function"]
    assert score["same_pose"]
    assert score["opening"] == pytest.approx(0.6)
    assert score["goal_opening"] == pytest.approx(0.5)
    rotated = pose + np.array([0.0, 0.0, np.radians(20.0)])
    assert not index.score("goal", 0, goal, rotated, button=False)["same_pose"]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count how often tasks are embedded and maps computed."""
    calls = [0, 0]
    sample = module.sample_tasks

    def counted_sample(*args: Any, **kwargs: Any) -> Tasks:
        calls[0] += 1
        return sample(*args, **kwargs)

    def counted_tsne(rows: np.ndarray, seed: int) -> np.ndarray:
        calls[1] += 1
        return np.random.default_rng(seed).random((len(rows), 2))

    monkeypatch.setattr(module, "sample_tasks", counted_sample)
    monkeypatch.setattr(module, "tsne", counted_tsne)
    return calls


def test_the_index_is_cached_for_its_weights_and_data(run: Path, data: Path, calls: list[int], tmp_path: Path) -> None:
    agent, dataset = load(run), open_dataset(data)
    assert agent.run is not None
    agent.run.path = copy_files(run, tmp_path)
    reports: list[float] = []
    index = build_index(agent, dataset, reports.append, count=40)
    draw_map(index, count=40)
    assert calls == [1, 1]
    assert reports[-1] == 1.0
    again = build_index(agent, dataset, reports.append, count=40)
    draw_map(again, count=40)
    assert calls == [1, 1]
    assert np.array_equal(again.positions, index.positions)  # pyright: ignore[reportArgumentType]
    assert np.array_equal(again.tasks.phi, index.tasks.phi)  # pyright: ignore[reportArgumentType]
    assert again.labels == index.labels

    cache = agent.run.path / CACHE
    damaged = bytearray(cache.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    cache.write_bytes(damaged)
    build_index(agent, dataset, reports.append, count=40)
    build_index(agent, dataset, reports.append, count=30)
    assert calls == [3, 1]


def test_a_run_directory_that_cannot_be_written_still_has_a_map(
    run: Path, data: Path, calls: list[int], tmp_path: Path
) -> None:
    agent = load(run)
    assert agent.run is not None
    agent.run.path = copy_files(run, tmp_path)
    index = build_index(agent, open_dataset(data), lambda _: None, count=20)
    (agent.run.path / CACHE.parent).write_text("a file in place of the directory")
    with pytest.raises(GCBError, match=r"explorer\.npz"):
        draw_map(index, count=20)
    assert index.positions is not None


def copy_files(run: Path, tmp_path: Path) -> Path:
    """Copy the run without the directories that other tests have written into it."""
    copy = tmp_path / "run"
    copy.mkdir()
    for path in run.iterdir():
        if path.is_file():
            (copy / path.name).write_bytes(path.read_bytes())
    return copy
