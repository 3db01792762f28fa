"""The size of an analysis."""

from dataclasses import dataclass

from gcb.analysis.projection import MAX_POINTS
from gcb.utils.dataclass_io import check_fields


@dataclass(frozen=True)
class AnalysisSize:
    """Sample sizes of an analysis; the defaults take two cores a minute or two."""

    samples: int = 1000
    """Tasks whose neighbours are searched, each from a different episode."""
    pool: int = 4000
    """Tasks among which they are searched."""
    scenes: int = 500
    """Fresh scenes for analogy arithmetic; the test set has three frames of each."""
    points: int = 1500
    """Tasks on the map."""
    rows: int = 8
    """Tasks and scenes shown in a figure."""

    def __post_init__(self) -> None:
        check_fields(self, samples="[1, 1000000]", pool="[8, 1000000]", scenes="[2, 100000]", rows="[1, 1000]")
        check_fields(self, points=f"[4, {MAX_POINTS}]")
