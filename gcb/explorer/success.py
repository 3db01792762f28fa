"""Success over many scenes: the agents' outcome in each of them, without images for people, and the rates so far."""

from collections.abc import Iterator, Sequence
from operator import ne
from typing import Any

from gcb.agent.agent import Agent
from gcb.explorer.choices import ByExample, SuccessRequest
from gcb.explorer.episode import AgentRollout, Event
from gcb.explorer.scene_renderer import SceneRenderer
from gcb.explorer.simulators import Simulators
from gcb.utils.statistics import Rate, paired_difference

MIN_DIFFERENT = 5
"""Scenes in which two agents must differ before the interval of their difference means anything."""


def count_successes(
    agents: Sequence[Agent], simulators: Simulators, renderer: SceneRenderer, request: SuccessRequest
) -> Iterator[Event]:
    """Yield a "scene" event for each scene: which agents succeeded at any step, and their rates with 95 % intervals."""
    outcomes: list[list[bool]] = [[] for _ in agents]
    for number in range(request.scenes):
        choice = request.scene(number)
        played = renderer.play_scene(choice)
        task: dict[str, Any] = {"goal": played.after}
        if request.by == "example":
            example = renderer.play_example(played.scene, ByExample(seed=choice.seed, video=choice.video))
            task = {"example": (example.before, example.after)}
        for agent, env, successes in zip(agents, simulators.agents, outcomes, strict=True):
            rollout = AgentRollout(agent, env, played.scene, **task)
            while not rollout.over:
                rollout.step()
            successes.append(rollout.success_step is not None)
        yield {
            "type": "scene",
            "seed": choice.seed,
            "label": played.label,
            "success": [successes[-1] for successes in outcomes],
            "rates": [Rate(sum(successes), len(successes)).to_dict() for successes in outcomes],
            "difference": _difference(outcomes),
        }
    yield {"type": "end"}


def _difference(outcomes: Sequence[Sequence[bool]]) -> dict[str, Any] | None:
    """Return how much more often the first of two agents succeeds than the second, in the same scenes."""
    if len(outcomes) != 2 or sum(map(ne, *outcomes)) < MIN_DIFFERENT:
        return None
    estimate = paired_difference(*outcomes)
    return {"value": estimate.value, "interval": estimate.interval}
