"""What the cache that a turn left would spare another prompt: what a run finds (`engine/reuse.py`), but nothing taken.

Told from the trace, so that any prompt may be asked about: by its ids and by the positions at which they stand.
"""

from dataclasses import dataclass

from engine import kv_cache
from engine.context.fit import Fed
from engine.conversation import Conversation
from engine.probes.windowed import window_at
from engine.trace import Rendered


@dataclass(frozen=True)
class Left:
    """A cache, by its ids: those at the positions that it holds, and those before them, which have left it."""

    gone: tuple[int, ...]
    held: tuple[int, ...]


def spared(conversation: Conversation, turn: int, fed: Fed) -> int:
    """Positions that a turn with this prompt would take over from the cache, as the turn before left it.

    Where the turn began with this very prompt it is what the turn did take over.
    """
    now = conversation.trace.rendered(turn)
    if now is not None and conversation.trace.prefilled(turn) is not None and _same(conversation, now, fed):
        return now.reused
    left = _left_before(conversation, turn, fed) if turn else None
    if left is None:
        return 0
    offset, prompt = (fed.window.offset if fed.window else 0), fed.rendered.token_ids.tolist()
    skipped = offset - len(left.gone)
    if skipped < 0:
        return 0  # the prompt begins before the first position that is held
    if fed.window is not None and offset and (*left.gone, *left.held)[:offset] != fed.window.before:
        return 0  # what stays would stand at other positions
    count = min(kv_cache.common_prefix(left.held[skipped:], prompt), len(prompt) - 1)
    empty = kv_cache.new_cache(conversation.loaded.model.config)
    refused = kv_cache.reason_against_cut(empty, skipped + count, held=len(left.held))
    return count if refused is None else 0


def _same(conversation: Conversation, now: Rendered, fed: Fed) -> bool:
    """True where the turn's prompt stands at the same positions, after the same tokens that have left."""
    if now.token_ids.tolist() != fed.rendered.token_ids.tolist():
        return False
    own, other = window_at(conversation, now.turn), fed.window
    if own is None or other is None:
        return own is other
    return (own.restart, own.before) == (other.restart, other.before)


def _left_before(conversation: Conversation, turn: int, fed: Fed) -> Left | None:
    """The cache that the turn before left; None where it left none, or it was given back."""
    trace = conversation.trace
    before, now, stopped = trace.rendered(turn - 1), trace.rendered(turn), trace.stopped(turn - 1)
    window = window_at(conversation, turn - 1)
    if before is None or now is None:
        return None
    # A window that goes on fills its cache again where it was given back.
    refilled = all(one is not None and not one.restart for one in (window, fed.window))
    if not (refilled or now.cached or trace.prefilled(turn) is None):
        return None
    prompt, answer = before.token_ids.tolist(), [step.token_id for step in trace.steps(turn - 1)]
    if answer and (stopped is None or stopped.reason != "no_candidate"):
        answer.pop()  # the newest token was chosen, and never fed
    ids = (*prompt, *answer)
    gone = window.first(len(ids)) if window else 0
    if window is None or window.restart:  # what stays of a window that starts again is computed anew from position 0
        return Left((), ids[gone:])
    return Left((*window.before, *ids[:gone]), ids[gone:])
