"""Runs with an evaluation of known outcomes, without any training."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from gcb.envs.spec import ENV_IDS, EnvSpec
from gcb.evaluation.evaluate import EvalResult
from gcb.evaluation.rollouts import Outcome
from gcb.runs.dataset_record import DatasetRecord, record_dataset
from gcb.runs.run_dir import open_or_create
from gcb.utils.files import write_json
from helpers.tiny import tiny_config, tiny_dataset


def write_run(
    path: Path,
    method: str = "gcb",
    seed: int = 0,
    *,
    env: str = "drawer",
    video: str | None = None,
    dataset: str = "",
    results: Mapping[str, Mapping[str, Any]] | None = None,
    **changes: Any,
) -> Path:
    """Write a run that has not been trained; `results` is its eval.json, `changes` are those of its settings.

    Runs on another `dataset` have another fingerprint.
    """
    path.mkdir(parents=True)
    config = {"env": ENV_IDS.get(env, env), "options": {"video": video}}
    record = replace(_dataset_record(), config=config, fingerprint=f"{env}{video}{dataset}")
    open_or_create(path, tiny_config(method, seed=seed, **changes), record)
    if results is not None:
        write_json(path / "eval.json", results)
    return path


def result(
    successes: str,
    mode: str = "goal",
    *,
    env: str = "drawer",
    video: str | None = None,
    seed: int = 0,
    eval_temperature: float = 0.5,
    tasks: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return the entry of eval.json for episodes with these successes, such as "1101".

    The goal is reached in every episode that is not marked "0"; it is kept to the end in those marked "e" and "d", and
    declared done at the right time in those marked "d".
    """
    env_spec = EnvSpec(ENV_IDS.get(env, env), {"video": video})
    tasks = tasks or ["drawer"] * len(successes)
    outcomes = [
        Outcome(task, None if mark == "0" else 3, mark in "ed", 5, mark == "d")
        for task, mark in zip(tasks, successes, strict=True)
    ]
    return EvalResult(mode, env_spec, seed, 12, outcomes, eval_temperature).to_dict()


@lru_cache
def _dataset_record() -> DatasetRecord:
    return record_dataset(tiny_dataset())
