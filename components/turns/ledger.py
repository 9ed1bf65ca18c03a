"""Every turn's positions: what the cache gave, what was computed, what left the cache."""

from dataclasses import dataclass
from typing import Literal

from engine.trace import Trace

#: Where reused positions came from: the turn before, the cache of system prompts, nowhere.
Source = Literal["own", "prefix", "none"]


@dataclass(frozen=True)
class TurnRow:
    """Positions of one turn. reused + computed = context, and dropped = cached − what of it was reused.

    Of a turn that was refused nothing was computed.
    """

    turn: int
    context: int  # of the prompt
    cached: int  # left by the turn before
    reused: int
    source: Source
    computed: int
    dropped: int
    answer: int  # tokens chosen so far
    refused: bool
    held: int | None  # in the cache now, or at the turn's end; None where it was never filled


def select(trace: Trace) -> list[TurnRow]:
    """All turns that were begun, in order."""
    return [row for turn in range(trace.turns) if (row := _row(trace, turn)) is not None]


def _row(trace: Trace, turn: int) -> TurnRow | None:
    rendered, prefilled, steps = trace.rendered(turn), trace.prefilled(turn), trace.steps(turn)
    if rendered is None:
        return None
    context = len(rendered.token_ids)
    source: Source = "none" if rendered.reused == 0 else "own" if rendered.prefix is None else "prefix"
    held = steps[-1].kv_tokens if steps else prefilled.kv_tokens if prefilled else None
    return TurnRow(
        turn=turn,
        context=context,
        cached=rendered.cached,
        reused=rendered.reused,
        source=source,
        computed=context - rendered.reused if prefilled else 0,
        dropped=rendered.dropped,
        answer=len(steps),
        refused=prefilled is None,
        held=held,
    )
