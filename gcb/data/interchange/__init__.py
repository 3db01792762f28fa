"""Data from elsewhere, and for elsewhere: OGBench's files, Minari's datasets, plain folders, arrays in memory."""

from gcb.data.interchange.episodes import from_episodes
from gcb.data.interchange.exporting import export_data
from gcb.data.interchange.importing import Imported, ImportOptions, import_data

__all__ = ["ImportOptions", "Imported", "export_data", "from_episodes", "import_data"]
