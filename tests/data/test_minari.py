"""What Minari's metadata say: environment, action bounds, author and algorithm, both ways; exports without space."""

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers.counting_env import collected
from helpers.faults import run_forked
from test_formats import trajectories

import gcb.envs
from gcb.cli.main import main
from gcb.data import Dataset, ImportOptions, export_data, from_episodes, import_data, write_dataset
from gcb.errors import GCBError

minari = pytest.importorskip("minari")


def metadata_of(path: Path) -> dict[str, Any]:
    return json.loads((path / "data" / "metadata.json").read_bytes())


def dataset(config: dict[str, Any]) -> Dataset:
    return from_episodes(trajectories(np.random.default_rng(0), (2, 3), vectors=True), config)


def test_minari_recovers_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pybullet")
    config = {"env": "gcb/Drawer-v0", "options": {"image_size": 32}, "noise": 0.3}
    export_data(dataset(config), tmp_path / "drawer-v0", quiet=True)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = minari.load_dataset("drawer-v0").recover_environment()
    assert env.observation_space["observation"].shape == (32, 32, 3)
    assert env.unwrapped.layout is gcb.envs.ENVS["gcb/Drawer-v0"]
    assert env.spec.max_episode_steps == 75
    env.close()
    metadata = metadata_of(tmp_path / "drawer-v0")
    assert metadata["algorithm_name"] == "scripted expert with noise 0.3"
    assert metadata["author"] == [f"gcb {gcb.__version__}"]
    back = import_data(tmp_path / "drawer-v0", tmp_path / "back", quiet=True).dataset
    assert {key: back.config[key] for key in config} == config


@pytest.mark.filterwarnings("ignore::UserWarning:minari")  # it asks for more metadata
def test_environment_and_bounds_of_a_minari_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from minari.data_collector import EpisodeBuffer

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {
        "observations": rng.normal(size=(4, 3)).astype(np.float32),
        "actions": np.array([[-2.0], [1.0], [0.5]], np.float32),
        "rewards": np.zeros(3),
        "terminations": np.zeros(3, bool),
        "truncations": np.arange(3) == 2,
    }
    minari.create_dataset_from_buffers(
        "swing-v0", [EpisodeBuffer(**arrays)], env="Pendulum-v1", algorithm_name="energy", author={"A", "B"}
    )
    data = import_data(tmp_path / "swing-v0", tmp_path / "data", quiet=True).dataset
    assert (data.config["env"], data.config["adapter"], data.config["action_bound"]) == ("Pendulum-v1", "goal", 2.0)
    assert data.actions.ravel().tolist() == [-1, 0.5, 0.25]
    assert (data.config["source"]["author"], data.config["source"]["algorithm"]) == (["A", "B"], "energy")
    export_data(data, tmp_path / "again-v0", quiet=True)
    again = minari.load_dataset("again-v0")
    np.testing.assert_array_equal(again[0].actions, arrays["actions"])
    assert again.action_space.high.tolist() == [2]
    assert isinstance(again.recover_environment().action_space, gym.spaces.Box)
    metadata = metadata_of(tmp_path / "again-v0")
    assert (sorted(metadata["author"]), metadata["algorithm_name"]) == (["A", "B"], "energy")
    chosen = import_data(
        tmp_path / "swing-v0", tmp_path / "four", ImportOptions(action_bound=4, env="E-v0"), quiet=True
    )
    assert (chosen.dataset.config["env"], chosen.dataset.actions[0, 0]) == ("E-v0", -0.5)


def test_a_named_package_is_recorded_and_not_imported(tmp_path: Path) -> None:
    export_data(dataset({}), tmp_path / "in-v0", quiet=True)
    assert "env_spec" not in metadata_of(tmp_path / "in-v0")
    path = tmp_path / "in-v0" / "data" / "metadata.json"
    spec = {"id": "Maze-v3", "entry_point": "no_such_robotics.maze:Maze", "kwargs": {"size": 3}}
    path.write_text(json.dumps({**metadata_of(tmp_path / "in-v0"), "env_spec": json.dumps(spec)}))
    data = import_data(tmp_path / "in-v0", tmp_path / "data", quiet=True).dataset
    assert (data.config["env"], data.config["options"]) == ("no_such_robotics:Maze-v3", {"size": 3})
    path.write_text(json.dumps({**metadata_of(tmp_path / "in-v0"), "env_spec": "[]"}))
    with pytest.raises(GCBError, match="env_spec is not one of Gymnasium's"):
        import_data(tmp_path / "in-v0", tmp_path / "other", quiet=True)


def test_export_imports_only_what_the_user_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    code = "import gymnasium\ngymnasium.register('Named-v0', entry_point='named_env:Env')\n"
    (tmp_path / "named_env.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    data = str(tmp_path / "data")
    write_dataset(dataset({"env": "named_env:Named-v0"}), data)
    main(["data", "export", data, "--out", str(tmp_path / "a-v0")])
    assert "env_spec" not in metadata_of(tmp_path / "a-v0")
    assert "named_env" not in sys.modules
    assert "--env named_env:Named-v0" in " ".join(capsys.readouterr().out.split())
    main(["data", "export", data, "--out", str(tmp_path / "b-v0"), "--env", "named_env:Named-v0"])
    assert json.loads(metadata_of(tmp_path / "b-v0")["env_spec"])["entry_point"] == "named_env:Env"
    for env, message in (("no_such_module:X-v0", "No module named"), ("X-v0", "there is no environment 'X-v0'")):
        with pytest.raises(GCBError, match=message):
            export_data(dataset({}), tmp_path / "c-v0", env=env)
    with pytest.raises(GCBError, match="only Minari names an environment"):
        export_data(dataset({}), tmp_path / "c.npz", env="Pendulum-v1")
    assert not list(tmp_path.glob("c*"))
    del gym.registry["Named-v0"]


@pytest.mark.parametrize("limit", [100, 5_000, 1_200_000, 1_800_000])
def test_export_without_space(tmp_path: Path, limit: int) -> None:
    """HDF5 ends the process if a write fails."""
    data = collected(tmp_path / "data", 60, side=32)

    def export() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        export_data(data, tmp_path / "full-v0", quiet=True)

    ended = run_forked(export)
    assert "could not be written: File too large. Nothing was kept" in ended.message, ended
    assert os.listdir(tmp_path) == ["data"]
