"""Every way to make a history fit, in the order of the page, and the trial of all of them on one chat."""

from collections.abc import Callable
from typing import Any

from engine.values import Strategy

#: Strategy, and how positions count where that makes a difference.
POLICIES: tuple[tuple[Strategy, str], ...] = (
    ("none", "go_on"),
    ("drop_oldest", "go_on"),
    ("keep_system", "go_on"),
    ("drop_middle", "go_on"),
    ("summary", "go_on"),
    ("sliding_window", "go_on"),
    ("sliding_window", "restart"),
)


def every_way(probe: Callable[..., Any]) -> tuple[Any, ...]:
    """What the probe "policy" gives for each way: a piece of work each, so that other visitors come between."""
    return tuple(probe("policy", strategy=strategy, positions=positions) for strategy, positions in POLICIES)
