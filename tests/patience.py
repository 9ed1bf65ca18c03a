"""Waiting for what must come, instead of for a time."""

import time
from collections.abc import Callable
from typing import Any

#: Seconds until a test gives up. Only a failing test waits that long: it is enough for a slow machine that is shared.
PATIENCE = 120.0


def eventually(condition: Callable[[], Any], what: str = "it", seconds: float = PATIENCE) -> None:
    """Return once the condition holds; fail where it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen within {seconds:.0f} s"
        time.sleep(0.01)
