"""Episodes are what the agent does, beside the expert; visitors do not meet each other on stage."""

import asyncio
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pytest
from helpers.explorer_server import ActsAsTheExpert

from gcb.agent.agent import Agent, load
from gcb.errors import GCBError
from gcb.explorer.choices import SceneChoice
from gcb.explorer.episode import LINGER, play
from gcb.explorer.errors import Busy
from gcb.explorer.scene_renderer import SceneRenderer
from gcb.explorer.simulators import QUEUE, SimulatorPair, SimulatorPool


@pytest.fixture(scope="module")
def stage(studio: SceneRenderer) -> SimulatorPair:
    return SimulatorPool(studio)._build()


def test_an_agent_that_acts_as_the_expert_succeeds_with_it(studio: SceneRenderer, stage: SimulatorPair) -> None:
    view = studio.scene(SceneChoice(seed=4))
    agent = ActsAsTheExpert(stage)
    events = list(play(cast(Agent, agent), stage, view, goal=view.after))
    first, steps, last = events[0], events[1:-1], events[-1]
    assert agent.told == {"goal": view.after, "example": None}
    assert [event["kind"] for event in events] == ["start", *["step"] * 75, "end"]
    assert [event["step"] for event in steps] == list(range(1, 76))
    assert last["reached_at"] == last["expert_reached_at"] == 1 + [event["success"] for event in steps].index(True)
    assert last["at_end"]
    assert not first["done"]
    # Both are shown the same things, until the expert is done and its picture stays.
    pictures = [(event["agent"], event["expert"]) for event in steps]
    shown = last["expert_reached_at"] + LINGER
    assert all(agent == expert for agent, expert in pictures[:shown])
    assert all(expert is None for _, expert in pictures[shown:])
    assert {event["value"] for event in steps} == {None}


def test_an_idle_agent_fails(studio: SceneRenderer, stage: SimulatorPair) -> None:
    view = studio.scene(SceneChoice(seed=4))
    *_, last = play(cast(Agent, ActsAsTheExpert(stage, idle=True)), stage, view, goal=view.after)
    assert last["reached_at"] is None
    assert not last["at_end"]
    assert last["expert_reached_at"] > 0


def test_two_episodes_at_once_are_as_each_alone(studio: SceneRenderer, stage: SimulatorPair, run: Path) -> None:
    agent, other = load(run), SimulatorPool(studio)._build()
    views = [studio.scene(SceneChoice(seed=seed)) for seed in (4, 5)]
    alone = [list(islice(play(agent, stage, view, goal=view.after), 12)) for view in views]
    pair = [play(agent, on, view, goal=view.after) for on, view in zip((stage, other), views, strict=True)]
    together = list(islice(zip(*pair, strict=True), 12))
    assert [list(events) for events in zip(*together, strict=True)] == alone


class Props:
    """Stages without simulators."""

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def theatre(monkeypatch: pytest.MonkeyPatch) -> SimulatorPool:
    monkeypatch.setattr(SimulatorPool, "_build", lambda self: Props())
    return SimulatorPool(cast(SceneRenderer, None), stages=1)


def test_a_stage_is_free_again_when_its_visitor_leaves(theatre: SimulatorPool) -> None:
    async def leave() -> tuple[Any, Any]:
        async def watch() -> None:
            async with theatre.stage() as stage:
                seen.append(stage)
                await asyncio.sleep(60)

        seen: list[Any] = []
        visitor = asyncio.create_task(watch())
        while not seen:
            await asyncio.sleep(0)
        assert theatre.crowded
        visitor.cancel()
        async with theatre.stage() as stage:
            return seen[0], stage

    first, second = asyncio.run(leave())
    assert first is second
    assert not first.closed
    assert not theatre.crowded


def test_a_stage_on_which_something_broke_is_not_used_again(theatre: SimulatorPool) -> None:
    async def breaks() -> tuple[Any, Any]:
        with pytest.raises(GCBError, match="not connected"):
            async with theatre.stage() as stage:
                raise GCBError("not connected")
        async with theatre.stage() as other:
            return stage, other

    first, second = asyncio.run(breaks())
    assert first.closed
    assert first is not second


def test_a_long_line_turns_visitors_away(theatre: SimulatorPool) -> None:
    theatre.check()
    theatre._waiting = QUEUE
    with pytest.raises(Busy, match="too many visitors"):
        theatre.check()
