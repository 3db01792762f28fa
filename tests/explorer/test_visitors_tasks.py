"""A visitor's own pictures, films, success over many scenes, and two agents side by side."""

import base64
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import av
import httpx
import numpy as np
import pytest
from helpers.explorer_server import copy_run, serving, wait_for, wait_until_loaded
from PIL import Image

from gcb.explorer.loader import RunLoader
from gcb.explorer.success import _difference

SCENE = {"seed": 4}


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=120) as client:
        yield client


@pytest.fixture(scope="module")
def side_by_side(trained: Callable[[str], Path]) -> Iterator[tuple[httpx.Client, RunLoader]]:
    loader = RunLoader([trained("gcb"), trained("rad")])
    with serving(loader) as url, httpx.Client(base_url=url, timeout=120) as client:
        wait_until_loaded(loader)
        yield client, loader


def events_of(client: httpx.Client, path: str, request: Any) -> list[dict[str, Any]]:
    with client.stream("POST", path, json=request) as stream:
        return [json.loads(line) for line in stream.iter_lines()]


def png(*size: int, mode: str = "RGB") -> str:
    pixels = np.random.default_rng(0).integers(0, 256, (*size, len(mode)), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def by_pictures(before: str, after: str, **task: Any) -> dict[str, Any]:
    return {"scene": SCENE, "task": {"by": "pictures", "before": before, "after": after, **task}}


def test_pictures_are_the_example_and_the_named_task_is_judged(client: httpx.Client) -> None:
    request = by_pictures(png(64, 64), png(64, 64, mode="RGBA"), name="button")
    task = client.post("/api/task", json=request).json()
    assert task["label"] == "your pictures"
    assert task["scene"]["task"] == "button"
    shown, given = task["before_image"].partition(",")[2], request["task"]["before"]
    images = [np.asarray(Image.open(io.BytesIO(base64.b64decode(text)))) for text in (shown, given)]
    assert np.array_equal(images[0], images[1])
    assert len(client.post("/api/analysis", json=request).json()["neighbours"]) == 6
    assert events_of(client, "/api/episode", request)[-1]["type"] == "end"


@pytest.mark.parametrize(
    ("before", "message"),
    [
        (png(32, 32), "before is a picture of 32×32 pixels; accepted: a PNG of 64×64 pixels."),
        ("not base64!", "before is not a picture that can be read"),
        (base64.b64encode(b"GIF89a" + bytes(50)).decode(), "before is not a picture that can be read"),
        (png(64, 64)[:400], "before is not a picture that can be read"),
        ("A" * 200_001, "at most 200000 characters"),
    ],
)
def test_other_pictures_are_refused(client: httpx.Client, before: str, message: str) -> None:
    refused = client.post("/api/task", json=by_pictures(before, png(64, 64)))
    assert refused.status_code == 422
    assert message in refused.json()["detail"]


def test_a_film_shows_every_step_of_the_episode(client: httpx.Client, loader: RunLoader) -> None:
    request = {"scene": SCENE, "task": {"by": "goal"}}
    events_of(client, "/api/episode", request)
    recorded = len(loader.session._episodes)
    answer = client.post("/api/film", json=request)
    assert answer.headers["content-type"] == "video/mp4"
    with av.open(io.BytesIO(answer.content), "r") as film:
        frames = [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]
    assert len(frames) == 76 + 24  # the start, 75 steps, and a second of the last frame
    before, after, agent, expert = (frames[0][8:56, left : left + 56].astype(int) for left in (4, 70, 136, 202))
    assert np.abs(agent - before).mean() < 4  # the agent starts in the task's first image, up to compression
    assert np.abs(agent - expert).mean() < 4
    assert np.abs(agent - after).mean() > 6
    assert len(loader.session._episodes) == recorded  # not run again


def test_a_film_of_an_episode_not_run_yet_is_made_all_the_same(client: httpx.Client) -> None:
    answer = client.post("/api/film", json={"scene": {"seed": 6}, "task": {"by": "goal"}})
    assert answer.content[4:8] == b"ftyp"


def test_success_over_scenes_counts_what_the_page_would_show(client: httpx.Client) -> None:
    events = events_of(client, "/api/success", {"by": "example", "seed": 4, "scenes": 2})
    assert [event["type"] for event in events] == ["scene", "scene", "end"]
    assert [event["seed"] for event in events[:2]] == [4, 5]
    for event in events[:2]:
        request = {"scene": {"seed": event["seed"]}, "task": {"by": "example", "seed": event["seed"]}}
        outcome = events_of(client, "/api/episode", request)[-1]["agents"][0]
        assert event["success"] == [outcome["success_step"] is not None]
    rate = events[1]["rates"][0]
    assert (rate["successes"], rate["of"]) == (sum(event["success"][0] for event in events[:2]), 2)
    assert rate["interval"][0] <= rate["rate"] <= rate["interval"][1]
    assert events[1]["difference"] is None


def test_two_agents_act_in_the_same_scene(side_by_side: tuple[httpx.Client, RunLoader], client: httpx.Client) -> None:
    both, _ = side_by_side
    assert [run["method"] for run in both.get("/api/status").json()["runs"]] == ["gcb", "rad"]
    request = {"scene": SCENE, "task": {"by": "example", "seed": 5}}
    together, alone = events_of(both, "/api/episode", request), events_of(client, "/api/episode", request)
    assert [event["agents"][0] for event in together] == [event["agents"][0] for event in alone]
    first, second = together[0]["agents"]
    assert first["image"] == second["image"]
    assert together[40]["agents"][0]["image"] != together[40]["agents"][1]["image"]
    counted = events_of(both, "/api/success", {"by": "goal", "seed": 4, "scenes": 2})
    assert len(counted[1]["success"]) == len(counted[1]["rates"]) == 2
    assert counted[1]["difference"] is None


def test_the_difference_of_two_agents_is_paired_and_needs_scenes_in_which_they_differ() -> None:
    first, second = [True] * 8 + [False] * 2, [False] * 6 + [True, True, False, False]
    difference = _difference([first, second])
    assert difference is not None
    assert difference["value"] == pytest.approx(0.6)
    assert difference["interval"][0] == pytest.approx(0.6 - 1.96 * (0.24 * 10 / 9 / 10) ** 0.5, abs=1e-3)
    assert _difference([first, first[:4] + second[4:]]) is None
    assert _difference([first]) is None


def test_agents_of_different_environments_are_not_shown_together(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gcb.explorer.loader.RETRY_SECONDS", 0.05)
    other = copy_run(run, tmp_path / "other", lambda data: data["config"].update(env="gcb/Drawer-v0"))
    said: list[str] = []
    loader = RunLoader([run, other], report=said.append)
    with serving(loader):
        wait_for(lambda: loader.state == "failed")
        wait_for(lambda: not loader._thread.is_alive() or loader.state == "failed")
    assert f"{other} acts in gcb/Drawer-v0 on observations of 64×64×3" in said[0]
    assert len(said) == 1  # although it was tried several times


def test_what_is_missing_is_said_in_the_terminal_too(run: Path, tmp_path: Path) -> None:
    said: list[str] = []
    loader = RunLoader([run], data=tmp_path / "nowhere", report=said.append)
    with serving(loader):
        wait_until_loaded(loader)
        wait_for(lambda: said)
    assert said[0].startswith("no neighbours and no map: ")
    assert str(tmp_path / "nowhere") in said[0]
