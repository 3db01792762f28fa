"""Data from elsewhere, and for elsewhere: OGBench's files, Minari's datasets, plain folders, arrays in memory."""

from gcb.data.formats.episodes import from_episodes
from gcb.data.formats.exporting import export_data
from gcb.data.formats.importing import Imported, ImportOptions, import_data

__all__ = ["ImportOptions", "Imported", "export_data", "from_episodes", "import_data"]
