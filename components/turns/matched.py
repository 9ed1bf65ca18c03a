"""What a new context took from the cache of the turn before where no pair of ids differs, and why no more."""

from dataclasses import dataclass
from typing import Literal

from engine.trace import Rendered, Trace

Match = Literal[
    "given_back",  # there was no cache
    "all_reused",  # all of it is the beginning of the new context
    "beginning",  # the new context is the beginning of it
    "same_refused",  # the same, and the cache cannot be cut back
    "window_rest",  # its oldest positions had left the window, all others are reused
    "window_left",  # all of it had left the window
    "window_before",  # the window begins before the oldest of it
    "window_other",  # the history that leads up to the window is another, so nothing was compared
]


@dataclass(frozen=True)
class Matched:
    """How the two go together, in positions."""

    kind: Match
    cached: int
    reused: int  # of the cached ones
    left: int  # of the cached ones, those too old for the new window; below 0 where it begins before all of them


def select(trace: Trace, turn: int) -> Matched | None:
    """Of a turn that follows another; None where a pair of ids differs."""
    rendered, before = trace.rendered(turn), trace.rendered(turn - 1)
    if rendered is None or before is None or rendered.parted is not None:
        return None
    reused, left = rendered.cached - rendered.dropped, _left(trace, before, rendered)
    return Matched(_kind(rendered, reused, left), rendered.cached, reused, left)


def _kind(rendered: Rendered, reused: int, left: int) -> Match:
    if rendered.cached == 0:
        return "given_back"
    if rendered.refused is not None:
        return "same_refused"
    if rendered.dropped == 0:
        return "all_reused"
    if left == 0 and reused == len(rendered.token_ids) - 1:
        return "beginning"
    if left >= rendered.cached:
        return "window_left"
    if left < 0:
        return "window_before"
    return "window_rest" if reused else "window_other"


def _left(trace: Trace, before: Rendered, rendered: Rendered) -> int:
    """Cached positions that are older than the new context's first, in a window that goes on; 0 elsewhere."""
    context = trace.experiment.context
    if context.strategy != "sliding_window" or context.positions != "go_on":
        return 0
    fed = len(before.token_ids) + max(0, len(trace.steps(before.turn)) - 1)
    return trace.offset(rendered.turn) - (trace.offset(before.turn) + fed - rendered.cached)
