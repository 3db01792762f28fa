"""Many requests from several visitors at once: all are answered, and memory and threads stay bounded."""

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
"""Status requests in a round."""


def visit(url: str, number: int) -> list[int]:
    """Act as one visitor: request scenes, examples and images repeatedly, then an episode; returns the status codes."""
    scene = {"seed": number % 3}
    request = {"scene": scene, "task": {"by": "example", "seed": number}}
    codes = []
    with httpx.Client(base_url=url, timeout=300) as client:
        for round_ in range(ROUNDS):
            codes += [client.get("/api/status").status_code for _ in range(LOOKS)]
            codes.append(client.get(f"/api/tasks/{round_}/state.png").status_code)
            codes.append(client.post("/api/scene", json=scene).status_code)
            codes.append(client.post("/api/task", json=request).status_code)
            codes.append(client.post("/api/scene", content=b"{" * 5000).status_code)
        with client.stream("POST", "/api/episode", json=request) as stream:
            events = [json.loads(line) for line in stream.iter_lines()]
    assert events[-1]["type"] == "end", events[-1]
    return codes


def megabytes() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def test_hundreds_of_requests_from_several_visitors_are_all_answered(url: str, loader: RunLoader) -> None:
    visit(url, 0)
    before, threads = megabytes(), threading.active_count()
    with ThreadPoolExecutor(CLIENTS) as executor:
        visits = list(executor.map(lambda number: visit(url, number), range(CLIENTS)))
    codes = [code for visited in visits for code in visited]
    assert len(codes) == CLIENTS * ROUNDS * (LOOKS + 4) > 500
    assert set(codes) == {200, 422}
    assert codes.count(422) == CLIENTS * ROUNDS
    pool = loader.session.pool()
    assert len(pool._idle) <= POOL_SIZE
    assert not pool.full
    # Only the simulators grow, once.
    assert megabytes() - before < POOL_SIZE * 90 + 60
    assert threading.active_count() - threads < 60


def test_simulators_are_freed_when_visitors_leave_early(url: str, loader: RunLoader) -> None:
    request = {"scene": {"seed": 0}, "task": {"by": "goal"}}
    with httpx.Client(base_url=url, timeout=300) as client:
        for _ in range(12):
            with client.stream("POST", "/api/episode", json=request) as stream:
                next(stream.iter_lines())
        with client.stream("POST", "/api/episode", json=request) as stream:
            assert json.loads(list(stream.iter_lines())[-1])["type"] == "end"
    assert len(loader.session.pool()._idle) <= POOL_SIZE
