"""The stream at the newest positions of a context: every row of it, computed on top of a slice of the run's cache."""

from dataclasses import dataclass

import torch

from engine import kv_cache
from engine.anatomy import Anatomy, anatomy
from engine.attention import capturing
from engine.conversation import Conversation
from engine.probes.recompute import cache_before
from engine.stages.forward import forward
from engine.stages.inputs import make_inputs

#: Positions that one view may ask for: [L + 1, MAX_POSITIONS, hidden] stays small beside a cache.
MAX_POSITIONS = 64


@dataclass(frozen=True, eq=False)
class Stretch:
    """L layers at n positions from `first` on, in the model's dtype."""

    parts: Anatomy
    first: int
    stream: torch.Tensor  # [L + 1, n, hidden]: row l before layer l, row L after the last, before the final norm
    normed: torch.Tensor  # [n, hidden], after the final norm, the model's own


def stretch(conversation: Conversation, ids: tuple[int, ...], count: int) -> Stretch:
    """The last `count` positions of the context `ids`, in one forward.

    The run's cache stays as it is. Where it no longer holds the positions before, those are computed first, without
    keeping their stream: beside the cache never more than [L + 1, count, hidden] is held.
    """
    loaded = conversation.loaded
    cache, first = cache_before(conversation, ids, count), len(ids) - count
    if kv_cache.tokens(cache) < first:
        past = kv_cache.tokens(cache)
        forward(loaded.model, make_inputs(ids[past:first], past=past, device=loaded.device), cache)
    inputs = make_inputs(ids[first:], past=first, device=loaded.device)
    parts = anatomy(loaded.model)
    last = parts.blocks[-1]
    with torch.inference_mode(), capturing({last.index}) as attended:
        output = loaded.model(
            input_ids=inputs.input_ids,
            attention_mask=inputs.attention_mask,
            position_ids=inputs.position_ids,
            use_cache=True,
            cache=cache,
            output_hidden_states=True,
            logits_to_keep=1,
        )
        # The last hidden state that a model gives is normed already, so the end of the stream is worked out.
        before = torch.stack([state[0] for state in output.hidden_states[:-1]])
        middle = before[-1] + last.attention_contribution(attended[last.index].output[0])
        end = middle + last.feed_forward_contribution(middle)
        return Stretch(parts, first, torch.cat([before, end[None]]), output.hidden_states[-1][0])
