"""From episodes to batches: collect a dataset, open it, look at it, sample from it."""

from gcb.data.collect import Collected, collect
from gcb.data.contact_sheet import contact_sheet
from gcb.data.episode import Episode
from gcb.data.formats import ImportOptions, export_data, from_episodes, import_data
from gcb.data.rollout import CollectConfig
from gcb.data.sampler import Batch, GoalKind, GoalSampling, Indices, Sampler
from gcb.data.store import Dataset, open_dataset, write_dataset
from gcb.data.summary import describe
from gcb.utils.seeding import episode_noise, episode_seed

__all__ = [
    "Batch",
    "CollectConfig",
    "Collected",
    "Dataset",
    "Episode",
    "GoalKind",
    "GoalSampling",
    "ImportOptions",
    "Indices",
    "Sampler",
    "collect",
    "contact_sheet",
    "describe",
    "episode_noise",
    "episode_seed",
    "export_data",
    "from_episodes",
    "import_data",
    "open_dataset",
    "write_dataset",
]
