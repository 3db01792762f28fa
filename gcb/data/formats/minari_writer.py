"""Write Minari datasets: HDF5 files without Minari's default JPEG encoding, and what its metadata say of them.

The metadata name the environment, so that `minari.MinariDataset.recover_environment` creates it, the author and the
algorithm. A failing write inside the HDF5 library ends the process, so the space is reserved before.
"""

import io
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

import gcb
from gcb.data.formats.minari import EXTRAS, GOAL, OBSERVATION, check_installed
from gcb.data.store import Dataset
from gcb.errors import GCBError
from gcb.utils.files import staged_dir
from gcb.utils.progress import Progress

HDF5 = "main_data.hdf5"
RESERVED_FACTOR, RESERVED_BYTES = 4, 1 << 20
"""Reserved for an episode: this many times its bytes, as HDF5 rounds arrays up to chunks, plus its index."""


def write_minari(
    dataset: Dataset, out: Path, *, env: str | None = None, action_bound: float = 1.0, quiet: bool = False
) -> None:
    """Write a Minari dataset to a new directory, completely or not at all.

    The directory's name is the dataset's id: a name followed by -v and a number. `env` names the environment, as
    Gymnasium's `make` takes it; by default it is the one that the dataset names.
    """
    check_installed()
    from minari.dataset.minari_dataset import parse_dataset_id

    try:
        parse_dataset_id(out.name)
    except (TypeError, ValueError) as error:
        raise GCBError(f"{out.name} is not a Minari dataset id; accepted: for example {out.name}-v0") from error
    if out.exists():
        raise GCBError(f"{out} already exists; name a new directory")
    goals = np.asarray(dataset.episode_goal_frame) >= 0
    if goals.any() and not goals.all():
        raise GCBError(f"{int(goals.sum())} of {len(goals)} episodes have a goal; Minari needs it in all or in none")
    spec = env_spec(dataset.config, env)
    with staged_dir(out) as staging:
        storage = _storage(dataset, staging / "data", bool(goals.all()), action_bound, spec)
        with Progress("exporting", dataset.episodes, "episodes", quiet=quiet) as bar:
            for number in range(dataset.episodes):
                buffer = _buffer(dataset, number)
                _reserve(staging / "data" / HDF5, buffer)
                storage.update_episodes([buffer])
                bar.advance()
        storage.update_metadata(_metadata(dataset, out.name, action_bound))


def env_spec(config: Mapping[str, Any], env: str | None = None) -> EnvSpec | None:
    """Return the specification of `env`, or else of the environment that a dataset's configuration names.

    Code that a dataset names is not imported: None if that would be necessary, or if the environment is unknown.
    """
    from gcb.envs import ENVS  # registers the environments
    from gcb.envs.layout import HORIZON

    recorded = config.get("env")
    module, _, env_id = str(env or recorded or "").rpartition(":")
    if module and env:
        try:
            import_module(module)
        except ImportError as error:
            raise GCBError(f"env is {env!r}, but {error}") from error
    registered = gym.registry.get(env_id) if not module or module in sys.modules else None
    if registered is None:
        if env:
            raise GCBError(f"env is {env!r}, but there is no environment {env_id!r}")
        return None
    options = config.get("options") or {} if recorded in (env or recorded, env_id) else {}
    spec = replace(registered, kwargs={**registered.kwargs, **options})
    if env_id in ENVS:  # they end episodes themselves; readers such as d3rlpy need the number
        spec = replace(spec, max_episode_steps=options.get("max_steps", HORIZON))
    try:
        spec.to_json()
    except (TypeError, ValueError) as error:
        if env:
            raise GCBError(f"env is {env!r}, which cannot be written to a file: {error}") from error
        return None
    return spec


def _storage(dataset: Dataset, path: Path, goals: bool, action_bound: float, spec: EnvSpec | None) -> Any:
    """Create the files of a Minari dataset without episodes."""
    import h5py
    from gymnasium.spaces import Box, Dict
    from minari.dataset.minari_storage import MinariStorage

    low, high = (0, 255) if dataset.frames.dtype == np.uint8 else (-np.inf, np.inf)
    space = Box(low, high, dataset.frames.shape[1:], dataset.frames.dtype.type)
    observations = Dict({OBSERVATION: space, GOAL: space}) if goals else space
    bound = max(action_bound, float(np.abs(dataset.actions).max()))
    actions = Box(-bound, bound, dataset.actions.shape[1:], dataset.actions.dtype.type)
    storage = MinariStorage.new(path, observations, actions, spec, data_format="hdf5", jpeg_encoding=False)
    empty = io.BytesIO()
    h5py.File(empty, "w", track_order=True).close()
    (path / HDF5).write_bytes(empty.getvalue())  # by Python, which survives a full disk
    return storage


def _metadata(dataset: Dataset, dataset_id: str, action_bound: float) -> dict[str, Any]:
    import minari

    config = dict(dataset.config)
    source = config.get("source", {})
    names = {"task_names": list(dataset.task_names), "scene_names": list(dataset.scene_names)}
    extras = {"config": config, "rewards": dataset.rewards is not None, "action_bound": action_bound, **names}
    metadata: dict[str, Any] = {"dataset_id": dataset_id, "minari_version": minari.__version__, EXTRAS: extras}
    metadata["author"] = set(source.get("author") or [f"gcb {gcb.__version__}"])
    if source.get("algorithm"):
        metadata["algorithm_name"] = source["algorithm"]
    elif "noise" in config:
        metadata["algorithm_name"] = f"scripted expert with noise {config['noise']:g}"
    return metadata


def _reserve(path: Path, buffer: Any) -> None:
    """Extend the HDF5 file by what an episode may need; HDF5 cuts off what it does not use."""
    arrays = (buffer.actions, buffer.rewards, *_leaves(buffer.observations), *_leaves(buffer.infos))
    size = RESERVED_FACTOR * sum(array.nbytes for array in arrays) + RESERVED_BYTES
    with open(path, "r+b") as handle:
        os.posix_fallocate(handle.fileno(), handle.seek(0, os.SEEK_END), size)


def _leaves(value: Any) -> list[np.ndarray]:
    return list(value.values()) if isinstance(value, dict) else [value]


def _buffer(dataset: Dataset, number: int) -> Any:
    """Return one episode as a Minari buffer. What Minari has no field for goes into the infos of every step."""
    from minari.data_collector import EpisodeBuffer

    episode = dataset.episode(number)
    rows, truncations = len(episode.frames), np.zeros(episode.length, bool)
    truncations[-1] = not episode.terminated[-1]
    constants: dict[str, Any] = {"goal_state": episode.goal_state, "success": episode.success}
    if episode.task is not None:
        constants["task"] = dataset.task_names.index(episode.task)
    if episode.scene:
        constants["scene"] = np.array([*episode.scene.values()], np.float32)
    infos = {key: _repeat(value, rows) for key, value in constants.items() if value is not None}
    if episode.states is not None:
        infos["states"] = np.asarray(episode.states)
    frames = np.asarray(episode.frames)
    arrays: dict[str, Any] = {
        "observations": frames,
        "actions": np.asarray(episode.actions),
        "rewards": np.zeros(episode.length, np.float32) if episode.rewards is None else np.asarray(episode.rewards),
        "terminations": np.asarray(episode.terminated),
        "truncations": truncations,
        "infos": {f"{EXTRAS}_{key}": value for key, value in infos.items()},
    }
    if episode.goal_frame is not None:
        arrays["observations"] = {OBSERVATION: frames, GOAL: _repeat(episode.goal_frame, rows)}
    return EpisodeBuffer(id=number, **arrays)


def _repeat(value: Any, rows: int) -> np.ndarray:
    return np.repeat(np.asarray(value)[None], rows, axis=0)
