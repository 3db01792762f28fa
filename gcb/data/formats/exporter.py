"""Export a dataset to another format. Importing the result restores the same dataset."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from gcb.data.formats.lerobot_writer import write_lerobot
from gcb.data.formats.minari_writer import write_minari
from gcb.data.formats.ogbench import write_ogbench
from gcb.data.store import Dataset
from gcb.errors import GCBError
from gcb.utils.dataclass_io import check_interval


def export_data(
    dataset: Dataset,
    out: str | os.PathLike[str],
    format: Literal["auto", "ogbench", "minari", "lerobot"] = "auto",
    *,
    val_episodes: int = 0,
    env: str | None = None,
    quiet: bool = False,
) -> list[Path]:
    """Write a dataset as an OGBench .npz file, a Minari dataset or a LeRobotDataset and return the paths written.

    `auto` writes OGBench if `out` ends in .npz and Minari otherwise. The last `val_episodes` episodes go to OGBench's
    validation file, NAME-val.npz. `env` is the environment that a Minari dataset names; by default the dataset's own.
    """
    path = Path(os.path.abspath(out))
    if format == "auto":
        format = "ogbench" if path.suffix == ".npz" else "minari"
    if val_episodes and format != "ogbench":
        raise GCBError(f"val_episodes is {val_episodes}; only OGBench has a validation file")
    if env and format != "minari":
        raise GCBError(f"env is {env!r}; only Minari names an environment")
    bound = dataset.config.get("action_bound", 1.0)
    if format == "minari":
        write_minari(_undo_conversion(dataset), path, env=env, action_bound=bound, quiet=quiet)
        return [path]
    if format == "lerobot":
        write_lerobot(_undo_conversion(dataset), path, action_bound=bound, quiet=quiet)
        return [path]
    if path.suffix != ".npz":
        raise GCBError(f"{path.name} does not end in .npz, which OGBench files do")
    check_interval("val_episodes", val_episodes, f"[0, {dataset.episodes - 1}]")
    train_episodes = dataset.episodes - val_episodes
    files = {path: range(train_episodes)}
    if val_episodes:
        files[path.with_name(f"{path.stem}-val.npz")] = range(train_episodes, dataset.episodes)
    for file in files:
        if file.exists():
            raise GCBError(f"{file} already exists; name a new file")
    for file, episodes in files.items():
        write_ogbench(_undo_conversion(dataset), file, episodes, quiet=quiet)
    return list(files)


def _undo_conversion(dataset: Dataset) -> Dataset:
    """Return the dataset with the original actions and rewards if the import changed them."""
    bound, offset = dataset.config.get("action_bound", 1.0), dataset.config.get("reward_offset", 0.0)
    if bound == 1.0 and not offset:
        return dataset
    actions = np.asarray(dataset.actions) * np.asarray(bound, dataset.actions.dtype)
    rewards = None if dataset.rewards is None else np.asarray(dataset.rewards) - np.float32(offset)
    config = {key: value for key, value in dataset.config.items() if key not in ("action_bound", "reward_offset")}
    return replace(dataset, actions=actions, rewards=rewards, config=config)
