"""The inside of one position: the stream before and after every layer, what each part added, and what attention saw.

The KV cache makes it cheap: keys and values of the positions before are a view of the run's cache, and one decode step
of the one token at `position` gives everything.
"""

from dataclasses import dataclass

import torch

from engine.anatomy import Anatomy, AnatomyError
from engine.attention import Attended, capturing
from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.probes.checked_anatomy import checked_anatomy, seen_anatomy
from engine.probes.recompute import newest_alone
from engine.said import said
from engine.stages.forward import Forwarded, forward


@dataclass(frozen=True, eq=False)
class Inside:
    """L layers at one position. The stream is float in the model's dtype."""

    parts: Anatomy
    token_ids: tuple[int, ...]  # the context up to and with `position`
    position: int
    stream: torch.Tensor  # [L + 1, hidden]: row l before layer l, row L after the last, before the final norm
    attention: torch.Tensor  # [L, hidden], what attention added
    feed_forward: torch.Tensor  # [L, hidden], what the feed-forward added
    attended: dict[int, Attended]  # by layer, n = 1
    normed: torch.Tensor  # [hidden], after the final norm
    logits: torch.Tensor  # [vocab] float32, the model's own


def context_of(conversation: Conversation, turn: int | None, position: int | None) -> tuple[int, tuple[int, ...]]:
    """A turn (None: the current) and the ids of its context up to and with `position` (None: the last one fed).

    Raises `ExperimentError` where there is no such turn or position.
    """
    turn = max(0, conversation.trace.turns - 1) if turn is None else turn
    rendered = conversation.trace.rendered(turn)
    if rendered is None:
        raise ExperimentError("turn", said("no_such_turn", count=conversation.trace.turns, turn=turn))
    ids = (*rendered.token_ids.tolist(), *(step.token_id for step in conversation.trace.steps(turn)))
    if position is None:
        position = max(len(rendered.token_ids) - 1, len(ids) - 2)
    if not 0 <= position < len(ids):
        raise ExperimentError("position", said("no_such_position", last=len(ids) - 1, position=position))
    return turn, ids[: position + 1]


def inside(conversation: Conversation, *, turn: int | None = None, position: int | None = None) -> Inside:
    """Everything at `position` of a turn (None: the last position that was fed), in one forward.

    The run's cache stays as it is; where it no longer holds the positions before, one more forward computes them, of
    which nothing but keys and values is kept. The attention mask is that of the run. Raises `ExperimentError` for a
    turn or position that is not there, `AnatomyError` for a model whose parts or whose attention cannot be seen, or
    that joins its parts in another way.
    """
    turn, ids = context_of(conversation, turn, position)
    loaded = conversation.loaded
    parts = checked_anatomy(loaded.model)
    once = newest_alone(conversation, turn, ids)
    with torch.inference_mode(), capturing() as attended:
        forwarded = forward(loaded.model, once.inputs, once.cache, states=True)
        return _assemble(parts, ids, forwarded, attended)


def attended_at(
    conversation: Conversation, *, turn: int | None = None, position: int | None = None
) -> tuple[int, dict[int, Attended]]:
    """A position (None: the last one fed) and what the attention of each layer saw there, in the same forward.

    It holds however a layer joins its parts. Raises as `inside` does for all else.
    """
    turn, ids = context_of(conversation, turn, position)
    loaded = conversation.loaded
    parts = seen_anatomy(loaded.model)
    once = newest_alone(conversation, turn, ids)
    with torch.inference_mode(), capturing() as attended:
        forward(loaded.model, once.inputs, once.cache)
    unseen = next((block.index for block in parts.blocks if block.index not in attended), None)
    if unseen is not None:
        raise AnatomyError(said("no_attention_seen", layer=unseen, model=type(loaded.model).__name__))
    return len(ids) - 1, attended


def _assemble(parts: Anatomy, ids: tuple[int, ...], forwarded: Forwarded, attended: dict[int, Attended]) -> Inside:
    """The last hidden state that a model gives is normed already, so the end of the stream is worked out."""
    before = torch.stack([state[-1] for state in forwarded.states[:-1]])
    added = torch.stack([block.attention_contribution(attended[block.index].output[0, 0]) for block in parts.blocks])
    last = parts.blocks[-1].feed_forward_contribution(before[-1] + added[-1])
    stream = torch.cat([before, (before[-1] + added[-1] + last)[None]])
    return Inside(
        parts=parts,
        token_ids=ids,
        position=len(ids) - 1,
        stream=stream,
        attention=added,
        feed_forward=stream[1:] - stream[:-1] - added,
        attended=attended,
        normed=forwarded.states[-1][-1],
        logits=forwarded.logits,
    )
