"""Measure an agent's success rate, conditioned on a goal image or on an analogy (an example pair of another scene).

Every episode runs to the environment's time limit with actions sampled from the policy, and does not stop at success.
One set of episodes therefore gives the rates of all criteria: success "at any step", as the authors' release counts it,
"at the end", which also requires that the agent leaves the goal as it is once it is reached, and "when declared done":
at the step at which the agent itself declares the task done, or at the end if it never does.
"""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch

import gcb
from gcb.agent.agent import Agent, load
from gcb.envs.spec import DEFAULT_MODES, MODES, EnvSpec, recorded_env_spec
from gcb.errors import GCBError
from gcb.evaluation.rollouts import Outcome, RolloutWorker, video_frames
from gcb.runs.evaluations import check_writable, find_evaluation, write_evaluation
from gcb.runs.find import check_own_run
from gcb.runs.run_dir import EVAL, VIDEOS, Run
from gcb.utils.dataclass_io import EPISODES, SEED, check_interval
from gcb.utils.media import write_video
from gcb.utils.progress import Progress
from gcb.utils.statistics import CRITERIA, Criterion, Rate
from gcb.utils.workers import check_workers, run_in_order

FPS = 12
VIDEO_EPISODES = 6
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
    reused: int = 0
    """Episodes that were played by an earlier evaluation."""

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
        """Return the entry of eval.json: the rates, and every episode so that runs can be compared pairwise."""
        return {
            "episodes": len(self.outcomes),
            "seed": self.seed,
            "step": self.step,
            "eval_temperature": self.eval_temperature,
            "env": self.env_spec.record(),
            "gcb": gcb.__version__,
            "all": self._rates(None),
            "tasks": {task: self._rates(task) for task in self.tasks},
            "outcomes": [outcome.to_list() for outcome in self.outcomes],
        }

    def _rates(self, task: str | None) -> dict[str, Any]:
        return {criterion: self.rate(task, criterion=criterion).to_dict() for criterion in CRITERIA}


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
    video_episodes: int = VIDEO_EPISODES,
    quiet: bool = False,
    earlier: Sequence[Outcome] = (),
    on_chunk: Callable[[EvalResult], None] | None = None,
) -> EvalResult:
    """Roll out `episodes` episodes with seeds that no dataset uses, in `batch` environments at a time.

    `env_spec` defaults to the environment of the agent's dataset. `mode` is "goal" (a goal image), or "strict", "loose"
    or "free" (an analogy: an example pair only). Actions are sampled with `eval_temperature` times the policy's
    standard deviation, times one minus the probability that the task is already done; 0 takes the mean. `video` is a
    file for a grid of the first `video_episodes` episodes. `earlier` are outcomes of the first episodes, which are not
    played again; `on_chunk` is called with the result so far, after each batch. The result depends on neither `batch`
    nor `workers`, except for rounding.
    """
    env_spec = env_spec or env_spec_of(agent)
    eval_temperature = _temperature(env_spec, eval_temperature)
    _check(agent, env_spec, mode, episodes, batch, workers)
    check_interval("seed", seed, SEED)
    if video is not None and not _sees_images(agent):
        raise GCBError(f"observations are vectors {agent.shapes.observation}; a video needs images.")
    if video is not None and earlier:
        raise GCBError("a video shows the first episodes, which are not played again if earlier ones are given.")
    outcomes = list(earlier)
    result = EvalResult(mode, env_spec, seed, agent.step, outcomes, eval_temperature, len(outcomes))
    recorded = min(video_episodes, episodes) if video is not None else 0
    settings = {"episodes": episodes, "first": len(outcomes), "batch": min(batch, max(episodes - len(outcomes), 1))}
    settings |= {"seed": seed, "eval_temperature": eval_temperature, "recorded": recorded}
    if len(outcomes) < episodes:
        chunks = _play(agent, env_spec, mode, workers, settings)
        bar = Progress(f"evaluating by {mode}", episodes, "episodes", start=len(outcomes), quiet=quiet)
        with closing(chunks), bar:
            for chunk in chunks:
                outcomes += chunk
                bar.advance(len(chunk), success=result.rate().value)
                if on_chunk is not None:
                    on_chunk(result)
    if video is not None:
        write_video(video, video_frames(outcomes[:recorded], mode), FPS)
    return result


def _play(
    agent: Agent, env_spec: EnvSpec, mode: str, workers: int, settings: Mapping[str, Any]
) -> Generator[list[Outcome], None, None]:
    """Yield the outcomes of the episodes from `first` on, in chunks of `batch`."""
    chunks = -(-(settings["episodes"] - settings["first"]) // settings["batch"])
    if workers == 1 or agent.run is None:
        results = run_in_order(lambda settings: RolloutWorker(agent, env_spec, mode, **settings), settings, 0, 1)
    else:
        env_spec.make(mode).close()  # fail early, and not in a worker process
        trusted = replace(env_spec, from_file=False)  # it was made above: the worker may import its module too
        make = partial(_load_worker, agent.run.path, str(agent.device), trusted, mode)
        results = run_in_order(make, settings, 0, min(workers, chunks))
    with closing(results):
        yield from islice(results, chunks)


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
    episodes: int = 100,
    **settings: Any,
) -> dict[str, EvalResult]:
    """Evaluate a run in each mode it supports, or in the given ones; add the results to RUN/eval.json.

    Episodes that an earlier evaluation of the same agent has played, with the same settings, are not played again: an
    evaluation can be interrupted and resumed, or extended, and a result has at least `episodes` episodes. Videos are
    written to RUN/videos. `env_spec` defaults to the environment of the run's dataset; `options` override its options,
    `settings` are passed to `evaluate`.
    """
    agent = load(run, device)
    assert agent.run is not None, "load sets the agent's run"
    check_own_run(agent.run.path)
    env_spec = env_spec or env_spec_of(agent)
    env_spec = replace(env_spec, options={**env_spec.options, **(options or {})})
    modes = modes_of(agent, env_spec) if modes is None else modes
    if not modes:
        raise GCBError(f"no mode is given; accepted: one or more of {', '.join(env_spec.adapter.modes)}.")
    for mode in modes:
        _check(agent, env_spec, mode, episodes, 1, 1)
    env_spec.check_trusted()
    check_writable(agent.run)
    results = {}
    for mode in modes:
        earlier = _earlier_outcomes(agent, env_spec, mode, settings)
        video = agent.run.path / VIDEOS / f"{mode}.mp4" if videos and _sees_images(agent) else None
        play = partial(evaluate, agent, env_spec, mode, **settings)
        results[mode] = play(
            episodes=episodes,
            earlier=earlier,
            on_chunk=partial(write_result, agent.run),
            video=None if earlier else video,
        )
        if earlier and video and not video.exists():  # the evaluation was resumed, or made without videos
            play(episodes=min(settings.get("video_episodes", VIDEO_EPISODES), episodes), video=video)
    return results


def _earlier_outcomes(agent: Agent, env_spec: EnvSpec, mode: str, settings: Mapping[str, Any]) -> Sequence[Outcome]:
    """Return the outcomes in RUN/eval.json of an evaluation that differs in the number of episodes at most."""
    assert agent.run is not None
    temperature = _temperature(env_spec, settings.get("eval_temperature"))
    wanted = EvalResult(mode, env_spec, settings.get("seed", 0), agent.step, (), temperature)
    found = find_evaluation(agent.run.path, {**wanted.to_dict(), "mode": mode})
    try:
        return [Outcome.from_list(values) for values in found["outcomes"]] if found else ()
    except (LookupError, TypeError, ValueError) as error:
        raise GCBError(f"{agent.run.path / EVAL}: {mode} is damaged ({error!r})") from error


def validate(agent: Agent, modes: Sequence[str], *, episodes: int, quiet: bool = True) -> dict[str, float]:
    """Return success rates on validation episodes as metrics, such as {"eval_goal": 0.5}: for curves over training."""
    results = [evaluate(agent, mode=mode, episodes=episodes, seed=VALIDATION_SEED, quiet=quiet) for mode in modes]
    return {f"eval_{result.mode}": result.rate().value for result in results}


@dataclass(frozen=True)
class Validation:
    """Measures the agent every so many steps of training, as `on_checkpoint` of `gcb.training.trainer.train`."""

    every: int
    """A multiple of the configuration's `checkpoint_every`; 0 for never."""
    episodes: int
    """Episodes per mode; the modes are those of `modes_of`."""
    quiet: bool = True

    def check(self, checkpoint_every: int) -> None:
        """Raise `GCBError` unless evaluations are at checkpoints."""
        if self.every % checkpoint_every:
            raise GCBError(f"eval_every is {self.every}; accepted: a multiple of {checkpoint_every}, or 0.")

    def __call__(self, agent: Agent, step: int) -> dict[str, float]:
        if not self.every or step % self.every:
            return {}
        return validate(agent, modes_of(agent, env_spec_of(agent)), episodes=self.episodes, quiet=self.quiet)


def write_result(run: Run, result: EvalResult) -> None:
    """Add a result to the run's eval.json."""
    write_evaluation(run, {**result.to_dict(), "mode": result.mode})


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


def _temperature(env_spec: EnvSpec, given: float | None) -> float:
    """Return the temperature given, or the environment's default."""
    temperature = env_spec.adapter.eval_temperature if given is None else given
    check_interval("eval_temperature", temperature, "[0, inf)")
    return temperature


def _sees_images(agent: Agent) -> bool:
    return len(agent.shapes.observation) == 3


def _check(agent: Agent, env_spec: EnvSpec, mode: str, episodes: int, batch: int, workers: int) -> None:
    if mode not in MODES:
        raise GCBError(f"mode is {mode!r}; accepted: {', '.join(MODES)}.")
    if mode != "goal" and not agent.method.supports_analogy:
        raise GCBError(f"mode is {mode!r}; {agent.method.name} does not support analogies, only goal.")
    if mode not in env_spec.adapter.modes:
        raise GCBError(f"mode is {mode!r}; {env_spec.env} supports {', '.join(env_spec.adapter.modes)}.")
    check_interval("episodes", episodes, EPISODES)
    check_interval("batch", batch, "[1, 1000]")
    check_workers(workers)
    if workers > 1 and agent.run is None:
        raise GCBError(f"workers is {workers}; more than 1 needs an agent that was loaded from a run directory.")
