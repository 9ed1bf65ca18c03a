"""What was freed goes back to the system, so that the long prompt of one visitor does not weigh on those after it."""

import ctypes
import sys
from collections.abc import Callable
from functools import cache


def give_back() -> bool:
    """Return the C library's free pages to the system; True where it had any to return.

    glibc keeps the holes that caches and activations leave. Mapping each large tensor by itself instead (a fixed
    M_MMAP_THRESHOLD) made a prefill an eighth slower. Source: malloc_trim(3); other C libraries have no such call.
    """
    trim = _trim()
    return trim is not None and bool(trim(0))


@cache
def _trim() -> Callable[[int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
