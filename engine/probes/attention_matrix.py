"""The whole causal matrix of one attention head: a forward as far as its layer, kept for the layer's other heads."""

import torch

from engine import attention
from engine.anatomy import AnatomyError
from engine.answers.attention_matrix import AttentionMatrix
from engine.conversation import Conversation
from engine.probes.attention import check_head
from engine.probes.inside import context_of
from engine.probes.recompute import cache_before, feed
from engine.said import said

#: A matrix has at most this many positions a side: 4 MB of float32, and a picture that a screen can still show.
MAX_POSITIONS = 1_024
#: Layers of one conversation whose queries and keys are kept, so that their other heads cost no forward.
KEPT_LAYERS = 2


def attention_matrix(
    conversation: Conversation, *, turn: int | None = None, layer: int, head: int, position: int | None = None
) -> AttentionMatrix:
    """The matrix up to and with `position` (None: the last one fed) of a turn (None: the current).

    Beyond `MAX_POSITIONS` only the newest are shown. Raises `ExperimentError` for a turn, position, layer or head that
    is not there, `AnatomyError` for a model whose attention cannot be seen.
    """
    check_head(conversation.loaded.facts, layer, head)
    turn, ids = context_of(conversation, turn, position)
    first = max(0, len(ids) - MAX_POSITIONS)
    record = _record(conversation, turn, ids, layer, first)
    with torch.inference_mode():
        weights = record.weights(head)
        columns = weights.shape[1] - (len(ids) - first)  # those before `first`
        return AttentionMatrix(
            turn=turn,
            layer=layer,
            head=head,
            first=first,
            last=len(ids) - 1,
            weights=weights[:, columns:].numpy(force=True),
            outside=weights[:, :columns].sum(-1).numpy(force=True),
            positions=len(ids),
        )


def _record(conversation: Conversation, turn: int, ids: tuple[int, ...], layer: int, first: int) -> attention.Attended:
    """Queries from `first` on and all keys of one layer; the least lately asked one of too many is let go."""
    kept: dict[tuple[object, ...], attention.Attended] = conversation.captured
    name = (turn, ids, layer)
    record = kept.pop(name, None) or capture(conversation, turn, ids, layer, first)
    kept[name] = record
    while len(kept) > KEPT_LAYERS:
        del kept[next(iter(kept))]
    return record


def capture(conversation: Conversation, turn: int, ids: tuple[int, ...], layer: int, first: int) -> attention.Attended:
    """A forward, as far as the layer, from position `first` on; from 0 where the cache does not hold those before."""
    cache = cache_before(conversation, ids, len(ids) - first)
    with attention.capturing([layer], last=layer) as attended:
        feed(conversation, turn, ids, cache)
    if layer not in attended:
        model = type(conversation.loaded.model).__name__
        raise AnatomyError(said("no_attention_seen", layer=layer, model=model))
    return attended[layer].newest(len(ids) - first)
