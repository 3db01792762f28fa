"""Neighbours and inferred goals on embeddings worked out by hand; and what is kept of them."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from gcb.agent.agent import Agent, load
from gcb.analysis.embed import Tasks
from gcb.data import Dataset, open_dataset
from gcb.envs.layout import BOTTOM_CLOSED, HANDLE_CLOSED, TRAVEL
from gcb.errors import GCBError
from gcb.explorer import prepare as module
from gcb.explorer.prepare import KEPT, draw_map, prepare
from gcb.explorer.task_index import TaskIndex, Wanted


class PixelAgent:
    """ψ(s) is the first pixel, φ(s, g) the difference of two: the arithmetic is exact."""

    def psi(self, state: np.ndarray) -> np.ndarray:
        return state.reshape(*state.shape[:-3], -1)[..., :3].astype(float)

    def phi(self, state: np.ndarray, goal: np.ndarray) -> np.ndarray:
        return self.psi(goal) - self.psi(state)


def frame(*pixel: int) -> np.ndarray:
    made = np.zeros((8, 8, 3), np.uint8)
    made[0, 0] = pixel
    return made


FRAMES = np.stack([frame(value, 0, 0) for value in (0, 10, 20, 30, 40, 50, 60, 70)])


def by_hand(**others: Any) -> TaskIndex:
    """Four tasks (0, 10), (20, 30), (40, 60) and (50, 70), of two episodes."""
    agent = cast(Agent, PixelAgent())
    dataset = Dataset.from_arrays(FRAMES, np.zeros((7, 5), np.float32), [7], **others)
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
    found = by_hand().neighbours((frame(100, 0, 0), frame(118, 0, 0)), 2)
    assert [one["index"] for one in found] == [2, 3]
    assert found[0]["distance"] == pytest.approx(2 / 3)  # |20 - 18|, averaged over three dimensions
    assert found[0]["words"] == "drawer"


def test_a_task_of_the_data_is_not_its_own_neighbour() -> None:
    atlas = by_hand()
    assert [one["index"] for one in atlas.neighbours(atlas.pair(0), 2, own=0)] == [2, 3]
    assert {one["index"] for one in atlas.neighbours(atlas.pair(0), 2)} == {0, 1}


def test_the_inferred_goal_is_the_frame_that_the_arithmetic_means() -> None:
    # 41 + (120 - 100) - 0 = 61: nearest is the goal of task 2.
    found = by_hand().inferred(frame(41, 0, 0), (frame(100, 0, 0), frame(120, 0, 0)), None)
    assert found == {"index": 2, "part": "goal"}
    # 45 + (95 - 100) - 0 = 40: nearest is the state of task 2.
    assert by_hand().inferred(frame(45, 0, 0), (frame(100, 0, 0), frame(95, 0, 0)), None) == {
        "index": 2,
        "part": "state",
    }


def test_unknown_tasks_are_named() -> None:
    with pytest.raises(GCBError, match="there is no task 4; accepted: 0 to 3"):
        by_hand().pair(4)
    assert by_hand().after(0) is None


def test_inferred_goals_are_judged_by_function_and_pose(run: Path, data: Path) -> None:
    """A goal with the drawer open by 60 %, where 50 % was wanted, in the same pose; then another function."""
    atlas = prepare(load(run), open_dataset(data), lambda *_: None)
    assert atlas.pose is not None
    pose = atlas.pose[0]
    hidden = np.zeros(15)
    axis = np.array([np.sin(pose[2]), -np.cos(pose[2])])
    hidden[8:10] = pose[:2] + (HANDLE_CLOSED + 0.5 * TRAVEL) * axis
    hidden[11:13] = pose[:2] + BOTTOM_CLOSED * axis
    found = hidden.copy()
    found[8:10] = pose[:2] + (HANDLE_CLOSED + 0.6 * TRAVEL) * axis
    assert atlas.tasks.hidden_goal is not None
    atlas.tasks.hidden_goal[0] = found
    judged = atlas._judged("goal", 0, Wanted(hidden, pose, button_task=False))
    assert judged["function"]
    assert judged["pose"]
    assert judged["opening"] == pytest.approx(0.6)
    assert judged["wanted_opening"] == pytest.approx(0.5)
    turned = pose + np.array([0.0, 0.0, np.radians(20.0)])
    assert not atlas._judged("goal", 0, Wanted(hidden, turned, button_task=False))["pose"]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often tasks were embedded and maps drawn."""
    calls = [0, 0]
    sample = module.sample_tasks

    def sampled(*given: Any, **named: Any) -> Tasks:
        calls[0] += 1
        return sample(*given, **named)

    def drawn(rows: np.ndarray, seed: int) -> np.ndarray:
        calls[1] += 1
        return np.random.default_rng(seed).random((len(rows), 2))

    monkeypatch.setattr(module, "sample_tasks", sampled)
    monkeypatch.setattr(module, "tsne", drawn)
    return calls


def test_a_map_is_kept_with_its_weights_and_data(run: Path, data: Path, counted: list[int], tmp_path: Path) -> None:
    agent, dataset = load(run), open_dataset(data)
    assert agent.run is not None
    agent.run.path = copied(run, tmp_path)
    (agent.run.path / KEPT).unlink(missing_ok=True)
    reports: list[float] = []
    atlas = prepare(agent, dataset, lambda what, done: reports.append(done), count=40)
    draw_map(atlas, count=40)
    assert counted == [1, 1]
    assert reports[-1] == 1.0
    again = prepare(agent, dataset, lambda *_: None, count=40)
    draw_map(again, count=40)
    assert counted == [1, 1]
    assert np.array_equal(again.places, atlas.places)  # pyright: ignore[reportArgumentType]
    assert np.array_equal(again.tasks.phi, atlas.tasks.phi)  # pyright: ignore[reportArgumentType]
    assert again.words == atlas.words

    kept = agent.run.path / KEPT
    damaged = bytearray(kept.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    kept.write_bytes(damaged)
    prepare(agent, dataset, lambda *_: None, count=40)
    prepare(agent, dataset, lambda *_: None, count=30)
    assert counted == [3, 1]


def test_a_folder_that_cannot_be_written_costs_only_time(
    run: Path, data: Path, counted: list[int], tmp_path: Path
) -> None:
    agent = load(run)
    assert agent.run is not None
    agent.run.path = copied(run, tmp_path)
    atlas = prepare(agent, open_dataset(data), lambda *_: None, count=20)
    (agent.run.path / KEPT.parent).write_text("in the way")
    with pytest.raises(GCBError, match="could not be written"):
        draw_map(atlas, count=20)
    assert atlas.places is not None


def copied(run: Path, tmp_path: Path) -> Path:
    """The run without what other tests have kept in it."""
    folder = tmp_path / "run"
    folder.mkdir()
    for path in run.iterdir():
        if path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())
    return folder
