"""Datasets: collect, import, open, inspect and sample."""

from gcb.data.batch import Batch, Indices
from gcb.data.collect import CollectResult, collect
from gcb.data.contact_sheet import contact_sheet
from gcb.data.episode import Episode
from gcb.data.formats import ImportOptions, ImportResult, export_data, import_data
from gcb.data.rollout import CollectConfig
from gcb.data.sampler import GoalKind, GoalSampling, Sampler
from gcb.data.store import Dataset, from_episodes, open_dataset
from gcb.data.summary import describe
from gcb.data.writer import write_dataset

__all__ = [
    "Batch",
    "CollectConfig",
    "CollectResult",
    "Dataset",
    "Episode",
    "GoalKind",
    "GoalSampling",
    "ImportOptions",
    "ImportResult",
    "Indices",
    "Sampler",
    "collect",
    "contact_sheet",
    "describe",
    "export_data",
    "from_episodes",
    "import_data",
    "open_dataset",
    "write_dataset",
]
