"""The server's answers: to what a page asks, to what nobody should ask, and while nothing is there yet."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.explorer_server import loaded, serving, wait_for, with_record

from gcb.explorer.loader import RunLoader
from gcb.runs.run_dir import POINTER, RECORD

GOOD: dict[str, Any] = {"scene": {"seed": 4}, "told": {"by": "example", "seed": 5}}


@pytest.fixture
def client(url: str) -> Any:
    with httpx.Client(base_url=url, timeout=120) as made:
        yield made


def test_the_page_and_its_files_come_from_here_alone(client: httpx.Client) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for name in ("style.css", "main.js", "api.js", "film.js", "map.js"):
        text = client.get(f"/static/{name}").raise_for_status().text
        assert "//" not in text.replace("http://www.w3.org/2000/svg", "").replace("// ", "").replace("//,", "")


def test_the_run_is_described(client: httpx.Client, run: Path) -> None:
    status = client.get("/api/run").json()
    assert (status["state"], status["method"], status["steps"]) == ("ready", "gcb", 3)
    assert status["env"] == "gcb/ButtonDrawer-v0"
    assert status["tasks"] == ["drawer", "button"]
    assert status["supports_analogy"]
    assert not status["gone"]
    assert not status["video"]
    assert status["map"]["state"] == "ready"


def test_scene_example_and_what_it_makes_of_it(client: httpx.Client) -> None:
    scene = client.post("/api/scene", json={"seed": 4}).json()
    assert scene["image"].startswith("data:image/jpeg;base64,")
    assert scene["task"] == "drawer"
    told = client.post("/api/told", json=GOOD).json()
    assert told["words"] == told["here"]["words"]
    assert told["before"] != told["after"]
    found = client.post("/api/understand", json=GOOD).json()
    assert len(found["neighbours"]) == 6
    assert {"index", "part", "function", "pose", "yaw", "position"} <= found["inferred"].keys()
    points = client.get("/api/map").json()
    assert len(points["x"]) == len(points["words"]) == 240
    assert min(points["x"]) == min(points["y"]) == 0.0
    assert max(points["x"]) == max(points["y"]) == 1.0


def test_a_point_of_the_map_is_an_example(client: httpx.Client) -> None:
    words = client.get("/api/map").json()["words"][3]
    told = client.post("/api/told", json={**GOOD, "told": {"by": "data", "index": 3}}).json()
    assert told["words"] == words
    assert told["after"].startswith("data:image/png")
    picture = client.get("/api/task/3/goal.png")
    assert picture.headers["content-type"] == "image/png"


@pytest.mark.parametrize("told", [GOOD["told"], {"by": "goal"}, {"by": "data", "index": 3}])
def test_an_episode_comes_line_by_line(client: httpx.Client, told: dict[str, Any]) -> None:
    with client.stream("POST", "/api/play", json={**GOOD, "told": told}) as stream:
        events = [json.loads(line) for line in stream.iter_lines()]
    assert [event["kind"] for event in events] == ["start", *["step"] * 75, "end"]


BAD: list[tuple[str, str, dict[str, Any], int]] = [
    ("POST", "/api/scene", {"json": {"seed": -1}}, 422),
    ("POST", "/api/scene", {"json": {"seed": 10**300}}, 422),
    ("POST", "/api/scene", {"content": b'{"seed": NaN}'}, 422),
    ("POST", "/api/scene", {"content": b'{"seed": 1'}, 422),
    ("POST", "/api/scene", {"content": b"\xff\xfe\x00"}, 400),
    ("POST", "/api/scene", {"content": b"[" * 60_000}, 400),
    ("POST", "/api/scene", {"content": b"9" * 60_000}, 400),
    ("POST", "/api/scene", {"content": b""}, 422),
    ("POST", "/api/told", {"json": {**GOOD, "told": {"by": "data", "index": 240}}}, 422),
    ("POST", "/api/told", {"json": {**GOOD, "told": {"by": "example", "seed": 5, "task": "../x"}}}, 422),
    ("POST", "/api/told", {"json": {**GOOD, "told": {"by": "goal", "after": 2.0}}}, 422),
    ("POST", "/api/play", {"json": {**GOOD, "more": 1}}, 422),
    ("POST", "/api/play", {"json": {**GOOD, "told": {"by": "data", "index": 999_999}}}, 422),
    ("GET", "/api/play", {}, 405),
    ("GET", "/api/task/-1/goal.png", {}, 422),
    ("GET", "/api/task/240/goal.png", {}, 422),
    ("GET", "/api/task/1e9/goal.png", {}, 422),
    ("GET", "/api/task/99999999999999999999/goal.png", {}, 422),
    ("GET", "/api/task/1/secret.png", {}, 422),
    ("GET", "/api/unknown", {}, 404),
    ("GET", "/docs", {}, 404),
    ("GET", "/openapi.json", {}, 404),
    ("GET", "/static/..%2f..%2fapp.py", {}, 404),
    ("GET", "/static/%2e%2e/app.py", {}, 404),
    ("GET", "/static/..\\app.py", {}, 404),
    ("GET", "/static/app.py%00.js", {}, 404),
    ("DELETE", "/api/run", {}, 405),
]


@pytest.mark.parametrize(("method", "path", "request_", "status"), BAD)
def test_bad_requests_get_a_reason(
    client: httpx.Client, method: str, path: str, request_: dict[str, Any], status: int
) -> None:
    headers = {"content-type": "application/json"} if "content" in request_ else {}
    refused = client.request(method, path, headers=headers, **request_)
    assert refused.status_code == status
    assert refused.json()["reason"]
    assert client.get("/api/run").json()["state"] == "ready"


def test_fifty_megabytes_are_refused(client: httpx.Client) -> None:
    refused = client.post("/api/told", content=b"[" * (50 << 20), headers={"content-type": "application/json"})
    assert refused.status_code == 413
    assert "too large" in refused.json()["reason"]
    assert client.post("/api/scene", json={"seed": 4}).status_code == 200


def test_a_foreign_page_may_not_start_an_episode(client: httpx.Client) -> None:
    refused = client.post("/api/play", json=GOOD, headers={"origin": "http://evil.example"})
    assert refused.status_code == 403


def test_a_method_without_phi_has_no_map(trained: Callable[[str], Path]) -> None:
    explorer = RunLoader(trained("goal_agnostic_bc"))
    with serving(explorer) as url, httpx.Client(base_url=url, timeout=120) as client:
        loaded(explorer)
        assert client.get("/api/run").json()["map"] == {
            "state": "unavailable",
            "what": "goal_agnostic_bc has no task embedding φ: there is nothing to draw a map of",
            "done": 0.0,
        }
        refused = client.post("/api/understand", json=GOOD)
        assert refused.status_code == 409
        assert "goal_agnostic_bc has no task embedding φ" in refused.json()["reason"]


def test_a_method_that_takes_no_examples_says_so(trained: Callable[[str], Path]) -> None:
    explorer = RunLoader(trained("gcbc"))
    with serving(explorer) as url, httpx.Client(base_url=url, timeout=120) as client:
        loaded(explorer)
        assert not client.get("/api/run").json()["supports_analogy"]
        found = client.post("/api/understand", json={**GOOD, "told": {"by": "goal"}})
        assert found.status_code == 200
        refused = client.post("/api/play", json=GOOD)
        assert refused.status_code == 422
        assert "gcbc cannot be told what to do by an example; tell it by a goal image" in refused.json()["reason"]


def test_another_world_cannot_be_acted_out_and_the_data_may_be_gone(run: Path, tmp_path: Path) -> None:
    def elsewhere(data: dict[str, Any]) -> None:
        data["config"]["env"] = "Pendulum-v1"
        data["path"] = str(tmp_path / "nowhere")

    explorer = RunLoader(with_record(run, tmp_path / "run", elsewhere))
    with serving(explorer) as url, httpx.Client(base_url=url, timeout=120) as client:
        loaded(explorer)
        status = client.get("/api/run").json()
        assert "its world is 'Pendulum-v1'" in status["no_play"]
        assert "nowhere; say with --data where it lies now" in status["map"]["what"]
        for path in ("/api/told", "/api/play"):
            refused = client.post(path, json=GOOD)
            assert refused.status_code == 409
            assert "Pendulum-v1" in refused.json()["reason"]
        assert client.get("/api/map").status_code == 409


def test_a_run_without_a_checkpoint_is_waited_for(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gcb.explorer.loader.RETRY_SECONDS", 0.05)
    folder = with_record(run, tmp_path / "run", lambda data: data.update(path=None))
    (folder / POINTER).rename(tmp_path / POINTER)
    explorer = RunLoader(folder)
    with serving(explorer) as url, httpx.Client(base_url=url, timeout=120) as client:
        wait_for(lambda: explorer.state == "waiting")
        assert "no checkpoint yet" in client.get("/api/run").json()["reason"]
        refused = client.post("/api/scene", json={"seed": 1})
        assert refused.status_code == 503
        assert "no checkpoint yet" in refused.json()["reason"]
        (folder / RECORD).rename(tmp_path / RECORD)
        wait_for(lambda: explorer.state == "failed")
        assert "is not a run" in explorer.reason
        (tmp_path / RECORD).rename(folder / RECORD)
        (tmp_path / POINTER).rename(folder / POINTER)
        wait_for(lambda: explorer.state == "ready")
        loaded(explorer)
        assert client.get("/api/run").json()["map"]["what"].endswith("say it with --data")
        assert client.post("/api/scene", json={"seed": 4}).status_code == 200


def test_a_run_that_vanishes_is_noticed_and_still_acts(run: Path, tmp_path: Path) -> None:
    folder = with_record(run, tmp_path / "run", lambda data: data.update(path=None))
    explorer = RunLoader(folder)
    with serving(explorer) as url, httpx.Client(base_url=url, timeout=120) as client:
        loaded(explorer)
        shutil.rmtree(folder)
        assert client.get("/api/run").json()["gone"]
        assert client.post("/api/told", json=GOOD).status_code == 200
