"""The embedding of a token: its row of the table, how long it is, which rows are like it, and what becomes of it."""

import numpy as np

from engine.anatomy import anatomy
from engine.answers.embedding import Embedding
from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.probes.embedding_table import NO_LENGTH, nearest, row_cosines, row_norms, table_of
from engine.probes.embedding_use import head_cosine, is_tied, scale_of
from engine.probes.inside import context_of
from engine.probes.recompute import context_ids
from engine.said import said
from engine.stages.vocabulary import vocabulary

NEIGHBOURS = 10

#: Positions whose norms are given.
SHOWN = 128


def embedding(
    conversation: Conversation, *, turn: int | None = None, position: int | None = None, count: int = NEIGHBOURS
) -> Embedding:
    """The row of the token at `position` of a turn (None: the last one fed); one product with the table.

    Holds one float32 a row of the table for the cosines, and keeps as many norms with the model. Raises
    `ExperimentError` for a turn or position that is not there, `AnatomyError` for a model whose parts cannot be found.
    """
    if not 1 <= count <= 100:
        raise ExperimentError("count", said("neighbours_range", count=count))
    turn, context = context_of(conversation, turn, position)
    loaded, here, token = conversation.loaded, len(context) - 1, context[-1]
    parts = anatomy(loaded.model)
    table, norms, words = table_of(parts.embedding), row_norms(parts.embedding), vocabulary(loaded.tokenizer)
    cosines = row_cosines(parts.embedding, table[token][None])[0]
    near = nearest(cosines, count, leave_out=(token,))
    others = np.delete(cosines, token)
    others = others[~np.isnan(others)]
    whole = sum(context_ids(conversation, turn, len(conversation.trace.steps(turn))), ())
    first = max(0, min(here - SHOWN // 2, len(whole) - SHOWN))
    shown = whole[first : first + SHOWN]
    low, high = int(norms.argmin()), int(norms.argmax())
    return Embedding(
        turn=turn,
        position=here,
        token_id=token,
        token_bytes=words.bytes(token),
        rows=table.shape[0],
        hidden=table.shape[1],
        norm=float(norms[token]),
        shorter=int(np.sum(norms < norms[token])),
        smallest=float(norms[low]),
        smallest_id=low,
        smallest_bytes=words.bytes(low),
        median=float(np.median(norms)),
        largest=float(norms[high]),
        largest_id=high,
        largest_bytes=words.bytes(high),
        empty_rows=int(np.sum(norms <= NO_LENGTH)),
        typical_cosine=float(np.median(others)) if len(others) else float("nan"),
        neighbour_ids=near.ids,
        neighbour_bytes=tuple(words.bytes(row) for row in near.ids.tolist()),
        neighbour_cosines=near.cosines,
        neighbour_norms=norms[near.ids],
        positions=np.arange(first, first + len(shown), dtype=np.int32),
        position_bytes=tuple(words.bytes(one) for one in shown),
        position_norms=norms[list(shown)],
        length=len(whole),
        tied=is_tied(parts),
        table_bytes=table.numel() * table.element_size(),
        head_cosine=head_cosine(parts, token),
        scale=scale_of(loaded),
        learned_positions=parts.positions is not None,
    )
