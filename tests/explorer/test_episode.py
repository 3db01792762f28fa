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
from gcb.explorer.simulators import QUEUE_LENGTH, Busy, SimulatorPair, SimulatorPool


@pytest.fixture(scope="module")
def simulators(renderer: SceneRenderer) -> SimulatorPair:
    return SimulatorPair(renderer)


def test_an_agent_that_acts_as_the_expert_succeeds_at_the_same_step(
    renderer: SceneRenderer, simulators: SimulatorPair
) -> None:
    scene = renderer.scene(SceneChoice(seed=4))
    agent = ExpertAgent(simulators)
    events = list(run_episode(cast(Agent, agent), simulators, scene, goal=scene.after))
    first, steps, last = events[0], events[1:-1], events[-1]
    assert agent.conditioning == {"goal": scene.after, "example": None}
    assert [event["type"] for event in events] == ["start", *["step"] * 75, "end"]
    assert [event["step"] for event in steps] == list(range(1, 76))
    assert last["success_step"] == last["expert_success_step"] == 1 + [event["success"] for event in steps].index(True)
    assert last["success_at_end"]
    assert not first["success"]
    # Both show the same images, until the expert has finished.
    images = [(event["agent_image"], event["expert_image"]) for event in steps]
    shown = last["expert_success_step"] + EXTRA_STEPS
    assert all(agent == expert for agent, expert in images[:shown])
    assert all(expert is None for _, expert in images[shown:])
    assert [event["done"] for event in steps] == [float(event["success"]) for event in steps]
    assert last["declared_step"] == last["success_step"] + 1  # the mean of three estimates is 2/3
    assert last["declared_success"]


def test_an_idle_agent_fails(renderer: SceneRenderer, simulators: SimulatorPair) -> None:
    scene = renderer.scene(SceneChoice(seed=4))
    *_, step, last = run_episode(cast(Agent, ExpertAgent(simulators, idle=True)), simulators, scene, goal=scene.after)
    assert step["done"] is None
    assert last["declared_step"] is None
    assert last["success_step"] is None
    assert not last["success_at_end"]
    assert last["expert_success_step"] > 0


def test_two_concurrent_episodes_do_not_affect_each_other(
    renderer: SceneRenderer, simulators: SimulatorPair, run: Path
) -> None:
    agent, other = load(run), SimulatorPair(renderer)
    scenes = [renderer.scene(SceneChoice(seed=seed)) for seed in (4, 5)]
    alone = [list(islice(run_episode(agent, simulators, scene, goal=scene.after), 12)) for scene in scenes]
    pairs = zip((simulators, other), scenes, strict=True)
    concurrent = [run_episode(agent, pair, scene, goal=scene.after) for pair, scene in pairs]
    together = list(islice(zip(*concurrent, strict=True), 12))
    assert [list(events) for events in zip(*together, strict=True)] == alone


class FakePair:
    """A pair without simulators."""

    def __init__(self, renderer: object) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> SimulatorPool:
    monkeypatch.setattr("gcb.explorer.simulators.SimulatorPair", FakePair)
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
