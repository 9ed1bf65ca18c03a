"""One step with and without the cache."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Uncached:
    """One step computed both ways. Logits are compared over the whole vocabulary."""

    turn: int
    step: int
    reused: int  # positions that came from the cache
    fed_cached: int  # positions that were computed with its help
    fed_uncached: int  # positions that were computed without
    max_difference: float  # largest |Δlogit|
    same_best: bool  # both put the same token first
    cached_seconds: float
    uncached_seconds: float
