"""Collect a dataset from the scripted expert: seeded, parallel, resumable."""

import os
import platform
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import gcb
from gcb.data.format import PARTIAL
from gcb.data.output_dir import clear, is_finished, publish
from gcb.data.rollout import CollectConfig, ExpertRunner
from gcb.data.store import open_dataset
from gcb.data.writer import CHECKPOINT_SECONDS, EpisodeWriter
from gcb.errors import GCBError
from gcb.utils.files import directory_lock, explain_os_errors
from gcb.utils.progress import Progress
from gcb.utils.workers import Runner, run_in_order


@dataclass(frozen=True)
class Collected:
    """What a call of `collect` found and did."""

    path: Path
    episodes: int
    transitions: int
    successes: int
    kept: int
    """Transitions that were there already, from an earlier call; equal to `transitions` if all were."""


def collect(
    config: CollectConfig,
    out: str | os.PathLike[str],
    *,
    workers: int = 1,
    quiet: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    make_runner: Callable[[CollectConfig], Runner] = ExpertRunner,
) -> Collected:
    """Collect the dataset that `config` describes into the folder `out`, or go on with it, or find it finished.

    Episode i depends on nothing but `config` and i; the episodes are written in order. So the dataset does not depend
    on the number of workers, nor on how often the collection was stopped. A kill loses what the last
    `checkpoint_seconds` brought. `make_runner` builds what plays the episodes.
    """
    out = Path(out)
    config.check()
    if workers < 1:
        raise GCBError(f"workers is {workers}; it must be at least 1")
    identity = {"config": config.record(), "versions": versions(config)}
    with explain_os_errors(out, "Nothing was touched"):
        if is_finished(out, identity) and not (out / PARTIAL).exists():
            return _summary(out, kept=config.transitions)
    renderer = _try_out(make_runner, config)
    with explain_os_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    with directory_lock(out):
        # Another process may have finished it since, or been killed while it put the files in place or cleared up.
        if is_finished(out, identity) or publish(out):
            clear(out)
            return _summary(out, kept=config.transitions)
        with EpisodeWriter(out, identity, checkpoint_seconds) as writer:
            kept = writer.kept
            _collect_rest(config, writer, workers, quiet, make_runner)
            writer.finish({**identity, "renderer": renderer})
    return _summary(out, kept)


def _collect_rest(
    config: CollectConfig,
    writer: EpisodeWriter,
    workers: int,
    quiet: bool,
    make_runner: Callable[[CollectConfig], Runner],
) -> None:
    """Append the episodes that are still missing, the last one cut to fit."""
    bar = Progress("collecting", config.transitions, "transitions", start=writer.kept, quiet=quiet)
    episodes = run_in_order(make_runner, config, writer.journal.episodes, workers)
    with closing(episodes), bar:
        while (missing := config.transitions - writer.journal.transitions) > 0:
            episode = next(episodes).cut(missing)
            writer.append(episode)
            bar.advance(episode.length, success=writer.journal.successes / writer.journal.episodes)


def _try_out(make_runner: Callable[[CollectConfig], Runner], config: CollectConfig) -> str:
    """Find an impossible world or option here, before a folder is made or a worker started; return the renderer."""
    runner = make_runner(config)
    runner.close()
    return runner.renderer


def _summary(out: Path, kept: int) -> Collected:
    dataset = open_dataset(out)
    successes = 0 if dataset.episode_success is None else int(dataset.episode_success.sum())
    return Collected(out, dataset.episodes, dataset.transitions, successes, kept)


def versions(config: CollectConfig) -> dict[str, str | None]:
    """What the bytes of a dataset depend on besides its configuration."""
    packages = ["numpy", "gymnasium", "pybullet"]
    if config.options.get("video"):
        packages += ["av", "pillow", "scikit-image"]
    return {"python": platform.python_version(), "gcb": gcb.__version__, **{name: _version(name) for name in packages}}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
