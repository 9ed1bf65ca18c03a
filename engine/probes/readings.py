"""Rows of logits summed up: who leads and how likely that is, how sure the row is, and where tokens stand.

A few rows at a time, all that is asked of them while they stay in the processor's cache: a product of a few rows with
the output head costs little more than this does, so further passes over the whole table through memory would double it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from engine import numerics
from engine.trace import Floats, Ints

#: Rows that are read together: enough for every thread to have one, few enough for its cache.
_TOGETHER = 4


@dataclass(frozen=True, eq=False)
class Reading:
    """What r rows of logits say."""

    top_ids: Ints  # [r], the lowest of equals
    top_probabilities: Floats  # [r]
    entropies: Floats  # [r], nats
    normalisers: Floats  # [r], log of the sum of exp(logit)


@dataclass(frozen=True, eq=False)
class Guesses:
    """The best of r rows of logits, and where one token of each stands."""

    top_ids: Ints  # [r], the lowest of equals
    top_probabilities: Floats  # [r]
    ranks: Ints  # [r]


def read(logits: torch.Tensor) -> Reading:
    """Read rows [r, vocab] float32 of finite logits on the CPU."""
    top_ids = np.empty(len(logits), np.int32)
    best, tops, means = (np.empty(len(logits), np.float32) for _ in range(3))
    for index, row, probabilities in _rows(logits):
        top = row.argmax()
        top_ids[index], best[index], tops[index] = top, row[top], probabilities[top]
        means[index] = probabilities @ row
    normalisers = best - np.log(tops)
    entropies = np.maximum(normalisers - means, 0)  # H = log Z − Σ p · logit
    return Reading(top_ids, tops, entropies, normalisers)


def guesses(logits: torch.Tensor, token_ids: Ints) -> Guesses:
    """The best of rows [r, vocab] float32 of finite logits on the CPU, and the rank of `token_ids` [r] in them."""
    top_ids, ranks = (np.empty(len(logits), np.int32) for _ in range(2))
    tops = np.empty(len(logits), np.float32)
    for index, row, probabilities in _rows(logits):
        top = row.argmax()
        top_ids[index], tops[index] = top, probabilities[top]
        ranks[index] = numerics.rank(row, token_ids[index])
    return Guesses(top_ids, tops, ranks)


def ranks(logits: Floats, own: Floats) -> Ints:
    """Ranks [r, c] of c tokens with logits `own` [r, c] in every row [r, vocab], 1 is the best."""
    return np.array(
        [[numerics.rank_of(row, mine) for mine in of_row] for row, of_row in zip(logits, own, strict=True)], np.int32
    )


def _rows(logits: torch.Tensor) -> Iterator[tuple[int, Floats, Floats]]:
    """Number, logits and probabilities of one row after the other; the probabilities are gone with the next rows."""
    held = torch.empty((_TOGETHER, logits.shape[1]))
    for start in range(0, len(logits), _TOGETHER):
        rows = logits[start : start + _TOGETHER]
        probabilities = torch.softmax(rows, dim=1, out=held[: len(rows)])
        yield from zip(range(start, start + len(rows)), rows.numpy(), probabilities.numpy(), strict=True)
