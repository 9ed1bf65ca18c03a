"""The length of the stream over layers and positions, and how the final norm levels the positions."""

import torch

from engine.answers.norms import Norms
from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.probes.inside import context_of, inside
from engine.probes.stretch import MAX_POSITIONS, stretch
from engine.said import said
from engine.stages.vocabulary import vocabulary


def norms(conversation: Conversation, *, turn: int | None = None, count: int = MAX_POSITIONS) -> Norms:
    """Norms at the last `count` (≤ 64) positions fed and at position 0: one forward of them.

    Raises `ExperimentError` for a turn that is not there, `AnatomyError` for a model whose parts cannot be found.
    """
    if not 1 <= count <= MAX_POSITIONS:
        raise ExperimentError("count", said("norms_range", most=MAX_POSITIONS, count=count))
    turn, ids = context_of(conversation, turn, None)
    found = stretch(conversation, ids, min(count, len(ids)), turn=turn)
    positions = list(range(found.first, len(ids)))
    stream, normed = found.stream.float().norm(dim=-1), found.normed.float().norm(dim=-1)
    if found.first:
        opening = inside(conversation, turn=turn, position=0)
        positions = [0, *positions]
        stream = torch.cat([opening.stream.float().norm(dim=-1)[:, None], stream], dim=1)
        normed = torch.cat([opening.normed.float().norm()[None], normed])
    words = vocabulary(conversation.loaded.tokenizer)
    return Norms(
        turn=turn,
        positions=torch.tensor(positions, dtype=torch.int32).numpy(),
        token_bytes=tuple(words.bytes(ids[position]) for position in positions),
        stream=stream.numpy(force=True),
        normed=normed.numpy(force=True),
    )
