"""Import and export of other formats: OGBench files, Minari and LeRobot datasets, directories of .npz files."""

from gcb.data.formats.exporter import export_data
from gcb.data.formats.importer import ImportOptions, ImportResult, import_data

__all__ = ["ImportOptions", "ImportResult", "export_data", "import_data"]
