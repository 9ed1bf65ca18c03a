"""What was freed goes back to the system, so that the long prompt of one visitor does not weigh on those after it."""

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache


def give_back() -> bool:
    """Return the C library's free pages to the system; True where it had any to return.

    glibc keeps the holes that caches and activations leave. Mapping each large tensor by itself instead (a fixed
    M_MMAP_THRESHOLD) made a prefill an eighth slower. Source: malloc_trim(3); other C libraries have no such call.
    """
    trim = _trim()
    return trim is not None and bool(trim(0))


@contextmanager
def giving_back(every: float = 0.25) -> Iterator[None]:
    """Give free pages back every `every` seconds while the block goes on.

    For the forward of a long prompt: what a layer keeps lies in the hole that the one before left, and then the next
    activation, which is no smaller, does not fit there. At 2,048 tokens the embedded model's prompt needed 220 to 290
    MB at its height, and needs 175 to 210 MB this way; the pages that come back cost it some hundredths of its time.
    """
    done = threading.Event()

    def work() -> None:
        while not done.wait(every):
            give_back()

    thread = threading.Thread(target=work, name="freed-memory", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@cache
def _trim() -> Callable[[int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
