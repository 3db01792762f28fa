"""Keep the memory that a training step frees: the next one asks for the same blocks again."""

import ctypes
import sys

# Options of glibc's mallopt, from malloc.h.
TRIM_THRESHOLD, TOP_PAD, MMAP_MAX = -1, -2, -4


def keep_freed_memory() -> bool:
    """Tell the C library not to hand large blocks back to the system; say whether it could be told.

    By default glibc maps every block of more than 32 MB anew, and the system clears it page by page: measured, a
    quarter of the time of a training step on a CPU. Affects the whole process; its peak memory stays the same.
    """
    if sys.platform != "linux":
        return False
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    options = ((MMAP_MAX, 0), (TRIM_THRESHOLD, 2**31 - 1), (TOP_PAD, 64 * 2**20))
    return all(set_option(option, value) == 1 for option, value in options)
