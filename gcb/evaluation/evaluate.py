"""Success by goal image, and by analogy: the policy is told nothing but an example pair from another scene.

Every episode is played to the world's time limit with actions drawn from the policy, and the world does not stop at
success. So one set of episodes gives both figures: success "at any step", as the authors' release counts it, and "at
the end", which asks the agent also to leave what it has done as it is.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any

import gcb
from gcb.agent.agent import Agent, load
from gcb.envs.spec import MODES, EnvSpec, recorded_env_spec
from gcb.errors import GCBError
from gcb.evaluation.rollouts import Outcome, Played, Player, video_rows
from gcb.runs.run_dir import EVAL, VIDEOS, Run, read_results
from gcb.utils.files import explain_os_errors, file_lock, write_json
from gcb.utils.media import write_video
from gcb.utils.progress import Progress
from gcb.utils.statistics import Rate
from gcb.utils.workers import run_in_order

FPS = 12


@dataclass(frozen=True)
class Result:
    """How one agent did in one mode."""

    mode: str
    env_spec: EnvSpec
    seed: int
    step: int | None
    """Training steps of the agent."""
    outcomes: Sequence[Outcome] = field(repr=False)
    env_seconds: float = field(repr=False, default=0.0)
    """Time that the world itself took."""
    eval_temperature: float = 0.0
    """Share of the policy's own spread with which its actions were drawn."""

    def rate(self, task: str | None = None, *, at_end: bool = False) -> Rate:
        """The share of successes with its Wilson interval: of one task or of all, at any step or at the end."""
        chosen = [outcome for outcome in self.outcomes if task in (None, outcome.task)]
        return Rate(sum(one.at_end if at_end else one.reached_at is not None for one in chosen), len(chosen))

    @property
    def tasks(self) -> list[str]:
        return sorted(Counter(outcome.task for outcome in self.outcomes))

    def to_dict(self) -> dict[str, Any]:
        """What eval.json keeps: the rates, and every episode, so that runs can be compared pair by pair."""
        tasks = {task: self._rates(task) for task in self.tasks}
        return {
            "episodes": len(self.outcomes),
            "seed": self.seed,
            "step": self.step,
            "eval_temperature": self.eval_temperature,
            "env": self.env_spec.record(),
            "gcb": gcb.__version__,
            "all": self._rates(None),
            "tasks": tasks,
            "outcomes": [[one.task, one.reached_at, one.at_end] for one in self.outcomes],
        }

    def _rates(self, task: str | None) -> dict[str, Any]:
        return {
            name: {"rate": rate.value, "interval": list(rate.interval), "successes": rate.successes, "of": rate.trials}
            for name, rate in (("any_step", self.rate(task)), ("at_end", self.rate(task, at_end=True)))
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
) -> Result:
    """Play `episodes` episodes of seeds that no training set uses, `batch` worlds at a time as one batch.

    `env_spec` defaults to the environment of the agent's dataset. `mode` is "goal" (a goal image), or "strict" or
    "loose" (an analogy: an example pair only). Actions are sampled with `eval_temperature` times the policy's standard
    deviation; 0 takes the mean. `video` is a file for a grid of the first `video_episodes` episodes. The result depends
    on neither `batch` nor `workers`, except for rounding.
    """
    env_spec = env_spec or env_spec_of(agent)
    eval_temperature = env_spec.adapter.eval_temperature if eval_temperature is None else eval_temperature
    _check(agent, env_spec, mode, episodes, batch, workers)
    if not 0 <= eval_temperature < inf:
        raise GCBError(f"eval_temperature is {eval_temperature}; it must be a number that is not negative.")
    if video is not None and not shows_pictures(agent):
        raise GCBError(f"a video of vectors {agent.shapes.observation} cannot be made; leave it out.")
    batch = min(batch, episodes)
    shown = min(video_episodes, episodes) if video is not None else 0
    job = Job(
        agent.run.path if agent.run else None,
        str(agent.device),
        env_spec,
        mode,
        seed,
        episodes,
        batch,
        shown,
        eval_temperature,
    )
    played: list[Played] = []
    chunks = -(-episodes // batch)
    if workers == 1:
        results = run_in_order(lambda job: ChunkRunner(job, agent), job, 0, 1)
    else:
        env_spec.make(mode).close()  # what is impossible is better told here than by a worker that dies of it
        results = run_in_order(ChunkRunner, job, 0, min(workers, chunks))
    with closing(results), Progress(f"evaluating by {mode}", episodes, "episodes", quiet=quiet) as bar:
        for chunk in islice(results, chunks):
            played.append(chunk)
            done = [one for part in played for one in part.outcomes]
            bar.advance(len(chunk.outcomes), success=sum(one.reached_at is not None for one in done) / len(done))
    outcomes = [one for part in played for one in part.outcomes]
    if video is not None:
        write_video(video, video_rows(outcomes[:shown], mode), FPS)
    return Result(
        mode, env_spec, seed, agent.step, outcomes, sum(part.env_seconds for part in played), eval_temperature
    )


def evaluate_run(
    run: str | os.PathLike[str],
    modes: Sequence[str] | None = None,
    *,
    env_spec: EnvSpec | None = None,
    device: str = "cpu",
    videos: bool = True,
    options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> dict[str, Result]:
    """Evaluate a run in each mode it is capable of (or the given ones), write RUN/eval.json and RUN/videos.

    `world` is by default the one that the run's dataset comes from; `options` change its own, `settings` go to
    `evaluate`.
    """
    agent = load(run, device)
    folder = agent.run
    assert folder is not None, "load gives the agent its run"
    env_spec = env_spec or env_spec_of(agent)
    env_spec = replace(env_spec, options={**env_spec.options, **(options or {})})
    modes = modes_of(agent, env_spec) if modes is None else modes
    for mode in modes:
        _check(agent, env_spec, mode, 1, 1, 1)
    read_results(folder.path)  # what cannot be added to is better told before the episodes are played
    results = {}
    for mode in modes:
        video = folder.path / VIDEOS / f"{mode}.mp4" if videos and shows_pictures(agent) else None
        results[mode] = evaluate(agent, env_spec, mode, video=video, **settings)
        _write(folder, results[mode])
    return results


def _write(run: Run, result: Result) -> None:
    # Another evaluation of this run may be at work, in another mode.
    with explain_os_errors(run.path / EVAL), file_lock(run.path / EVAL):
        write_json(run.path / EVAL, {**read_results(run.path), result.mode: result.to_dict()})


def env_spec_of(agent: Agent) -> EnvSpec:
    """The world that the dataset of an agent's run was collected in."""
    return recorded_env_spec(agent.run.dataset.config if agent.run else {})


def modes_of(agent: Agent, env_spec: EnvSpec) -> tuple[str, ...]:
    """By goal and, where the method and the world can, by strict analogy."""
    return ("goal", "strict") if agent.method.supports_analogy and "strict" in env_spec.adapter.modes else ("goal",)


def shows_pictures(agent: Agent) -> bool:
    """Whether what the agent sees can be shown."""
    return len(agent.shapes.observation) == 3


def _check(agent: Agent, env_spec: EnvSpec, mode: str, episodes: int, batch: int, workers: int) -> None:
    if mode not in MODES:
        raise GCBError(f"mode is {mode!r}; accepted: {', '.join(MODES)}.")
    if mode != "goal" and not agent.method.supports_analogy:
        raise GCBError(f"{agent.method.name} cannot be told what to do by an example (NA); its only mode is goal.")
    if mode not in env_spec.adapter.modes:
        raise GCBError(
            f"mode is {mode!r}; {env_spec.env} has {', '.join(env_spec.adapter.modes)}: it shows no examples."
        )
    for name, value in (("episodes", episodes), ("batch", batch), ("workers", workers)):
        if value < 1:
            raise GCBError(f"{name} is {value}; it must be at least 1.")
    if workers > 1 and agent.run is None:
        raise GCBError("several workers need an agent that was loaded from a run's folder.")


@dataclass(frozen=True)
class Job:
    """What a process must know to play its share."""

    run: Path | None
    device: str
    env_spec: EnvSpec
    mode: str
    seed: int
    episodes: int
    batch: int
    shown: int
    """Episodes whose frames are wanted, counted from the first."""
    eval_temperature: float


class ChunkRunner:
    """Plays chunk after chunk of the episodes, each of `batch`; in a process of its own it loads the agent itself."""

    renderer = ""

    def __init__(self, job: Job, agent: Agent | None = None) -> None:
        if agent is None:
            import torch

            assert job.run is not None, "only an agent from a run is sent to another process"
            torch.set_num_threads(1)
            agent = load(job.run, job.device)
        self.job, self.player = job, Player(agent, job.env_spec, job.mode, job.batch, job.eval_temperature)

    def run(self, index: int) -> Played:
        job = self.job
        numbers = range(index * job.batch, min((index + 1) * job.batch, job.episodes))
        return self.player.play(numbers, job.seed, job.shown)

    def close(self) -> None:
        self.player.close()
