"""`python -m benchmarks`: all measurements beside their bars in one table; exit code 1 where one is missed."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial

import torch

from benchmarks import (
    decode,
    floor,
    footprint,
    grid,
    heatmap,
    inside,
    page,
    panels_memory,
    paths,
    start,
    transformer_lens,
    turns,
)
from benchmarks.figures import Figure, table
from benchmarks.model import embedded


def _inside(*, rounds: int) -> list[Figure]:
    """What looking inside costs in time, in bytes and in memory."""
    return [
        *inside.measure(embedded(), rounds=rounds),
        *transformer_lens.measure(rounds=rounds),
        *heatmap.measure(heads=rounds),
        *panels_memory.measure(),
    ]


#: By name: the measurement as it is made for good, and with fewer repeats.
MEASUREMENTS: dict[str, tuple[Callable[[], list[Figure]], Callable[[], list[Figure]]]] = {
    "start": (start.measure, partial(start.measure, rounds=1)),
    "decode": (lambda: decode.measure(embedded()), lambda: decode.measure(embedded(), new_tokens=12, rounds=3)),
    "floor": (lambda: floor.measure(embedded()), lambda: floor.measure(embedded(), new_tokens=12, rounds=3)),
    "footprint": (lambda: footprint.measure(embedded()), lambda: footprint.measure(embedded(), steps=40)),
    "grid": (lambda: grid.measure(embedded()), lambda: grid.measure(embedded(), new_tokens=8, rounds=1)),
    "inside": (lambda: _inside(rounds=7), lambda: _inside(rounds=2)),
    "paths": (lambda: paths.measure(embedded()), lambda: paths.measure(embedded(), rows=2, length=32)),
    "turns": (lambda: turns.measure(embedded()), lambda: turns.measure(embedded(), rounds=3)),
    "page": (page.measure, partial(page.measure, new_tokens=32)),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Ratios measured side by side in one run."
    )
    parser.add_argument("--only", action="append", choices=list(MEASUREMENTS), help="this measurement; may be repeated")
    parser.add_argument("--quick", action="store_true", help="fewer repeats: a glance, not a verdict")
    flags = parser.parse_args(arguments)
    figures: list[Figure] = []
    for name in flags.only or MEASUREMENTS:
        print(f"{name} …", file=sys.stderr, flush=True)
        figures += MEASUREMENTS[name][flags.quick]()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads{_load()}")
    print(table(figures))
    return int(any(figure.missed for figure in figures))


def _load() -> str:
    """How busy the machine was, where the system tells it."""
    if not hasattr(os, "getloadavg"):
        return ""
    return f", load average {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores over the last five minutes"


if __name__ == "__main__":
    sys.exit(main())
