"""The stream at the newest positions of a context: every row of it, computed on top of a slice of the run's cache."""

from dataclasses import dataclass

import torch

from engine.anatomy import Anatomy
from engine.attention import capturing
from engine.conversation import Conversation
from engine.probes.checked_anatomy import checked_anatomy
from engine.probes.recompute import feed, filled_before

#: Positions that one view may ask for: [L + 1, MAX_POSITIONS, hidden] stays small beside a cache.
MAX_POSITIONS = 64


@dataclass(frozen=True, eq=False)
class Stretch:
    """L layers at n positions from `first` on, in the model's dtype."""

    parts: Anatomy
    first: int
    stream: torch.Tensor  # [L + 1, n, hidden]: row l before layer l, row L after the last, before the final norm
    normed: torch.Tensor  # [n, hidden], after the final norm, the model's own


def stretch(conversation: Conversation, ids: tuple[int, ...], count: int, *, turn: int | None = None) -> Stretch:
    """The last `count` positions of the context `ids` of a turn (None: the current), in one forward.

    The run's cache stays as it is. Where it no longer holds the positions before, those are computed first, without
    keeping their stream: beside the cache never more than [L + 1, count, hidden] is held. The attention mask is that
    of the run.
    """
    turn = max(0, conversation.trace.turns - 1) if turn is None else turn
    parts = checked_anatomy(conversation.loaded.model)
    cache = filled_before(conversation, turn, ids, count)
    last = parts.blocks[-1]
    with torch.inference_mode(), capturing({last.index}) as attended:
        forwarded = feed(conversation, turn, ids, cache, states=True)
        # The last hidden state that a model gives is normed already, so the end of the stream is worked out.
        before = torch.stack(forwarded.states[:-1])
        middle = before[-1] + last.attention_contribution(attended[last.index].output[0])
        end = middle + last.feed_forward_contribution(middle)
        return Stretch(parts, len(ids) - count, torch.cat([before, end[None]]), forwarded.states[-1])
