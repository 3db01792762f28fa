"""Collect a dataset from the scripted expert: seeded, parallel, resumable."""

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from gcb.data.output_dir import is_complete, make_identity
from gcb.data.rollout import CollectConfig, ExpertRunner
from gcb.data.store import open_dataset
from gcb.data.writer import CHECKPOINT_SECONDS, EpisodeWriter, resume_or_create
from gcb.utils.progress import Progress
from gcb.utils.workers import Runner, check_workers, run_in_order


@dataclass(frozen=True)
class CollectResult:
    """The outcome of a call of `collect`."""

    path: Path
    episodes: int
    transitions: int
    successes: int
    start_transitions: int
    """Transitions collected by earlier calls; equal to `transitions` if the dataset was already complete."""


def collect(
    config: CollectConfig,
    out: str | os.PathLike[str],
    *,
    workers: int = 1,
    quiet: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    make_runner: Callable[[CollectConfig], Runner] = ExpertRunner,
) -> CollectResult:
    """Collect the dataset that `config` describes into the directory `out`, resuming an unfinished one.

    Episode i depends only on `config` and i, and episodes are written in order. The dataset therefore does not depend
    on the number of workers or on interruptions. A kill loses at most the last `checkpoint_seconds` of work.
    `make_runner` builds the object that plays the episodes.
    """
    out = Path(out)
    config.check()
    check_workers(workers)
    video = ("av", "pillow", "scikit-learn") if config.options.get("video") else ()
    identity = make_identity(config.record(), "numpy", "gymnasium", "pybullet", *video)
    start = config.transitions
    if not is_complete(out, identity):
        renderer = _try_runner(make_runner, config)
        with resume_or_create(out, identity, checkpoint_seconds) as writer:
            if writer is not None:
                start = writer.saved
                _collect_rest(config, writer, workers, quiet, make_runner)
                writer.finish({**identity, "renderer": renderer})
    dataset = open_dataset(out)
    successes = 0 if dataset.episode_success is None else int(dataset.episode_success.sum())
    return CollectResult(out, dataset.episodes, dataset.transitions, successes, start)


def _collect_rest(
    config: CollectConfig,
    writer: EpisodeWriter,
    workers: int,
    quiet: bool,
    make_runner: Callable[[CollectConfig], Runner],
) -> None:
    """Append the missing episodes; the last one is truncated to fit."""
    bar = Progress("collecting", config.transitions, "transitions", start=writer.saved, quiet=quiet)
    episodes = run_in_order(make_runner, config, writer.journal.episodes, workers)
    with closing(episodes), bar:
        while (missing := config.transitions - writer.journal.transitions) > 0:
            episode = next(episodes).truncate(missing)
            writer.append(episode)
            bar.advance(episode.length, success=writer.journal.successes / writer.journal.episodes)


def _try_runner(make_runner: Callable[[CollectConfig], Runner], config: CollectConfig) -> str:
    """Fail early on an unknown environment or option, before anything is written; return the renderer's name."""
    runner = make_runner(config)
    runner.close()
    return runner.renderer
