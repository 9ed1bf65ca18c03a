"""Learned positions (GPT-2, OPT): a second table, whose row for the position is added to the token's row."""

import numpy as np
import torch
from torch import nn
from torch.nn.functional import normalize

from engine.anatomy import AnatomyError, anatomy
from engine.answers.positions import Positions
from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.probes.embedding_table import row_norms, table_of
from engine.probes.inside import context_of
from engine.probes.windowed import ahead
from engine.said import said
from engine.trace import Ints

#: Positions on the curve of norms, and on each side of the map of cosines.
CURVE = 1024
MAP = 128


def positions(conversation: Conversation, *, turn: int | None = None, position: int | None = None) -> Positions:
    """The learned positions of the model, seen from `position` of a turn (None: the last one fed); no forward.

    Raises `ExperimentError` for a turn or position that is not there or beyond the table, `AnatomyError` for a model
    that learned none.
    """
    turn, context = context_of(conversation, turn, position)
    here, parts = len(context) - 1, anatomy(conversation.loaded.model)
    module = parts.positions
    if not isinstance(module, nn.Embedding):
        raise AnatomyError(said("no_learned_positions", model=type(parts.model).__name__))
    skipped = int(getattr(module, "offset", 0))  # OPT's first rows belong to no position
    table, norms = table_of(module)[skipped:], row_norms(module)[skipped:]
    shift = ahead(conversation, turn, here)
    told = here + shift
    if told >= len(norms):  # of a prompt that was refused
        raise ExperimentError("position", said("no_such_row", last=len(norms) - 1, position=told))
    curve = _spread(len(norms), CURVE)
    places = np.union1d(_spread(len(norms), MAP), told).astype(np.int32)
    with torch.inference_mode():
        row, token = table[told].float(), table_of(parts.embedding)[context[-1]].float()
        units = normalize(table[places.tolist()].float(), dim=-1)
        return Positions(
            turn=turn,
            position=here,
            count=len(norms),
            norm=float(norms[told]),
            token_norm=float(token.norm()),
            cosine=float(torch.cosine_similarity(row, token, dim=0)),
            sum_norm=float((row + token).norm()),
            curve=curve,
            norms=norms[curve],
            places=places,
            cosines=(units @ units.T).clamp(-1, 1).numpy(force=True),
            ahead=shift,
        )


def _spread(count: int, most: int) -> Ints:
    """At most `most` of `count` positions, evenly, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round()).astype(np.int32)
