"""How far the loading of a model has come, as a value for whoever shows it: the terminal, the page."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Stage = Literal["waiting", "downloading", "converting", "reading"]

SECONDS_BETWEEN_LINES = 2.0


@dataclass(frozen=True)
class Progress:
    """What is being done; `done` of `total` bytes, 0 of 0 where they are not counted."""

    stage: Stage
    done: int = 0
    total: int = 0


Report = Callable[[Progress], None]


def unheard(progress: Progress) -> None:
    """Tells nobody."""


def to_stderr(title: str) -> Report:
    """Tells the terminal of a download, a line at most every two seconds."""
    told: list[float] = []

    def report(progress: Progress) -> None:
        if progress.stage != "downloading" or not progress.total:
            return
        now, whole = time.monotonic(), progress.done >= progress.total
        if whole or not told or now - told[-1] >= SECONDS_BETWEEN_LINES:
            told.append(now)
            done, total = progress.done / 1e6, progress.total / 1e6
            share = progress.done / progress.total
            print(f"{title}: {done:,.1f} of {total:,.1f} MB ({share:.0%})", file=sys.stderr, flush=True)

    return report
