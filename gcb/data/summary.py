"""Text summary of a dataset, as printed by `gcb data show`."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gcb.data.store import Dataset


def describe(dataset: Dataset) -> list[tuple[str, str]]:
    """Return rows of a name and a text."""
    return list(_rows(dataset))


def _rows(dataset: Dataset) -> Iterator[tuple[str, str]]:
    length = dataset.episode_length
    config, manifest = dataset.config, dataset.manifest
    if dataset.path is not None:
        yield "dataset", str(dataset.path)
    if "env" in config:
        yield "environment", f"{config['env']}{_options(config.get('options', {}))}"
    if "source" in config:
        source = config["source"]
        yield "imported from", source if isinstance(source, str) else f"{source.get('name')} ({source.get('format')})"
    if "seed" in config:
        yield "seed", str(config["seed"])
    if "noise" in config:
        yield "noise", f"{config['noise']:g} on the expert's actions"
    yield "transitions", f"{dataset.transitions:,}"
    yield "episodes", f"{dataset.episodes:,}, each {length.min()} to {length.max()} long, mean {length.mean():.1f}"
    yield "frames", f"{len(dataset.frames):,}, each {_shape(dataset.frames)}; {_goals(dataset)}"
    bound = config.get("action_bound", 1.0)
    yield "actions", _shape(dataset.actions) + (f", divided by {bound:g}" if bound != 1 else "")
    yield "states", "none" if dataset.states is None else _shape(dataset.states)
    yield from _successes(dataset)
    if manifest:
        size = sum(entry["bytes"] for entry in manifest["files"].values())
        yield "size on disk", f"{size / 1e6:,.1f} MB"
    if "versions" in manifest:
        versions = ", ".join(f"{name} {value}" for name, value in manifest["versions"].items())
        yield "versions", versions + (f"; renderer {manifest['renderer']}" if "renderer" in manifest else "")


def _successes(dataset: Dataset) -> Iterator[tuple[str, str]]:
    """Yield the success rate over all episodes, and of each task if there are several."""
    success, task = dataset.episode_success, dataset.episode_task
    if success is None:
        return
    yield "success", _rate(success)
    if task is not None and len(dataset.task_names) > 1:
        for index, name in enumerate(dataset.task_names):
            yield f"success, {name}", _rate(success[task == index])


def _rate(success: np.ndarray) -> str:
    return f"{100 * success.mean():.1f} % of {len(success):,} episodes" if len(success) else "no episodes"


def _options(options: Mapping[str, Any]) -> str:
    given = ", ".join(f"{name} {value}" for name, value in options.items() if value is not None)
    return f" ({given})" if given else ""


def _shape(array: np.ndarray) -> str:
    shape = "×".join(map(str, array.shape[1:])) or "1"
    return f"{shape} {array.dtype}"


def _goals(dataset: Dataset) -> str:
    goals = int((dataset.episode_goal_frame >= 0).sum())
    if goals == dataset.episodes:
        return "a goal in every episode"
    return f"a goal in {goals:,} episodes" if goals else "no goals"
