"""From a dataset to a file or folder of another format; importing that again gives the same dataset."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from gcb.data.formats.minari_files import write_minari
from gcb.data.formats.ogbench import write_ogbench
from gcb.data.store import Dataset
from gcb.errors import GCBError


def export_data(
    dataset: Dataset,
    out: str | os.PathLike[str],
    format: Literal["auto", "ogbench", "minari"] = "auto",
    *,
    val_episodes: int = 0,
    quiet: bool = False,
) -> list[Path]:
    """Write a dataset as OGBench's .npz or as a Minari dataset (auto: by the name's end); return what was written.

    The last `val_episodes` episodes go to OGBench's second file, NAME-val.npz.
    """
    path = Path(os.path.abspath(out))
    if format == "auto":
        format = "ogbench" if path.suffix == ".npz" else "minari"
    if format == "minari":
        if val_episodes:
            raise GCBError(f"val_episodes is {val_episodes}; only OGBench has a file for them")
        write_minari(_as_imported(dataset), path, quiet=quiet)
        return [path]
    if path.suffix != ".npz":
        raise GCBError(f"{path.name} does not end in .npz, as OGBench's files do")
    if not 0 <= val_episodes < dataset.episodes:
        raise GCBError(f"val_episodes is {val_episodes}; the dataset has {dataset.episodes} episodes in all")
    kept = dataset.episodes - val_episodes
    parts = {path: range(kept)}
    if val_episodes:
        parts[path.with_name(f"{path.stem}-val.npz")] = range(kept, dataset.episodes)
    for there in parts:
        if there.exists():
            raise GCBError(f"{there} is there already; name a new file")
    for there, episodes in parts.items():
        write_ogbench(_as_imported(dataset), there, episodes, quiet=quiet)
    return list(parts)


def _as_imported(dataset: Dataset) -> Dataset:
    """With actions and rewards as the source had them, if the import changed them."""
    bound, offset = dataset.config.get("action_bound", 1.0), dataset.config.get("reward_offset", 0.0)
    if bound == 1.0 and not offset:
        return dataset
    actions = np.asarray(dataset.actions) * np.asarray(bound, dataset.actions.dtype)
    rewards = None if dataset.rewards is None else np.asarray(dataset.rewards) - np.float32(offset)
    config = {key: value for key, value in dataset.config.items() if key not in ("action_bound", "reward_offset")}
    return replace(dataset, actions=actions, rewards=rewards, config=config)
