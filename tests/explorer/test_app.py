"""The API: valid requests, invalid ones, and requests while the run is not loaded."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.explorer_server import copy_run, serving, wait_for, wait_until_loaded

from gcb.explorer.loader import RunLoader
from gcb.runs.run_dir import CHECKPOINT, RECORD

GOOD: dict[str, Any] = {"scene": {"seed": 4}, "task": {"by": "example", "seed": 5}}


@pytest.fixture
def client(url: str) -> Any:
    with httpx.Client(base_url=url, timeout=120) as client:
        yield client


def test_the_page_and_its_files_load_nothing_from_elsewhere(client: httpx.Client) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for name in ("style.css", "main.js", "api.js", "episode.js", "map.js"):
        text = client.get(f"/static/{name}").raise_for_status().text
        assert "//" not in text.replace("http://www.w3.org/2000/svg", "").replace("// ", "").replace("//,", "")


def test_head_is_answered_like_get_without_a_body(client: httpx.Client) -> None:
    for path in ("/", "/static/style.css", "/api/status"):
        answer = client.head(path)
        assert answer.status_code == 200
        assert not answer.content
    assert client.head("/api/unknown").status_code == 404


def test_status_describes_the_run(client: httpx.Client, run: Path) -> None:
    status = client.get("/api/status").json()
    (described,) = status["runs"]
    assert (status["state"], described["method"], described["steps"]) == ("ready", "gcb", 3)
    assert (described["run"], described["path"], described["bundled"]) == ("gcb", str(run), False)
    assert status["image_size"] == [64, 64]
    assert status["env"] == "gcb/ButtonDrawer-v0"
    assert status["tasks"] == ["drawer", "button"]
    assert status["supports_analogy"]
    assert status["deleted"] is None
    assert not status["video"]
    assert status["map"]["state"] == "ready"


def test_scene_example_and_analysis(client: httpx.Client) -> None:
    scene = client.post("/api/scene", json={"seed": 4}).json()
    assert scene["image"].startswith("data:image/jpeg;base64,")
    assert scene["task"] == "drawer"
    task = client.post("/api/task", json=GOOD).json()
    assert task["label"].startswith("close the drawer: 57 to ")
    assert task["before_image"] != task["after_image"]
    analysis = client.post("/api/analysis", json=GOOD).json()
    assert len(analysis["neighbours"]) == 6
    scores = {"same_function", "same_pose", "yaw_error", "position_error"}
    assert {"index", "part", *scores} <= analysis["inferred_goal"].keys()
    points = client.get("/api/map").json()
    assert len(points["x"]) == len(points["label"]) == 240
    assert min(points["x"]) == min(points["y"]) == 0.0
    assert max(points["x"]) == max(points["y"]) == 1.0


def test_a_point_of_the_map_can_be_the_example(client: httpx.Client) -> None:
    label = client.get("/api/map").json()["label"][3]
    task = client.post("/api/task", json={**GOOD, "task": {"by": "dataset", "index": 3}}).json()
    assert task["label"] == label
    assert task["after_image"].startswith("data:image/png")
    image = client.get("/api/tasks/3/goal.png")
    assert image.headers["content-type"] == "image/png"


@pytest.mark.parametrize("task", [GOOD["task"], {"by": "goal"}, {"by": "dataset", "index": 3}])
def test_an_episode_is_streamed_line_by_line(client: httpx.Client, task: dict[str, Any]) -> None:
    with client.stream("POST", "/api/episode", json={**GOOD, "task": task}) as stream:
        events = [json.loads(line) for line in stream.iter_lines()]
    assert [event["type"] for event in events] == ["start", *["step"] * 75, "end"]


BAD: list[tuple[str, str, dict[str, Any], int]] = [
    ("POST", "/api/scene", {"json": {"seed": -1}}, 422),
    ("POST", "/api/scene", {"json": {"seed": 10**300}}, 422),
    ("POST", "/api/scene", {"content": b'{"seed": NaN}'}, 422),
    ("POST", "/api/scene", {"content": b'{"seed": 1'}, 422),
    ("POST", "/api/scene", {"content": b"\xff\xfe\x00"}, 400),
    ("POST", "/api/scene", {"content": b"[" * 60_000}, 400),
    ("POST", "/api/scene", {"content": b"9" * 60_000}, 400),
    ("POST", "/api/scene", {"content": b""}, 422),
    ("POST", "/api/task", {"json": {**GOOD, "task": {"by": "dataset", "index": 240}}}, 422),
    ("POST", "/api/task", {"json": {**GOOD, "task": {"by": "example", "seed": 5, "name": "../x"}}}, 422),
    ("POST", "/api/task", {"json": {**GOOD, "task": {"by": "goal", "drawer_after": 2.0}}}, 422),
    ("POST", "/api/episode", {"json": {**GOOD, "more": 1}}, 422),
    ("POST", "/api/episode", {"json": {**GOOD, "task": {"by": "dataset", "index": 999_999}}}, 422),
    ("POST", "/api/success", {"json": {"by": "example", "seed": 1, "scenes": 0}}, 422),
    ("POST", "/api/success", {"json": {"by": "example", "seed": 1, "scenes": 201}}, 422),
    ("POST", "/api/success", {"json": {"by": "dataset", "seed": 1, "scenes": 1}}, 422),
    ("POST", "/api/film", {"json": {**GOOD, "task": {"by": "dataset", "index": 999_999}}}, 422),
    ("GET", "/api/episode", {}, 405),
    ("GET", "/api/tasks/-1/goal.png", {}, 422),
    ("GET", "/api/tasks/240/goal.png", {}, 422),
    ("GET", "/api/tasks/1e9/goal.png", {}, 422),
    ("GET", "/api/tasks/99999999999999999999/goal.png", {}, 422),
    ("GET", "/api/tasks/1/secret.png", {}, 422),
    ("GET", "/api/unknown", {}, 404),
    ("GET", "/docs", {}, 404),
    ("GET", "/openapi.json", {}, 404),
    ("GET", "/static/..%2f..%2fapp.py", {}, 404),
    ("GET", "/static/%2e%2e/app.py", {}, 404),
    ("GET", "/static/..\\app.py", {}, 404),
    ("GET", "/static/app.py%00.js", {}, 404),
    ("DELETE", "/api/status", {}, 405),
]


@pytest.mark.parametrize(("method", "path", "request_", "status"), BAD)
def test_bad_requests_are_refused_with_a_message(
    client: httpx.Client, method: str, path: str, request_: dict[str, Any], status: int
) -> None:
    headers = {"content-type": "application/json"} if "content" in request_ else {}
    refused = client.request(method, path, headers=headers, **request_)
    assert refused.status_code == status
    assert refused.json()["detail"]
    assert client.get("/api/status").json()["state"] == "ready"


def test_large_bodies_are_refused(client: httpx.Client) -> None:
    refused = client.post("/api/task", content=b"[" * (50 << 20), headers={"content-type": "application/json"})
    assert refused.status_code == 413
    assert "too large" in refused.json()["detail"]
    assert client.post("/api/scene", json={"seed": 4}).status_code == 200


def test_pages_of_other_sites_cannot_start_an_episode(client: httpx.Client) -> None:
    refused = client.post("/api/episode", json=GOOD, headers={"origin": "http://evil.example"})
    assert refused.status_code == 403


def test_a_method_without_phi_has_no_map(trained: Callable[[str], Path]) -> None:
    loader = RunLoader([trained("goal_agnostic_bc")])
    with serving(loader) as url, httpx.Client(base_url=url, timeout=120) as client:
        wait_until_loaded(loader)
        status = client.get("/api/status").json()["map"]
        assert status["state"] == "unavailable"
        assert "goal_agnostic_bc has no task embedding φ" in status["detail"]
        refused = client.post("/api/analysis", json=GOOD)
        assert refused.status_code == 409
        assert "goal_agnostic_bc has no task embedding φ" in refused.json()["detail"]


def test_a_method_without_analogies_refuses_examples(trained: Callable[[str], Path]) -> None:
    loader = RunLoader([trained("gcbc")])
    with serving(loader) as url, httpx.Client(base_url=url, timeout=120) as client:
        wait_until_loaded(loader)
        assert not client.get("/api/status").json()["supports_analogy"]
        analysis = client.post("/api/analysis", json={**GOOD, "task": {"by": "goal"}})
        assert analysis.status_code == 200
        refused = client.post("/api/episode", json=GOOD)
        assert refused.status_code == 422
        assert "gcbc cannot be conditioned on an example" in refused.json()["detail"]


def test_unknown_environments_and_missing_datasets_are_reported(run: Path, tmp_path: Path) -> None:
    def change(data: dict[str, Any]) -> None:
        data["config"]["env"] = "Pendulum-v1"
        data["path"] = str(tmp_path / "nowhere")

    loader = RunLoader([copy_run(run, tmp_path / "run", change)])
    with serving(loader) as url, httpx.Client(base_url=url, timeout=120) as client:
        wait_until_loaded(loader)
        status = client.get("/api/status").json()
        assert "environment is 'Pendulum-v1'" in status["unavailable"]
        assert str(tmp_path / "nowhere") in status["map"]["detail"]
        for path in ("/api/task", "/api/episode"):
            refused = client.post(path, json=GOOD)
            assert refused.status_code == 409
            assert "Pendulum-v1" in refused.json()["detail"]
        assert client.get("/api/map").status_code == 409


def test_the_loader_waits_for_the_first_checkpoint(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gcb.explorer.loader.RETRY_SECONDS", 0.05)
    path = copy_run(run, tmp_path / "run", lambda data: data.update(path=None))
    (path / CHECKPOINT).rename(tmp_path / CHECKPOINT)
    loader = RunLoader([path])
    with serving(loader) as url, httpx.Client(base_url=url, timeout=120) as client:
        wait_for(lambda: loader.state == "waiting")
        assert "no checkpoint yet" in client.get("/api/status").json()["detail"]
        refused = client.post("/api/scene", json={"seed": 1})
        assert refused.status_code == 503
        assert "no checkpoint yet" in refused.json()["detail"]
        (path / RECORD).rename(tmp_path / RECORD)
        wait_for(lambda: loader.state == "failed")
        assert "is not a run" in loader.detail
        (tmp_path / RECORD).rename(path / RECORD)
        (tmp_path / CHECKPOINT).rename(path / CHECKPOINT)
        wait_for(lambda: loader.state == "ready")
        wait_until_loaded(loader)
        assert client.get("/api/status").json()["map"]["detail"].endswith("--data")
        assert client.post("/api/scene", json={"seed": 4}).status_code == 200


def test_a_deleted_run_is_reported_and_still_acts(run: Path, tmp_path: Path) -> None:
    path = copy_run(run, tmp_path / "run", lambda data: data.update(path=None))
    loader = RunLoader([path])
    with serving(loader) as url, httpx.Client(base_url=url, timeout=120) as client:
        wait_until_loaded(loader)
        shutil.rmtree(path)
        assert client.get("/api/status").json()["deleted"] == str(path)
        assert client.post("/api/task", json=GOOD).status_code == 200
