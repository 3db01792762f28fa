"""Agents in the conventions of the Hugging Face Hub: a folder, and a hub on loopback, also one that misbehaves."""

import json
import os
import pickle
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from helpers.hub_server import COMMIT, TOKEN, Hub, running_hub
from helpers.tiny import tiny_config, tiny_dataset

import gcb
from gcb.agent import Agent
from gcb.errors import GCBError
from gcb.training.trainer import train

pytest.importorskip("huggingface_hub")
from huggingface_hub import constants

NAME = "me/mover"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hub")
    train(tiny_config(steps=2, checkpoint_every=1), tiny_dataset(), path / "run", quiet=True)
    return path / "run"


@pytest.fixture(scope="module")
def agent(run: Path) -> Agent:
    return gcb.load(run)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with running_hub() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        yield server


@pytest.fixture
def shared(hub: Hub, agent: Agent, tmp_path: Path) -> dict[str, bytes]:
    """The files of an agent on the hub."""
    folder = agent.save_pretrained(tmp_path / "shared")
    hub.repositories[NAME] = {file.name: file.read_bytes() for file in folder.iterdir()}
    return hub.repositories[NAME]


def assert_alike(agent: Agent, other: Agent) -> None:
    frames = tiny_dataset().frames
    first, second = (each.act(frames[:3], goal=frames[9]) for each in (agent, other))
    np.testing.assert_array_equal(first, second)
    assert agent.step == other.step


def files_in(path: Path) -> list[Path]:
    return [file for file in path.rglob("*") if file.is_file()]


def test_a_folder(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty"):
        folder = agent.save_pretrained(tmp_path / name)
        assert_alike(agent, Agent.from_pretrained(folder))
        assert_alike(agent, gcb.load(folder))
    with pytest.raises(GCBError, match="already exists"):
        agent.save_pretrained(tmp_path / "new")
    with pytest.raises(GCBError, match="was not loaded from a run"):
        Agent(agent.method, agent.iql, agent.shapes, agent.device).save_pretrained(tmp_path / "other")
    assert sorted(os.listdir(tmp_path)) == ["empty", "new"]


def test_a_run_that_was_trained_on_is_not_mixed_up(agent: Agent, tmp_path: Path) -> None:
    earlier = Agent(agent.method, agent.iql, agent.shapes, agent.device, agent.run, step=1)
    with pytest.raises(GCBError, match="from step 1 to 2; load the agent again"):
        earlier.save_pretrained(tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_up_and_down(agent: Agent, hub: Hub, tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    hub.repositories[NAME] = {"weights-00000001.safetensors": b"of an earlier upload"}
    address = agent.push_to_hub(NAME, token=TOKEN)
    assert address == f"{hub.url}/{NAME}/commit/{COMMIT}"
    files = hub.repositories[NAME]
    assert sorted(files) == ["README.md", "checkpoint.json", "config.yaml", "run.json", "weights-00000002.safetensors"]
    assert f'gcb.load("hf://{NAME}")'.encode() in files["README.md"]
    assert_alike(agent, gcb.load(f"hf://{NAME}"))
    assert_alike(agent, gcb.load(f"hf://{NAME}@main"))
    assert_alike(agent, Agent.from_pretrained(NAME, revision=COMMIT, cache_dir=tmp_path / "other"))
    posts = [authorisation for method, _, authorisation in hub.requests if method == "POST"]
    assert set(posts) == {f"Bearer {TOKEN}"}
    written = [file.read_bytes() for file in files_in(tmp_path)]
    assert not any(TOKEN.encode() in content for content in [*written, *files.values()])
    assert TOKEN not in "".join(capfd.readouterr())


def test_the_cache_works_without_a_network(agent: Agent, hub: Hub, shared: dict[str, bytes]) -> None:
    gcb.load(f"hf://{NAME}")
    hub.repositories.clear()
    assert_alike(agent, Agent.from_pretrained(NAME, local_files_only=True))


class Bomb:
    """Unpickling it writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable, tuple]:
        return Path.touch, (self.path,)


def assert_refused(name: str, message: str, cache: Path) -> None:
    with pytest.raises(GCBError, match=message) as caught:
        gcb.load(name)
    assert "\n" not in str(caught.value)
    assert not list(cache.rglob("*.incomplete"))


def test_names_that_do_not_exist(hub: Hub, shared: dict[str, bytes], tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert_refused("hf://me/nobody", f"hf://me/nobody does not exist at {hub.url}, or is private", cache)
    assert_refused(f"hf://{NAME}@v9", f"hf://{NAME} has no such revision", cache)
    assert_refused("hf://../../etc", "is not a name on the Hub; accepted: hf://owner/name", cache)
    assert_refused("hf://", "is not a name on the Hub", cache)
    assert_refused("hf://mover", "'hf://mover' is not a name on the Hub; accepted: hf://owner/name", cache)
    del shared["config.yaml"]
    assert_refused(f"hf://{NAME}", "is not an agent of gcb: it lacks run.json, config.yaml", cache)


def test_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{port}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    assert_refused(f"hf://{NAME}", "is not in the cache, and http://127.* cannot be reached", tmp_path)
    assert not files_in(tmp_path)


def test_a_hub_that_answers_with_garbage(
    hub: Hub, shared: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = dict(shared)
    bomb = pickle.dumps(Bomb(tmp_path / "executed"))
    hub.garbage = b"<html>Please log in to this network</html>"
    assert_refused(
        f"hf://{NAME}", "could not be exchanged with http://127.*: ValueError, it does not answer like a hub", tmp_path
    )
    hub.garbage = None
    weights = "weights-00000002.safetensors"
    faults = {
        "run.json": [
            (b"<html>", "is not readable JSON"),
            (b"[]", "does not describe a run"),
            (bomb, "not readable JSON"),
        ],
        "config.yaml": [(bomb, "is not plain YAML"), (b"!!python/object/apply:os.abort []", "is not plain YAML")],
        weights: [(bomb, "is damaged: its size or SHA-256")],
    }
    checkpoint = json.loads(original["checkpoint.json"])
    for name, message in (
        ("../x.safetensors", "must be the name of a file"),
        ("weights.pkl", "accepted: a safetensors"),
    ):
        changed = json.dumps({**checkpoint, "weights": {**checkpoint["weights"], "name": name}})
        faults.setdefault("checkpoint.json", []).append((changed.encode(), message))
    for file, cases in faults.items():
        for content, message in cases:
            shared.update({**original, file: content})
            monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / f"cache-{len(list(tmp_path.iterdir()))}"))
            assert_refused(f"hf://{NAME}", message, tmp_path)
    assert not (tmp_path / "executed").exists()
    assert not [path for _, path, _ in hub.requests if "pkl" in path]


def test_a_push_that_fails(agent: Agent, hub: Hub, tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    with pytest.raises(GCBError, match=rf"hf://{NAME} .*{hub.url}") as caught:
        agent.push_to_hub(NAME, token="hf_wrongSecret")
    assert "hf_wrong" not in str(caught.value) + "".join(capfd.readouterr())
    assert hub.repositories == {}


def test_a_missing_library(monkeypatch: pytest.MonkeyPatch, agent: Agent) -> None:
    monkeypatch.setattr("gcb.agent.hub.find_spec", lambda name: None)
    for call in (lambda: gcb.load(f"hf://{NAME}"), lambda: agent.push_to_hub(NAME)):
        with pytest.raises(GCBError, match=r"pip install 'gcb\[hub\]'"):
            call()
