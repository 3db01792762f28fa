"""Many requests from several visitors at once: all are answered, and what the server holds stays bounded."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from gcb.explorer.loader import RunLoader
from gcb.explorer.simulators import POOL_SIZE

CLIENTS = 8
ROUNDS = 8
LOOKS = 4
"""Requests of each kind but episodes, in a round."""


def visit(url: str, number: int) -> list[int]:
    """One visitor: looks at scenes, examples and pictures again and again, and at last at an episode."""
    scene = {"seed": number % 3}
    asked = {"scene": scene, "told": {"by": "example", "seed": number}}
    codes = []
    with httpx.Client(base_url=url, timeout=300) as client:
        for turn in range(ROUNDS):
            codes += [client.get("/api/run").status_code for _ in range(LOOKS)]
            codes.append(client.get(f"/api/task/{turn}/state.png").status_code)
            codes.append(client.post("/api/scene", json=scene).status_code)
            codes.append(client.post("/api/told", json=asked).status_code)
            codes.append(client.post("/api/scene", content=b"{" * 5000).status_code)
        with client.stream("POST", "/api/play", json=asked) as stream:
            events = [json.loads(line) for line in stream.iter_lines()]
    assert events[-1]["kind"] == "end", events[-1]
    return codes


def megabytes() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def test_hundreds_of_requests_from_several_visitors_are_all_answered(url: str, explorer: RunLoader) -> None:
    visit(url, 0)
    before, threads = megabytes(), threading.active_count()
    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = list(pool.map(lambda number: visit(url, number), range(CLIENTS)))
    codes = [code for answer in answers for code in answer]
    assert len(codes) == CLIENTS * ROUNDS * (LOOKS + 4) > 500
    assert set(codes) == {200, 422}
    assert codes.count(422) == CLIENTS * ROUNDS
    theatre = explorer.show.stages()
    assert len(theatre._idle) <= POOL_SIZE
    assert not theatre.crowded
    # Stages are the only thing that grows, once: two simulators each.
    assert megabytes() - before < POOL_SIZE * 90 + 60
    assert threading.active_count() - threads < 60


def test_visitors_who_leave_early_leave_nothing_behind(url: str, explorer: RunLoader) -> None:
    asked = {"scene": {"seed": 0}, "told": {"by": "goal"}}
    with httpx.Client(base_url=url, timeout=300) as client:
        for _ in range(12):
            with client.stream("POST", "/api/play", json=asked) as stream:
                next(stream.iter_lines())
        with client.stream("POST", "/api/play", json=asked) as stream:
            assert json.loads(list(stream.iter_lines())[-1])["kind"] == "end"
    assert len(explorer.show.stages()._idle) <= POOL_SIZE
