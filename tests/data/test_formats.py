"""Lossless round trips through OGBench, Minari, directories of .npz files and memory."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.by_hand import two_episodes
from helpers.counting_env import collected

from gcb.data import Dataset, ImportOptions, export_data, from_episodes, import_data, open_dataset, write_dataset
from gcb.data.summary import describe
from gcb.errors import GCBError

pytest.importorskip("minari")


Arrays = dict[str, np.ndarray]


def trajectories(rng: np.random.Generator, lengths: tuple[int, ...], vectors: bool = False) -> list[Arrays]:
    """Return episodes of these lengths, with vectors or with images of two stacked frames."""
    episodes = []
    for length in lengths:
        images = rng.integers(0, 256, (length + 1, 8, 10, 6), dtype=np.uint8)
        observations = rng.normal(size=(length + 1, 4)).astype(np.float32) if vectors else images
        episodes.append({"observations": observations, "actions": rng.uniform(-1, 1, (length, 2)).astype(np.float32)})
    return episodes


def ogbench_file(path: Path, episodes: list[Arrays], **extra: Any) -> Path:
    """Write a file like OGBench's scripts: one row per observation; the last action of each trajectory is unused."""
    ends = np.concatenate([np.arange(len(episode["observations"])) == len(episode["actions"]) for episode in episodes])
    last = np.full((1, 2), 0.5, np.float32)
    np.savez_compressed(
        path,
        observations=np.concatenate([episode["observations"] for episode in episodes]),
        actions=np.concatenate([np.concatenate([episode["actions"], last]) for episode in episodes]),
        terminals=ends.astype(np.float32),
        **extra,
    )
    return path


def load_like_ogbench(path: Path) -> Arrays:
    """Return the transitions as OGBench's loader does: rows marked by terminals start no transition."""
    with np.load(path) as file:
        last = file["terminals"].astype(bool)
        first, following = ~last, np.concatenate([[False], ~last[:-1]])
        ends = np.concatenate([last[1:], [True]])[first]
        states, actions = file["observations"], file["actions"]
        return {"s": states[first], "a": actions[first], "s'": states[following], "end": ends}


def assert_same(actual: Dataset, expected: Dataset) -> None:
    """Compare every array and every name."""
    assert actual.arrays().keys() == expected.arrays().keys()
    for name, array in actual.arrays().items():
        np.testing.assert_array_equal(array, expected.arrays()[name], err_msg=name)
        assert array.dtype == expected.arrays()[name].dtype, name
    assert (actual.task_names, actual.scene_names) == (expected.task_names, expected.scene_names)


@pytest.mark.parametrize("vectors", [False, True])
def test_ogbench_import(tmp_path: Path, vectors: bool) -> None:
    episodes = trajectories(np.random.default_rng(0), (3, 1, 4), vectors)
    file = ogbench_file(tmp_path / "cube-v0.npz", episodes)
    result = import_data(file, tmp_path / "data", quiet=True)
    data = result.dataset
    assert (data.episodes, data.transitions, result.unused_arrays, result.already_complete) == (3, 8, (), False)
    assert data.rewards is None
    assert not data.terminated.any()  # OGBench's terminals end trajectories; they do not mark reached goals
    assert (data.episode_goal_frame == -1).all()
    expected = load_like_ogbench(file)
    np.testing.assert_array_equal(data.frames[data.frame_of_transition], expected["s"])
    np.testing.assert_array_equal(data.frames[data.frame_of_transition + 1], expected["s'"])
    np.testing.assert_array_equal(data.actions, expected["a"])
    assert_same(data, from_episodes(episodes))
    data.verify()


def test_ogbench_round_trip(tmp_path: Path) -> None:
    episodes = trajectories(np.random.default_rng(0), (3, 2))
    rng = np.random.default_rng(1)
    qpos, buttons = rng.normal(size=(7, 3)).astype(np.float32), rng.integers(0, 3, (7, 2))
    file = ogbench_file(tmp_path / "in.npz", episodes, qpos=qpos, button_states=buttons, about=np.array("a text"))
    result = import_data(file, tmp_path / "data", quiet=True)
    assert result.unused_arrays == ("about",)
    assert result.dataset.states is not None
    np.testing.assert_array_equal(result.dataset.states, np.concatenate([qpos, buttons], axis=1))
    (out,) = export_data(result.dataset, tmp_path / "out.npz", quiet=True)
    before, after = load_like_ogbench(file), load_like_ogbench(out)
    for name in before:
        np.testing.assert_array_equal(before[name], after[name])
    with np.load(out) as back:
        np.testing.assert_array_equal(back["qpos"], qpos)
        np.testing.assert_array_equal(back["button_states"], buttons)
        assert back["button_states"].dtype == buttons.dtype
        assert back["observations"].dtype == np.uint8


def test_ogbench_rewards_and_masks(tmp_path: Path) -> None:
    """They belong to the transition that starts in their row, and are no hidden states."""
    episodes = trajectories(np.random.default_rng(0), (3, 2), vectors=True)
    rewards = np.array([0, 0, 1, 1, 0, 1, 1], np.float32)
    file = ogbench_file(tmp_path / "in.npz", episodes, rewards=rewards - 1, masks=1 - rewards, qpos=np.zeros((7, 1)))
    data = import_data(file, tmp_path / "data", ImportOptions(reward_offset=1), quiet=True).dataset
    assert data.rewards is not None
    assert data.states is not None
    assert data.rewards.tolist() == [0, 0, 1, 0, 1]
    assert data.terminated.tolist() == [False, False, True, False, True]
    assert data.states.shape[1:] == (1,)
    export_data(data, tmp_path / "out.npz", quiet=True)
    again = import_data(tmp_path / "out.npz", tmp_path / "again", ImportOptions(reward_offset=1), quiet=True).dataset
    assert_same(again, data)
    dropped = import_data(file, tmp_path / "dropped", ImportOptions(rewards="drop"), quiet=True).dataset
    assert dropped.rewards is None


@pytest.mark.parametrize("target", ["numbers.npz", "numbers-v0"])
def test_round_trip_of_a_collected_dataset(tmp_path: Path, target: str) -> None:
    """Goals, rewards, terminations, states, tasks, successes and scenes are all preserved."""
    data = collected(tmp_path / "data", 30)
    paths = export_data(data, tmp_path / target, quiet=True)
    back = import_data(paths[0], tmp_path / "back", quiet=True).dataset
    assert_same(data, back)
    assert back.config["env"] == data.config["env"]
    for name in (f"{field}.npy" for field in data.arrays()):
        assert (tmp_path / "data" / name).read_bytes() == (tmp_path / "back" / name).read_bytes()


@pytest.mark.parametrize("target", ["bare.npz", "bare-v0"])
@pytest.mark.parametrize("vectors", [False, True])
def test_round_trip_of_observations_and_actions_only(tmp_path: Path, target: str, vectors: bool) -> None:
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
    with pytest.raises(GCBError, match="1 of 3 episodes have a goal"):
        export_data(data, tmp_path / "some-v0")


def test_train_and_validation_files(tmp_path: Path) -> None:
    data = collected(tmp_path / "data", 30)
    train, val = export_data(data, tmp_path / "play-v0.npz", val_episodes=2, quiet=True)
    assert (train.name, val.name) == ("play-v0.npz", "play-v0-val.npz")
    parts = [import_data(path, tmp_path / path.stem, quiet=True).dataset for path in (train, val)]
    assert [part.episodes for part in parts] == [data.episodes - 2, 2]
    np.testing.assert_array_equal(np.concatenate([part.actions for part in parts]), data.actions)
    np.testing.assert_array_equal(parts[1].frames, data.frames[-len(parts[1].frames) :])
    with pytest.raises(GCBError, match="already exists"):
        export_data(data, tmp_path / "play-v0.npz")
    with pytest.raises(GCBError, match="val_episodes is 9"):
        export_data(data, tmp_path / "other.npz", val_episodes=9)


@pytest.mark.filterwarnings("ignore::UserWarning:minari")  # it asks for an author
def test_a_minari_dataset_made_by_minari(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A goal-conditioned environment as usual: observations with three entries, rewards of -1 and 0."""
    import gymnasium as gym
    import minari
    from minari.data_collector import EpisodeBuffer

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    rng = np.random.default_rng(0)
    position, full = gym.spaces.Box(-2, 2, (3,), np.float64), gym.spaces.Box(-2, 2, (5,), np.float64)
    space = gym.spaces.Dict({"observation": full, "achieved_goal": position, "desired_goal": position})
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
    path = tmp_path / "reach-v0"
    with pytest.raises(GCBError, match=r"observation has shape \(5,\) and desired_goal \(3,\).*achieved_goal"):
        import_data(path, tmp_path / "data", quiet=True)
    with pytest.raises(GCBError, match=r"largest action is 1.*action_bound"):
        import_data(path, tmp_path / "data", ImportOptions(observation="achieved_goal", action_bound=1), quiet=True)
    with pytest.raises(GCBError, match=r"rewards range from -1 to 0; accepted.*reward_offset"):
        import_data(path, tmp_path / "data", ImportOptions(observation="achieved_goal"), quiet=True)
    assert not (tmp_path / "data").exists()
    options = ImportOptions(observation="achieved_goal", reward_offset=1, env="Reach-v0")
    result = import_data(path, tmp_path / "data", options, quiet=True)
    data = result.dataset
    assert result.unused_arrays == ("observation",)
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


def test_a_directory_of_npz_files(tmp_path: Path) -> None:
    names: dict[str, Any] = {"episode_task": [1, 0], "task_names": ("a", "b"), "episode_success": [True, False]}
    data = two_episodes(**names, actions=np.linspace(-1, 1, 5)[:, None])
    (tmp_path / "episodes").mkdir()
    for number in range(2):
        episode = data.episode(number)
        arrays: dict[str, Any] = {
            "observations": episode.frames,
            "actions": episode.actions,
            "goal": episode.goal_frame,
        }
        arrays |= {key: getattr(episode, key) for key in ("rewards", "terminated", "task", "success")}
        np.savez(tmp_path / "episodes" / f"{number:04d}.npz", **arrays)
    back = import_data(tmp_path / "episodes", tmp_path / "data", quiet=True).dataset
    assert back.episode_task is not None
    assert [back.task_names[task] for task in back.episode_task] == ["b", "a"]
    for name in ("frames", "actions", "rewards", "terminated", "episode_goal_frame", "episode_success"):
        np.testing.assert_array_equal(back.arrays()[name], data.arrays()[name])


def test_from_episodes_equals_the_collected_dataset(tmp_path: Path) -> None:
    data = collected(tmp_path / "data", 30)
    again = from_episodes([data.episode(number) for number in range(data.episodes)], data.config)
    assert_same(data, again)
    written = write_dataset(again, tmp_path / "again")
    assert (tmp_path / "again" / "frames.npy").read_bytes() == (tmp_path / "data" / "frames.npy").read_bytes()
    assert written.config == open_dataset(tmp_path / "data").config


def test_a_complete_import_is_not_repeated(tmp_path: Path) -> None:
    file = ogbench_file(tmp_path / "a.npz", trajectories(np.random.default_rng(0), (2, 2)))
    import_data(file, tmp_path / "data", quiet=True)
    assert import_data(file, tmp_path / "data", quiet=True).already_complete
    other = ogbench_file(tmp_path / "b.npz", trajectories(np.random.default_rng(1), (2, 2)))
    with pytest.raises(GCBError, match="holds another dataset: source is"):
        import_data(other, tmp_path / "data", quiet=True)
