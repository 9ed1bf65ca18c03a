"""The logit lens: what the model would say if it stopped after each layer.

Each row of the stream goes through the final norm and the output head, as the last one does (nostalgebraist 2020,
"interpreting GPT: the logit lens"). Early rows were never trained to be read so: they are a lens, not a thought.
"""

from collections.abc import Sequence

import numpy as np
import torch

from engine.answers.lens import Lens
from engine.conversation import Conversation
from engine.limits import check_id
from engine.probes.distribution import find_tokens
from engine.probes.inside import Inside, context_of, inside
from engine.probes.readings import ranks, read
from engine.probes.recompute import context_ids
from engine.stages.vocabulary import vocabulary

#: Tokens that led at some row and are followed too, the latest first.
LEADERS = 4
ASKED = 100


def lens(
    conversation: Conversation,
    *,
    turn: int | None = None,
    position: int | None = None,
    token_ids: Sequence[int] = (),
    query: str = "",
) -> Lens:
    """Every row at `position` (None: the last one fed), in one decode step and one product with the output head.

    (L + 1) × vocab float32 logits are held. Raises `ExperimentError` for a turn, position or id that is not there,
    `AnatomyError` for a model whose parts cannot be found.
    """
    facts = conversation.loaded.facts
    for token_id in token_ids:
        check_id(token_id, facts, "token_ids")
    turn, context = context_of(conversation, turn, position)
    asked = tuple(dict.fromkeys([*token_ids, *find_tokens(conversation, query)]))[:ASKED]
    found = inside(conversation, turn=turn, position=len(context) - 1)
    return read_stream(conversation, turn, found, asked)


def read_stream(conversation: Conversation, turn: int, found: Inside, asked: tuple[int, ...] = ()) -> Lens:
    """The lens of a position whose inside is at hand: one product with the output head, and what it says."""
    following = next_token(conversation, turn, found.position + 1)
    eos_ids = conversation.loaded.facts.eos_ids
    with torch.inference_mode():
        table = rows(found).cpu()
        last = found.logits.numpy(force=True)
    logits = table.numpy()
    reading = read(table)
    eos = max(eos_ids, key=lambda token: float(last[token])) if eos_ids else None
    leaders = list(dict.fromkeys(reversed(reading.top_ids.tolist())))[:LEADERS]
    first = [token for token in (following, eos) if token is not None]
    followed = list(dict.fromkeys([*first, *asked, *leaders]))
    own = logits[:, followed]
    words = vocabulary(conversation.loaded.tokenizer)
    return Lens(
        turn=turn,
        position=found.position,
        token_ids=np.array(followed, np.int32),
        token_bytes=tuple(words.bytes(token) for token in followed),
        next_id=following,
        eos_id=eos,
        asked=asked,
        ranks=ranks(logits, own),
        logits=own,
        probabilities=np.exp(own - reading.normalisers[:, None]),
        top_ids=reading.top_ids,
        top_bytes=tuple(words.bytes(token) for token in reading.top_ids.tolist()),
        top_probabilities=reading.top_probabilities,
        entropies=reading.entropies,
        max_difference=float(np.abs(logits[-1] - last).max()),
    )


def next_token(conversation: Conversation, turn: int, position: int) -> int | None:
    """The id that stands at `position` of a turn; None where none was chosen yet."""
    prompt, answer = context_ids(conversation, turn, len(conversation.trace.steps(turn)))
    whole = prompt + answer
    return whole[position] if position < len(whole) else None


def rows(found: Inside) -> torch.Tensor:
    """Logits [L + 1, vocab] float32 of every row of the stream at one position: one norm, one product."""
    return found.parts.unembed(found.parts.final_norm(found.stream))
