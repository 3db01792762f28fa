"""Keep the memory that a training step frees, because the next step allocates the same blocks."""

import ctypes
import sys

# Options of glibc's mallopt, from malloc.h.
TRIM_THRESHOLD, TOP_PAD, MMAP_MAX = -1, -2, -4


def keep_freed_memory() -> bool:
    """Configure glibc not to return large blocks to the operating system; return whether that was possible.

    By default glibc maps every block of more than 32 MB again, and the kernel clears it page by page, which takes a
    quarter of a training step on a CPU. Affects the whole process; its peak memory stays the same.
    """
    if sys.platform != "linux":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    options = ((MMAP_MAX, 0), (TRIM_THRESHOLD, 2**31 - 1), (TOP_PAD, 64 * 2**20))
    return all(mallopt(option, value) == 1 for option, value in options)
