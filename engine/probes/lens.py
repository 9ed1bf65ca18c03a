"""The logit lens: what the model would say if it stopped after each layer.

Each row of the stream goes through the final norm and the output head, as the last one does (nostalgebraist 2020,
"interpreting GPT: the logit lens"). Early rows were never trained to be read so: they are a lens, not a thought.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from engine.conversation import Conversation
from engine.limits import check_id
from engine.probes.distribution import find_tokens
from engine.probes.inside import Inside, context_of, inside
from engine.probes.recompute import context_ids
from engine.stages.vocabulary import vocabulary
from engine.trace import Floats, Ints

#: Tokens that led at some row and are followed too, the latest first.
LEADERS = 8
ASKED = 100


@dataclass(frozen=True, eq=False)
class Reading:
    """r rows of logits, summed up: what leads, how likely, how sure."""

    top_ids: Ints  # [r]
    top_probabilities: Floats  # [r]
    entropies: Floats  # [r], nats
    normalisers: torch.Tensor  # [r], log of the sum of exp(logit)


@dataclass(frozen=True, eq=False)
class Lens:
    """One position through r = L + 1 rows: row 0 is the embedding, row L the end of the last layer.

    c tokens are followed: the one that comes next (where it is known), the best end-of-sequence token, those asked
    for, and those that led at some row.
    """

    turn: int
    position: int
    token_ids: Ints  # [c]
    token_bytes: tuple[bytes, ...]  # [c]
    next_id: int | None  # the token that stands at the next position
    eos_id: int | None
    asked: tuple[int, ...]  # ids asked for, by number or text
    ranks: Ints  # [r, c], 1 = best
    logits: Floats  # [r, c], softcap and scale applied
    probabilities: Floats  # [r, c]
    top_ids: Ints  # [r]
    top_bytes: tuple[bytes, ...]  # [r]
    top_probabilities: Floats  # [r]
    entropies: Floats  # [r], nats
    max_difference: float  # of the last row's logits from those the model itself gave


def lens(
    conversation: Conversation,
    *,
    turn: int | None = None,
    position: int | None = None,
    token_ids: Sequence[int] = (),
    query: str = "",
) -> Lens:
    """Every row at `position` (None: the last one fed), in one decode step and one product with the output head.

    At most (L + 1) × vocab float32 logits are held, twice for a moment. Raises `ExperimentError` for a turn, position
    or id that is not there, `AnatomyError` for a model whose parts cannot be found.
    """
    facts = conversation.loaded.facts
    for token_id in token_ids:
        check_id(token_id, facts, "token_ids")
    turn, context = context_of(conversation, turn, position)
    following = next_token(conversation, turn, len(context))
    asked = tuple(dict.fromkeys([*token_ids, *find_tokens(conversation, query)]))[:ASKED]
    found = inside(conversation, turn=turn, position=len(context) - 1)
    with torch.inference_mode():
        logits = rows(found)
        reading = read(logits)
        eos = max(facts.eos_ids, key=lambda token: float(found.logits[token])) if facts.eos_ids else None
        leaders = list(dict.fromkeys(reversed(reading.top_ids.tolist())))[:LEADERS]
        first = [token for token in (following, eos) if token is not None]
        followed = torch.tensor(list(dict.fromkeys([*first, *asked, *leaders])), device=logits.device)
        own = logits[:, followed]
        table, columns = logits.numpy(force=True), own.numpy(force=True)
        words = vocabulary(conversation.loaded.tokenizer)
        return Lens(
            turn=turn,
            position=found.position,
            token_ids=followed.int().numpy(force=True),
            token_bytes=tuple(words.bytes(token) for token in followed.tolist()),
            next_id=following,
            eos_id=eos,
            asked=asked,
            ranks=np.stack([ranks_of(table, column) for column in columns.T], axis=1),
            logits=columns,
            probabilities=(own - reading.normalisers[:, None]).exp().numpy(force=True),
            top_ids=reading.top_ids,
            top_bytes=tuple(words.bytes(token) for token in reading.top_ids.tolist()),
            top_probabilities=reading.top_probabilities,
            entropies=reading.entropies,
            max_difference=float((logits[-1] - found.logits).abs().max()),
        )


def next_token(conversation: Conversation, turn: int, position: int) -> int | None:
    """The id that stands at `position` of a turn; None where none was chosen yet."""
    prompt, answer = context_ids(conversation, turn, len(conversation.trace.steps(turn)))
    whole = prompt + answer
    return whole[position] if position < len(whole) else None


def rows(found: Inside) -> torch.Tensor:
    """Logits [L + 1, vocab] float32 of every row of the stream at one position: one norm, one product."""
    return found.parts.unembed(found.parts.final_norm(found.stream))


def read(logits: torch.Tensor) -> Reading:
    """Top guess, its probability and the entropy of each row [r, vocab]; one more array of that size for a moment."""
    best, top = logits.max(dim=-1)
    weights = torch.softmax(logits, dim=-1)
    top_weights = weights.gather(1, top[:, None])[:, 0]
    normalisers = best - top_weights.log()
    mean = weights.mul_(logits).sum(dim=-1)  # H = log Z − Σ p · logit
    return Reading(
        top_ids=top.int().numpy(force=True),
        top_probabilities=top_weights.numpy(force=True),
        entropies=(normalisers - mean).clamp(min=0).numpy(force=True),
        normalisers=normalisers,
    )


def ranks_of(logits: Floats, own: Floats) -> Ints:
    """Rank [r] of a token whose logits are `own` [r] in rows [r, vocab]: 1 + the number of strictly greater ones."""
    return np.asarray(np.count_nonzero(logits > own[:, None], axis=1) + 1, dtype=np.int32)
