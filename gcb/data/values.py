"""Numbers that training cannot use: not finite, or out of range."""

import numpy as np

from gcb.errors import GCBError

TOLERANCE = 1e-5
"""For rounding, when actions were divided by their bound."""
CHUNK = 1 << 16


def check_values(name: str, array: np.ndarray, low: float, high: float) -> None:
    """Raise `GCBError` unless all numbers are finite and from `low` to `high`; the message has the first that is not.

    Rows are read in chunks: an array may be larger than the memory.
    """
    if array.dtype.kind != "f":
        return
    for start in range(0, len(array), CHUNK):
        rows = np.asarray(array[start : start + CHUNK])
        good = np.isfinite(rows) & (rows >= low - TOLERANCE) & (rows <= high + TOLERANCE)
        if not good.all():
            index = np.argwhere(~good)[0]
            place = [start + int(index[0]), *index[1:].tolist()]
            accepted = "finite numbers" + (f" from {low:g} to {high:g}" if np.isfinite(high) else "")
            raise GCBError(f"{name} is {rows[tuple(index)]:g} at {place}; accepted: {accepted}")
