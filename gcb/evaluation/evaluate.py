"""Measure an agent's success rate, conditioned on a goal image or on an analogy (an example pair of another scene).

Every episode runs to the environment's time limit with actions sampled from the policy, and does not stop at success.
One set of episodes therefore gives the rates of all criteria: success "at any step", as the authors' release counts it,
"at the end", which also requires that the agent leaves the goal as it is once it is reached, and "when declared done":
at the step at which the agent itself declares the task done, or at the end if it never does.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any

import torch

import gcb
from gcb.agent.agent import Agent, load
from gcb.envs.spec import DEFAULT_MODES, MODES, EnvSpec, recorded_env_spec
from gcb.errors import GCBError
from gcb.evaluation.rollouts import Outcome, RolloutWorker, video_frames
from gcb.runs.run_dir import EVAL, VIDEOS, Run, read_results
from gcb.utils.files import explain_os_errors, file_lock, write_json
from gcb.utils.media import write_video
from gcb.utils.progress import Progress
from gcb.utils.statistics import CRITERIA, Criterion, Rate
from gcb.utils.workers import run_in_order

FPS = 12
VALIDATION_SEED = 1000
"""Seed of the episodes during training: choices are made on these, results are reported on others (seed 0)."""


@dataclass(frozen=True)
class EvalResult:
    """The result of evaluating an agent in one mode."""

    mode: str
    env_spec: EnvSpec
    seed: int
    step: int | None
    """Training steps of the agent."""
    outcomes: Sequence[Outcome] = field(repr=False)
    eval_temperature: float = 0.0
    """Factor on the policy's standard deviation that actions were sampled with."""

    def rate(self, task: str | None = None, *, criterion: Criterion = "any_step") -> Rate:
        """Return the success rate with its Wilson interval, of one task or all."""
        successes = [outcome.success(criterion) for outcome in self.outcomes if task in (None, outcome.task)]
        return Rate(sum(successes), len(successes))

    @property
    def tasks(self) -> list[str]:
        return sorted({outcome.task for outcome in self.outcomes})

    @property
    def env_seconds(self) -> float:
        """Time spent in the environments."""
        return sum(outcome.env_seconds for outcome in self.outcomes)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of eval.json: the rates, and every episode so that runs can be compared pairwise."""
        return {
            "episodes": len(self.outcomes),
            "seed": self.seed,
            "step": self.step,
            "eval_temperature": self.eval_temperature,
            "env": self.env_spec.record(),
            "gcb": gcb.__version__,
            "all": self._rates(None),
            "tasks": {task: self._rates(task) for task in self.tasks},
            "outcomes": [
                [outcome.task, outcome.reached_at, outcome.at_end, outcome.declared_at, outcome.declared]
                for outcome in self.outcomes
            ],
        }

    def _rates(self, task: str | None) -> dict[str, Any]:
        rates = {criterion: self.rate(task, criterion=criterion) for criterion in CRITERIA}
        return {
            name: {"rate": rate.value, "interval": list(rate.interval), "successes": rate.successes, "of": rate.trials}
            for name, rate in rates.items()
        }


def evaluate(
    agent: Agent,
    env_spec: EnvSpec | None = None,
    mode: str = "goal",
    *,
    episodes: int = 100,
    seed: int = 0,
    batch: int = 20,
    workers: int = 1,
    eval_temperature: float | None = None,
    video: str | Path | None = None,
    video_episodes: int = 6,
    quiet: bool = False,
) -> EvalResult:
    """Roll out `episodes` episodes with seeds that no dataset uses, in `batch` environments at a time.

    `env_spec` defaults to the environment of the agent's dataset. `mode` is "goal" (a goal image), or "strict", "loose"
    or "free" (an analogy: an example pair only). Actions are sampled with `eval_temperature` times the policy's
    standard deviation, times one minus the probability that the task is already done; 0 takes the mean. `video` is a
    file for a grid of the first `video_episodes` episodes. The result depends on neither `batch` nor `workers`, except
    for rounding.
    """
    env_spec = env_spec or env_spec_of(agent)
    eval_temperature = env_spec.adapter.eval_temperature if eval_temperature is None else eval_temperature
    _check(agent, env_spec, mode, episodes, batch, workers)
    if not 0 <= eval_temperature < inf:
        raise GCBError(f"eval_temperature is {eval_temperature}; it must be a finite number of at least 0.")
    if video is not None and not _sees_images(agent):
        raise GCBError(f"observations are vectors {agent.shapes.observation}; a video needs images.")
    batch = min(batch, episodes)
    recorded = min(video_episodes, episodes) if video is not None else 0
    chunks = -(-episodes // batch)
    settings = {"episodes": episodes, "batch": batch, "seed": seed}
    settings |= {"eval_temperature": eval_temperature, "recorded": recorded}
    if workers == 1 or agent.run is None:
        results = run_in_order(lambda settings: RolloutWorker(agent, env_spec, mode, **settings), settings, 0, 1)
    else:
        env_spec.make(mode).close()  # fail early, and not in a worker process
        make = partial(_load_worker, agent.run.path, str(agent.device), env_spec, mode)
        results = run_in_order(make, settings, 0, min(workers, chunks))
    outcomes: list[Outcome] = []
    with closing(results), Progress(f"evaluating by {mode}", episodes, "episodes", quiet=quiet) as bar:
        for chunk in islice(results, chunks):
            outcomes += chunk
            bar.advance(len(chunk), success=sum(outcome.reached_at is not None for outcome in outcomes) / len(outcomes))
    if video is not None:
        write_video(video, video_frames(outcomes[:recorded], mode), FPS)
    return EvalResult(mode, env_spec, seed, agent.step, outcomes, eval_temperature)


def _load_worker(run: Path, device: str, env_spec: EnvSpec, mode: str, settings: Mapping[str, Any]) -> RolloutWorker:
    """Build a rollout worker in a process of its own."""
    torch.set_num_threads(1)
    return RolloutWorker(load(run, device), env_spec, mode, **settings)


def evaluate_run(
    run: str | os.PathLike[str],
    modes: Sequence[str] | None = None,
    *,
    env_spec: EnvSpec | None = None,
    device: str = "cpu",
    videos: bool = True,
    options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> dict[str, EvalResult]:
    """Evaluate a run in each mode it supports, or in the given ones; write RUN/eval.json and RUN/videos.

    `env_spec` defaults to the environment of the run's dataset; `options` override its options, `settings` are passed
    to `evaluate`.
    """
    agent = load(run, device)
    assert agent.run is not None, "load sets the agent's run"
    path = agent.run.path
    env_spec = env_spec or env_spec_of(agent)
    env_spec = replace(env_spec, options={**env_spec.options, **(options or {})})
    modes = modes_of(agent, env_spec) if modes is None else modes
    for mode in modes:
        _check(agent, env_spec, mode, 1, 1, 1)
    read_results(path)  # fail early if eval.json is damaged
    results = {}
    for mode in modes:
        video = path / VIDEOS / f"{mode}.mp4" if videos and _sees_images(agent) else None
        results[mode] = evaluate(agent, env_spec, mode, video=video, **settings)
        write_result(agent.run, results[mode])
    return results


def validate(agent: Agent, modes: Sequence[str], *, episodes: int, quiet: bool = True) -> dict[str, float]:
    """Return success rates on validation episodes as metrics, such as {"eval_goal": 0.5}: for curves over training."""
    results = [evaluate(agent, mode=mode, episodes=episodes, seed=VALIDATION_SEED, quiet=quiet) for mode in modes]
    return {f"eval_{result.mode}": result.rate().value for result in results}


def write_result(run: Run, result: EvalResult) -> None:
    """Write a result to the run's eval.json, in the place of an older one of the same mode."""
    # Another process may be evaluating the run in another mode.
    with explain_os_errors(run.path / EVAL), file_lock(run.path / EVAL):
        write_json(run.path / EVAL, {**read_results(run.path), result.mode: result.to_dict()})


def env_spec_of(agent: Agent) -> EnvSpec:
    """Return the environment that the dataset of an agent's run was collected in."""
    return recorded_env_spec(agent.run.dataset.config if agent.run else {})


def modes_of(agent: Agent, env_spec: EnvSpec) -> tuple[str, ...]:
    """Return those of the default modes that the method and the environment support."""
    return tuple(
        mode
        for mode in DEFAULT_MODES
        if mode in env_spec.adapter.modes and (mode == "goal" or agent.method.supports_analogy)
    )


def _sees_images(agent: Agent) -> bool:
    return len(agent.shapes.observation) == 3


def _check(agent: Agent, env_spec: EnvSpec, mode: str, episodes: int, batch: int, workers: int) -> None:
    if mode not in MODES:
        raise GCBError(f"mode is {mode!r}; accepted: {', '.join(MODES)}.")
    if mode != "goal" and not agent.method.supports_analogy:
        raise GCBError(f"mode is {mode!r}; {agent.method.name} does not support analogies, only goal.")
    if mode not in env_spec.adapter.modes:
        raise GCBError(f"mode is {mode!r}; {env_spec.env} supports {', '.join(env_spec.adapter.modes)}.")
    for name, value in (("episodes", episodes), ("batch", batch), ("workers", workers)):
        if value < 1:
            raise GCBError(f"{name} is {value}; it must be at least 1.")
    if workers > 1 and agent.run is None:
        raise GCBError(f"workers is {workers}; more than 1 needs an agent that was loaded from a run directory.")
