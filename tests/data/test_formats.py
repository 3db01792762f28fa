"""Data from OGBench, Minari, plain folders and memory: in and out again without a loss."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.by_hand import two_episodes
from helpers.counting_env import collected

from gcb.data import Dataset, ImportOptions, export_data, from_episodes, import_data, open_dataset, write_dataset
from gcb.data.formats.episodes import episode_of
from gcb.data.summary import describe
from gcb.errors import GCBError

pytest.importorskip("minari")


Arrays = dict[str, np.ndarray]


def trajectories(rng: np.random.Generator, lengths: tuple[int, ...], vectors: bool = False) -> list[Arrays]:
    """Episodes of so many transitions, of vectors or of images with two stacked frames."""
    made = []
    for length in lengths:
        images = rng.integers(0, 256, (length + 1, 8, 10, 6), dtype=np.uint8)
        observations = rng.normal(size=(length + 1, 4)).astype(np.float32) if vectors else images
        made.append({"observations": observations, "actions": rng.uniform(-1, 1, (length, 2)).astype(np.float32)})
    return made


def ogbench_file(path: Path, episodes: list[Arrays], **others: Any) -> Path:
    """A file as OGBench's scripts save it: one row per observation, the last action of each leading nowhere."""
    ends = np.concatenate([np.arange(len(one["observations"])) == len(one["actions"]) for one in episodes])
    last = np.full((1, 2), 0.5, np.float32)
    np.savez_compressed(
        path,
        observations=np.concatenate([one["observations"] for one in episodes]),
        actions=np.concatenate([np.concatenate([one["actions"], last]) for one in episodes]),
        terminals=ends.astype(np.float32),
        **others,
    )
    return path


def regular(path: Path) -> Arrays:
    """What OGBench's loader gives to its agents: transitions, the rows marked by terminals being no first halves."""
    with np.load(path) as file:
        last = file["terminals"].astype(bool)
        first, following = ~last, np.concatenate([[False], ~last[:-1]])
        ends = np.concatenate([last[1:], [True]])[first]
        states, actions = file["observations"], file["actions"]
        return {"s": states[first], "a": actions[first], "s'": states[following], "end": ends}


def assert_same(one: Dataset, other: Dataset) -> None:
    """Every array, every name."""
    assert one.arrays().keys() == other.arrays().keys()
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array, other.arrays()[name], err_msg=name)
        assert array.dtype == other.arrays()[name].dtype, name
    assert (one.task_names, one.scene_names) == (other.task_names, other.scene_names)


@pytest.mark.parametrize("vectors", [False, True])
def test_ogbench_in_by_hand(tmp_path: Path, vectors: bool) -> None:
    episodes = trajectories(np.random.default_rng(0), (3, 1, 4), vectors)
    file = ogbench_file(tmp_path / "cube-v0.npz", episodes)
    made = import_data(file, tmp_path / "data", quiet=True)
    data = made.dataset
    assert (data.episodes, data.transitions, made.left_out, made.was_there) == (3, 8, (), False)
    assert data.rewards is None
    assert not data.terminated.any()  # OGBench's terminals end trajectories; they do not say that a goal was reached
    assert (data.episode_goal_frame == -1).all()
    found = regular(file)
    np.testing.assert_array_equal(data.frames[data.frame_of_transition], found["s"])
    np.testing.assert_array_equal(data.frames[data.frame_of_transition + 1], found["s'"])
    np.testing.assert_array_equal(data.actions, found["a"])
    assert_same(data, from_episodes(episodes))
    data.verify()


def test_ogbench_there_and_back(tmp_path: Path) -> None:
    episodes = trajectories(np.random.default_rng(0), (3, 2))
    rng = np.random.default_rng(1)
    qpos, buttons = rng.normal(size=(7, 3)).astype(np.float32), rng.integers(0, 3, (7, 2))
    file = ogbench_file(tmp_path / "in.npz", episodes, qpos=qpos, button_states=buttons, about=np.array("a text"))
    made = import_data(file, tmp_path / "data", quiet=True)
    assert made.left_out == ("about",)
    assert made.dataset.states is not None
    np.testing.assert_array_equal(made.dataset.states, np.concatenate([qpos, buttons], axis=1))
    (out,) = export_data(made.dataset, tmp_path / "out.npz", quiet=True)
    one, other = regular(file), regular(out)
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])
    with np.load(out) as back:
        np.testing.assert_array_equal(back["qpos"], qpos)
        np.testing.assert_array_equal(back["button_states"], buttons)
        assert back["button_states"].dtype == buttons.dtype
        assert back["observations"].dtype == np.uint8


@pytest.mark.parametrize("target", ["numbers.npz", "numbers-v0"])
def test_ours_there_and_back(tmp_path: Path, target: str) -> None:
    """Goals, rewards, ends, hidden states, tasks, successes, scenes: whatever a dataset has."""
    data = collected(tmp_path / "data", 30)
    paths = export_data(data, tmp_path / target, quiet=True)
    back = import_data(paths[0], tmp_path / "back", quiet=True).dataset
    assert_same(data, back)
    assert back.config["env"] == data.config["env"]
    for name in (f"{field}.npy" for field in data.arrays()):
        assert (tmp_path / "data" / name).read_bytes() == (tmp_path / "back" / name).read_bytes()


@pytest.mark.parametrize("target", ["bare.npz", "bare-v0"])
@pytest.mark.parametrize("vectors", [False, True])
def test_bare_data_there_and_back(tmp_path: Path, target: str, vectors: bool) -> None:
    data = from_episodes(trajectories(np.random.default_rng(2), (2, 5, 1), vectors))
    paths = export_data(data, tmp_path / target, quiet=True)
    assert_same(data, import_data(paths[0], tmp_path / "back", quiet=True).dataset)


def test_goals_in_some_episodes_only(tmp_path: Path) -> None:
    episodes: list[dict[str, Any]] = [*trajectories(np.random.default_rng(3), (2, 3, 2), vectors=True)]
    episodes[1]["goal"] = np.full(4, 7, np.float32)
    data = from_episodes(episodes)
    assert data.episode_goal_frame.tolist() == [-1, 7, -1]
    export_data(data, tmp_path / "some.npz", quiet=True)
    assert_same(data, import_data(tmp_path / "some.npz", tmp_path / "back", quiet=True).dataset)
    with pytest.raises(GCBError, match="1 of 3 episodes have a goal; Minari needs one in all or in none"):
        export_data(data, tmp_path / "some-v0")


def test_train_and_validation_files(tmp_path: Path) -> None:
    data = collected(tmp_path / "data", 30)
    train, val = export_data(data, tmp_path / "play-v0.npz", val_episodes=2, quiet=True)
    assert (train.name, val.name) == ("play-v0.npz", "play-v0-val.npz")
    parts = [import_data(path, tmp_path / path.stem, quiet=True).dataset for path in (train, val)]
    assert [part.episodes for part in parts] == [data.episodes - 2, 2]
    np.testing.assert_array_equal(np.concatenate([part.actions for part in parts]), data.actions)
    np.testing.assert_array_equal(parts[1].frames, data.frames[-len(parts[1].frames) :])
    with pytest.raises(GCBError, match="is there already"):
        export_data(data, tmp_path / "play-v0.npz")
    with pytest.raises(GCBError, match="val_episodes is 9; the dataset has"):
        export_data(data, tmp_path / "other.npz", val_episodes=9)


@pytest.mark.filterwarnings("ignore::UserWarning:minari")  # it would like to know an author
def test_a_minari_dataset_made_by_minari(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its users make one: a goal-conditioned environment, observations of three entries, rewards of -1 and 0."""
    import gymnasium as gym
    import minari
    from minari.data_collector import EpisodeBuffer

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    rng = np.random.default_rng(0)
    place, wide = gym.spaces.Box(-2, 2, (3,), np.float64), gym.spaces.Box(-2, 2, (5,), np.float64)
    space = gym.spaces.Dict({"observation": wide, "achieved_goal": place, "desired_goal": place})
    entries = {"observation": 5, "achieved_goal": 3, "desired_goal": 3}
    buffers = []
    for length in (4, 2):
        observations: Any = {name: rng.normal(size=(length + 1, size)) for name, size in entries.items()}
        observations["desired_goal"][:] = observations["desired_goal"][0]
        arrays: dict[str, Any] = {
            "observations": observations,
            "actions": rng.uniform(-2, 2, (length, 2)),
            "rewards": np.array([-1.0] * (length - 1) + [0.0]),
            "terminations": np.arange(length) == length - 1,
            "truncations": np.zeros(length, bool),
        }
        buffers.append(EpisodeBuffer(**arrays))
    minari.create_dataset_from_buffers(
        "reach-v0", buffers, observation_space=space, action_space=gym.spaces.Box(-2, 2, (2,), np.float64)
    )
    folder = tmp_path / "reach-v0"
    with pytest.raises(
        GCBError, match=r"observation has shape \(5,\) and desired_goal \(3,\).*observation achieved_goal"
    ):
        import_data(folder, tmp_path / "data", quiet=True)
    with pytest.raises(GCBError, match=r"an action has size 1.*action_bound"):
        import_data(folder, tmp_path / "data", ImportOptions(observation="achieved_goal"), quiet=True)
    with pytest.raises(GCBError, match=r"rewards lie in -1 … 0; accepted.*reward_offset"):
        import_data(folder, tmp_path / "data", ImportOptions(observation="achieved_goal", action_bound=2), quiet=True)
    assert not (tmp_path / "data").exists()
    options = ImportOptions(observation="achieved_goal", action_bound=2, reward_offset=1, env="Reach-v0")
    made = import_data(folder, tmp_path / "data", options, quiet=True)
    data = made.dataset
    assert made.left_out == ("observation",)
    assert data.rewards is not None
    assert data.rewards.tolist() == [0, 0, 0, 1, 0, 1]
    assert data.terminated.tolist() == [False, False, False, True, False, True]
    np.testing.assert_array_equal(data.frames[:5], buffers[0].observations["achieved_goal"])
    np.testing.assert_array_equal(data.frames[5], buffers[0].observations["desired_goal"][0])
    np.testing.assert_array_equal(data.actions[:4], buffers[0].actions / 2)
    assert data.config["env"] == "Reach-v0"
    assert ("imported from", "reach-v0 (minari)") in describe(data)
    export_data(data, tmp_path / "again-v0", quiet=True)
    again = minari.load_dataset("again-v0")
    np.testing.assert_array_equal(again[0].actions, buffers[0].actions)
    np.testing.assert_array_equal(again[0].rewards, buffers[0].rewards)
    assert again[1].truncations.tolist() == [False, False]


def test_minari_keeps_every_pixel(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (4, 40, 40, 3), dtype=np.uint8)
    data = from_episodes([{"observations": images, "actions": np.zeros((3, 2), np.float32)}])
    export_data(data, tmp_path / "noise-v0", quiet=True)
    back = import_data(tmp_path / "noise-v0" / "data", tmp_path / "back", quiet=True).dataset
    np.testing.assert_array_equal(back.frames, images)


def test_a_folder_of_episodes(tmp_path: Path) -> None:
    names: dict[str, Any] = {"episode_task": [1, 0], "task_names": ("a", "b"), "episode_success": [True, False]}
    data = two_episodes(**names, actions=np.linspace(-1, 1, 5)[:, None])
    (tmp_path / "episodes").mkdir()
    for number in range(2):
        one = episode_of(data, number)
        arrays: dict[str, Any] = {"observations": one.frames, "goal": one.goal_frame, "rewards": one.rewards}
        arrays |= {"actions": one.actions, "terminated": one.terminated, "task": one.task, "success": one.success}
        np.savez(tmp_path / "episodes" / f"{number:04d}.npz", **arrays)
    back = import_data(tmp_path / "episodes", tmp_path / "data", quiet=True).dataset
    assert back.episode_task is not None
    assert [back.task_names[task] for task in back.episode_task] == ["b", "a"]
    for name in ("frames", "actions", "rewards", "terminated", "episode_goal_frame", "episode_success"):
        np.testing.assert_array_equal(back.arrays()[name], data.arrays()[name])


def test_memory_and_disk_are_one(tmp_path: Path) -> None:
    data = collected(tmp_path / "data", 30)
    again = from_episodes([episode_of(data, number) for number in range(data.episodes)], data.config)
    assert_same(data, again)
    written = write_dataset(again, tmp_path / "again")
    assert (tmp_path / "again" / "frames.npy").read_bytes() == (tmp_path / "data" / "frames.npy").read_bytes()
    assert written.config == open_dataset(tmp_path / "data").config


def test_the_same_import_is_not_done_twice(tmp_path: Path) -> None:
    file = ogbench_file(tmp_path / "a.npz", trajectories(np.random.default_rng(0), (2, 2)))
    import_data(file, tmp_path / "data", quiet=True)
    assert import_data(file, tmp_path / "data", quiet=True).was_there
    other = ogbench_file(tmp_path / "b.npz", trajectories(np.random.default_rng(1), (2, 2)))
    with pytest.raises(GCBError, match="holds another dataset: source is"):
        import_data(other, tmp_path / "data", quiet=True)
