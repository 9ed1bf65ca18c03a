"""Self-check: one step with the cache and without any gives the same logits, at another price."""

import torch

from engine.answers.uncached import Uncached
from engine.conversation import Conversation
from engine.probes.recompute import recompute


def uncached(conversation: Conversation, *, step: int, turn: int | None = None) -> Uncached:
    """Compute a step from a slice of the cache and from nothing: two forwards. `turn` None is the current one.

    `reused` is 0 where the cache no longer holds the step or cannot be cut back that far; both ways are then the same.
    Raises `ExperimentError` for a turn or step that is not there.
    """
    turn = max(0, conversation.trace.turns - 1) if turn is None else turn
    with_cache = recompute(conversation, turn, step)
    without = recompute(conversation, turn, step, cached=False)
    return Uncached(
        turn=turn,
        step=step,
        reused=with_cache.reused,
        fed_cached=with_cache.fed,
        fed_uncached=without.fed,
        max_difference=float((with_cache.logits - without.logits).abs().max()),
        same_best=bool(torch.argmax(with_cache.logits) == torch.argmax(without.logits)),
        cached_seconds=with_cache.seconds,
        uncached_seconds=without.seconds,
    )
