"""Episodes of the agent next to the expert, and the pool of simulators they run in."""

import asyncio
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pytest
from helpers.explorer_server import ExpertAgent

from gcb.agent.agent import Agent, load
from gcb.errors import GCBError
from gcb.explorer.choices import SceneChoice
from gcb.explorer.episode import EXTRA_STEPS, run_episode
from gcb.explorer.scene_renderer import SceneRenderer
from gcb.explorer.simulators import QUEUE_LENGTH, Busy, SimulatorPool, Simulators


@pytest.fixture(scope="module")
def simulators(renderer: SceneRenderer) -> Simulators:
    return Simulators(renderer)


def test_an_agent_that_acts_as_the_expert_succeeds_at_the_same_step(
    renderer: SceneRenderer, simulators: Simulators
) -> None:
    scene = renderer.scene(SceneChoice(seed=4))
    agent = ExpertAgent(simulators)
    events = list(run_episode([cast(Agent, agent)], simulators, scene.scene, goal=scene.after))
    first, steps, last = events[0], events[1:-1], events[-1]
    assert agent.conditioning == {"goal": scene.after, "example": None}
    assert [event["type"] for event in events] == ["start", *["step"] * 75, "end"]
    assert [event["step"] for event in steps] == list(range(1, 76))
    (outcome,), frames = last["agents"], [event["agents"][0] for event in steps]
    first_success = 1 + [frame["success"] for frame in frames].index(True)
    assert outcome["success_step"] == last["expert_success_step"] == first_success
    assert outcome["success_at_end"]
    assert not first["agents"][0]["success"]
    # Both show the same images, until the expert has finished.
    images = [(event["agents"][0]["image"], event["expert_image"]) for event in steps]
    shown = last["expert_success_step"] + EXTRA_STEPS
    assert all(agent == expert for agent, expert in images[:shown])
    assert all(expert is None for _, expert in images[shown:])
    assert [frame["done"] for frame in frames] == [float(frame["success"]) for frame in frames]
    assert outcome["declared_step"] == outcome["success_step"] + 3  # four of the last ten estimates are 1
    assert outcome["declared_success"]


def test_an_idle_agent_fails(renderer: SceneRenderer, simulators: Simulators) -> None:
    scene = renderer.scene(SceneChoice(seed=4))
    idle = cast(Agent, ExpertAgent(simulators, idle=True))
    *_, step, last = run_episode([idle], simulators, scene.scene, goal=scene.after)
    assert step["agents"][0]["done"] is None
    assert last["agents"] == [
        {"success_step": None, "success_at_end": False, "declared_step": None, "declared_success": False}
    ]
    assert last["expert_success_step"] > 0


def test_two_concurrent_episodes_do_not_affect_each_other(
    renderer: SceneRenderer, simulators: Simulators, run: Path
) -> None:
    agent, other = load(run), Simulators(renderer)
    scenes = [renderer.scene(SceneChoice(seed=seed)) for seed in (4, 5)]
    alone = [list(islice(run_episode([agent], simulators, scene.scene, goal=scene.after), 12)) for scene in scenes]
    pairs = zip((simulators, other), scenes, strict=True)
    concurrent = [run_episode([agent], pair, scene.scene, goal=scene.after) for pair, scene in pairs]
    together = list(islice(zip(*concurrent, strict=True), 12))
    assert [list(events) for events in zip(*together, strict=True)] == alone


class NoSimulators:
    """Stands for simulators that are not needed."""

    def __init__(self, renderer: object, agents: int) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> SimulatorPool:
    monkeypatch.setattr("gcb.explorer.simulators.Simulators", NoSimulators)
    return SimulatorPool(cast(SceneRenderer, None), size=1)


def test_simulators_are_reused_when_a_visitor_leaves(pool: SimulatorPool) -> None:
    async def leave() -> tuple[Any, Any]:
        async def watch() -> None:
            async with pool.acquire() as pair:
                lent.append(pair)
                await asyncio.sleep(60)

        lent: list[Any] = []
        visitor = asyncio.create_task(watch())
        while not lent:
            await asyncio.sleep(0)
        assert pool.full
        visitor.cancel()
        async with pool.acquire() as pair:
            return lent[0], pair

    first, second = asyncio.run(leave())
    assert first is second
    assert not first.closed
    assert not pool.full


def test_simulators_are_closed_after_an_error(pool: SimulatorPool) -> None:
    async def breaks() -> tuple[Any, Any]:
        with pytest.raises(GCBError, match="not connected"):
            async with pool.acquire() as pair:
                raise GCBError("not connected")
        async with pool.acquire() as other:
            return pair, other

    first, second = asyncio.run(breaks())
    assert first.closed
    assert first is not second


def test_a_full_queue_is_refused(pool: SimulatorPool) -> None:
    pool.check_queue()
    pool._waiting = QUEUE_LENGTH
    with pytest.raises(Busy, match="64 visitors"):
        pool.check_queue()
