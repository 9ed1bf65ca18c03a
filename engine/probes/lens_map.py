"""The lens over many positions: the top guess of every layer at every position."""

import numpy as np
import torch

from engine.answers.lens_map import LensMap
from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.probes.inside import context_of
from engine.probes.lens import next_token
from engine.probes.readings import guesses
from engine.probes.stretch import MAX_POSITIONS, Stretch, stretch
from engine.said import said
from engine.stages.vocabulary import vocabulary
from engine.trace import Floats, Ints

#: Logits of one piece, in numbers: 16 MiB of float32.
PIECE = 4 * 2**20


def lens_map(
    conversation: Conversation, *, turn: int | None = None, first: int | None = None, count: int = 32
) -> LensMap:
    """Top guesses at `count` (≤ 64) positions from `first` on (None: the last ones fed), in one forward of them.

    Rows go through the output head in pieces of at most 16 MiB of logits, which are read row by row: little more than
    that is held at a time beside the stream, however many layers and positions there are (one row at least).
    Raises `ExperimentError` for a turn or positions that are not there, `AnatomyError` for a model whose parts
    cannot be found.
    """
    if not 1 <= count <= MAX_POSITIONS:
        raise ExperimentError("count", said("map_range", most=MAX_POSITIONS, count=count))
    turn, fed = context_of(conversation, turn, None)
    start = max(0, len(fed) - count) if first is None else first
    if not 0 <= start < len(fed):
        raise ExperimentError("first", said("not_fed", last=len(fed) - 1, position=start))
    ids = fed[: start + count]
    found = stretch(conversation, ids, len(ids) - start, turn=turn)
    following = [*ids[start + 1 :], next_token(conversation, turn, len(ids))]
    next_ids = np.array([-1 if token is None else token for token in following], np.int32)
    words = vocabulary(conversation.loaded.tokenizer)
    top_ids, probabilities, ranks = read_pieces(found, next_ids, conversation.loaded.facts.vocab_rows)
    return LensMap(
        turn=turn,
        first=start,
        token_bytes=tuple(words.bytes(token) for token in ids[start:]),
        top_ids=top_ids,
        top_bytes=tuple(tuple(words.bytes(token) for token in row) for row in top_ids.tolist()),
        top_probabilities=probabilities,
        next_ids=next_ids,
        next_ranks=ranks,
    )


def read_pieces(found: Stretch, next_ids: Ints, vocab: int) -> tuple[Ints, Floats, Ints]:
    """Of every row and position [r, n]: top id, its probability, the rank of the token that comes next (0 for -1)."""
    with torch.inference_mode():
        normed = torch.cat([found.parts.final_norm(found.stream[:-1]), found.normed[None]]).flatten(0, 1)
        wanted = np.tile(next_ids, len(found.stream))
        each = max(1, PIECE // vocab)
        # No name holds the logits of a piece: they are freed before the next, which takes their place in memory.
        pieces = [
            guesses(found.parts.unembed(normed[at : at + each]).cpu(), np.maximum(wanted[at : at + each], 0))
            for at in range(0, len(normed), each)
        ]
    shape = len(found.stream), len(next_ids)
    top_ids, probabilities, ranks = (
        np.concatenate(part).reshape(shape)
        for part in zip(*((piece.top_ids, piece.top_probabilities, piece.ranks) for piece in pieces), strict=True)
    )
    return top_ids, probabilities, np.where(next_ids < 0, 0, ranks)
