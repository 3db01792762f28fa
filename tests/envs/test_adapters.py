"""Adapters for third-party environments: observations, goals, actions and success."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers.tiny import tiny_config

import gcb
from gcb.cli.main import main
from gcb.data import Dataset, ImportOptions, contact_sheet, import_data, write_dataset
from gcb.envs.adapters import (
    ADAPTERS,
    AchievedGoalAdapter,
    Adapter,
    InfoGoalAdapter,
    adapter_name,
    get_adapter,
    load_adapter,
)
from gcb.envs.scene import ANALOGIES
from gcb.envs.spec import DEFAULT_MODES, MODES, EnvSpec
from gcb.errors import GCBError
from gcb.evaluation.evaluate import env_spec_of, evaluate, modes_of
from gcb.runs.evaluations import read_results
from gcb.training.trainer import train


class Line(gym.Env):
    """A point on a line moves by half of its action, which is in [0, 4]; the goal is 1. Episodes never end."""

    num_tasks = 3

    def __init__(self, observations: str = "dict") -> None:
        self.observations = observations
        position = gym.spaces.Box(-9, 9, (1,), np.float32)
        wide = gym.spaces.Box(-9, 9, (2,), np.float32)
        entries: dict[str, gym.Space[Any]] = {"observation": wide, "achieved_goal": position, "desired_goal": position}
        self.observation_space = gym.spaces.Dict(entries) if observations == "dict" else position
        self.action_space = gym.spaces.Box(0, 4, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.position, self.options = 0.0, options
        return self.observe(), {"goal": np.ones(1, np.float32)}

    def step(self, action: np.ndarray) -> Any:
        assert self.action_space.contains(action)
        self.position += float(action[0]) / 2
        return self.observe(), float(self.position >= 1), False, False, {}

    def observe(self) -> Any:
        position = np.array([self.position], np.float32)
        if self.observations != "dict":
            return position
        return {
            "observation": np.append(position, 0).astype(np.float32),
            "achieved_goal": position,
            "desired_goal": position + 1,
        }


class Stacked(gym.Env):
    """Observations are two stacked 40×48 frames: another size, and another number of channels."""

    def __init__(self) -> None:
        image = gym.spaces.Box(0, 255, (40, 48, 6), np.uint8)
        self.observation_space = gym.spaces.Dict({"observation": image, "desired_goal": image})
        self.action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action: np.ndarray) -> Any:
        return self.observation_space.sample(), 1.0, True, False, {}


gym.register("Line-v0", "test_adapters:Line")
gym.register("Stacked-v0", "test_adapters:Stacked")


class ShortEpisodes(AchievedGoalAdapter):
    """Ends episodes after four steps."""

    max_steps = 4


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train an agent on one-dimensional vectors; its dataset names its environment."""
    path = tmp_path_factory.mktemp("adapter")
    rng = np.random.default_rng(0)
    config = {"env": "test_adapters:Line-v0", "adapter": "achieved"}
    frames, actions = rng.normal(size=(22, 1)).astype(np.float32), rng.uniform(-1, 1, (20, 1)).astype(np.float32)
    data = write_dataset(Dataset.from_arrays(frames, actions, [10, 10], config=config), path / "data")
    assert data.path is not None
    options = ["--preset", "smoke", "--steps", "2", "--quiet"]
    main(["train", "--data", str(data.path), "--out", str(path / "run"), *options])
    return path / "run"


def test_data_without_goals_is_relabelled_in_hindsight(run: Path) -> None:
    goals = gcb.load(run).run.config.goals  # pyright: ignore[reportOptionalMemberAccess]
    assert goals.p_original == 0
    assert goals.p_future + goals.p_next_frame + goals.p_random == pytest.approx(1)


def test_run_records_its_environment_and_adapter(run: Path) -> None:
    agent = gcb.load(run)
    env_spec = env_spec_of(agent)
    assert env_spec == EnvSpec("test_adapters:Line-v0", {}, ADAPTERS["achieved"])
    assert modes_of(agent, env_spec) == ("goal",)  # the environment has no analogies, though the method supports them
    result = evaluate(agent, EnvSpec("Line-v0", adapter=ShortEpisodes()), episodes=3, quiet=True)
    assert [outcome.task for outcome in result.outcomes] == ["all"] * 3
    with pytest.raises(GCBError, match="mode is 'strict'; Line-v0"):
        evaluate(agent, EnvSpec("Line-v0", adapter=ShortEpisodes()), "strict", quiet=True)
    with pytest.raises(GCBError, match=r"vectors \(1,\)"):
        evaluate(agent, EnvSpec("Line-v0", adapter=ShortEpisodes()), video="x.mp4", quiet=True)


def test_adapter_from_the_command_line(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["--episodes", "2", "--env", "test_adapters:Line-v0"]
    main(["eval", str(run), *line, "--adapter", "test_adapters:ShortEpisodes"])
    assert "goal" in capsys.readouterr().out
    entry = read_results(run)["goal"]
    assert entry["env"] == {"env": "test_adapters:Line-v0", "options": {}, "adapter": "test_adapters:ShortEpisodes"}
    assert not (run / "videos").exists()
    for arguments, message in (
        (["--adapter", "goal"], "no env is given that it would adapt"),
        ([*line, "--adapter", "goals"], "There is no adapter 'goals'; did you mean goal?"),
        ([*line, "--adapter", "nowhere:Thing"], "No module named 'nowhere'"),
        ([*line, "--adapter", "test_adapters:Line"], "which is a Line; accepted: a gcb.envs.adapters.Adapter"),
        (
            [*line, "--adapter", "goal"],
            r"observations (2,) and actions (1,); the agent was trained on (1,)",
        ),
        ([*line, "--adapter", "gcb"], "need an adapter"),
    ):
        with pytest.raises(SystemExit):
            main(["eval", str(run), *arguments])
        assert message in capsys.readouterr().err


def test_stacked_frames_from_dataset_to_video(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (12, 40, 48, 6), dtype=np.uint8)
    data = Dataset.from_arrays(frames, rng.uniform(-1, 1, (10, 2)).astype(np.float32), [5, 5])
    goals = {"p_original": 0.0, "p_future": 0.9, "p_next_frame": 0.1}
    train(tiny_config(steps=2, goals=goals), data, tmp_path / "run", quiet=True)
    agent, env_spec = gcb.load(tmp_path / "run"), EnvSpec("Stacked-v0", adapter=Adapter())
    assert agent.act(frames[:3], goal=frames[4]).shape == (3, 2)
    result = evaluate(agent, env_spec, episodes=3, video=tmp_path / "video.mp4", quiet=True)
    assert result.rate().value == 1
    assert (tmp_path / "video.mp4").stat().st_size > 500
    assert contact_sheet(data, tmp_path / "sheet.png", episodes=2).stat().st_size > 500


def test_actions_are_rescaled_to_the_action_space() -> None:
    env, adapter = Line(), Adapter()
    rescaled = [float(adapter.action(env, np.array([value], np.float32))[0]) for value in (-1, -0.5, 0, 1)]
    assert rescaled == [0, 1, 2, 4]
    env.action_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    action = np.array([0.3], np.float32)
    assert adapter.action(env, action) is action
    env.action_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    assert adapter.action(env, action) is action


def test_success_from_info_or_reward() -> None:
    success = Adapter().success
    assert success(0.0, {"success": True})
    assert not success(5.0, {"success": False})
    assert success(-1.0, {"is_success": np.array(True)})
    assert success(0.5, {})
    assert not success(-1.0, {})


def test_ogbench_task_depends_on_the_seed() -> None:
    env, adapter = Line("array"), InfoGoalAdapter()
    tasks = []
    for seed in range(1, 13, 2):  # evaluation seeds share their last bit
        observation, info = adapter.reset(env, seed)
        assert env.options == {"task_id": int(info["task"].removeprefix("task "))}
        tasks.append(info["task"])
        assert adapter.goal(observation, info) == adapter.observation(observation, info) + 1
    assert tasks == ["task 1", "task 2", "task 3"] * 2
    assert adapter.observation_shape(env) == (1,)


def test_every_kind_of_analogy_is_a_mode() -> None:
    assert MODES == ADAPTERS["gcb"].modes == ("goal", *ANALOGIES)
    assert set(DEFAULT_MODES) <= set(MODES)
    options = [ADAPTERS["gcb"].env_options({}, mode).get("analogy") for mode in MODES]
    assert options == [None, "strict", "loose", "free"]


def test_adapter_names() -> None:
    assert [adapter_name(get_adapter(name)) for name in ADAPTERS] == list(ADAPTERS)
    assert adapter_name(ShortEpisodes()) == "test_adapters:ShortEpisodes"
    assert isinstance(load_adapter("test_adapters:ShortEpisodes"), ShortEpisodes)
    with pytest.raises(NotImplementedError, match="AchievedGoalAdapter shows no examples"):
        AchievedGoalAdapter().example({}, {})


def test_files_cannot_name_code_to_import(tmp_path: Path) -> None:
    """A dataset or run may come from an untrusted source: it may only name built-in adapters."""
    rng = np.random.default_rng(0)
    config = {"env": "Line-v0", "adapter": "test_adapters:ShortEpisodes"}
    data = Dataset.from_arrays(rng.normal(size=(6, 1)), rng.uniform(-1, 1, (5, 1)), [5], config=config)
    goals = {"p_original": 0.0, "p_future": 0.9, "p_next_frame": 0.1}
    train(tiny_config("gcbc", steps=1, goals=goals), data, tmp_path / "run", quiet=True)
    with pytest.raises(GCBError, match="There is no adapter 'test_adapters:ShortEpisodes'"):
        env_spec_of(gcb.load(tmp_path / "run"))
    with pytest.raises(GCBError, match="There is no adapter 'test_adapters:ShortEpisodes'"):
        import_data(tmp_path, tmp_path / "data", ImportOptions(env="Line-v0", adapter="test_adapters:ShortEpisodes"))
    with pytest.raises(GCBError, match="adapter is 'goal'"):
        ImportOptions(adapter="goal")


def test_training_and_evaluation_do_not_import_the_simulator() -> None:
    """PyBullet has no wheels for Python 3.12 and later, where training on other data must still work."""
    program = "import gcb.training.trainer, gcb.evaluation.evaluate, sys; sys.exit('pybullet' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
