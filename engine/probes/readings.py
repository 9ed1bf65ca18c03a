"""Rows of logits summed up: what leads, how likely, how sure, and where a token stands.

Row by row, each op over a row that stays in the processor's cache: a product of a few rows with the output head costs
little more than this does, so passes over the whole table through memory would double it.
"""

from dataclasses import dataclass

import numpy as np

from engine.trace import Floats, Ints


@dataclass(frozen=True, eq=False)
class Reading:
    """r rows of logits."""

    top_ids: Ints  # [r]
    top_probabilities: Floats  # [r]
    entropies: Floats  # [r], nats
    normalisers: Floats  # [r], log of the sum of exp(logit)


def read(logits: Floats) -> Reading:
    """Top guess, its probability and the entropy of each row [r, vocab] of finite logits."""
    top = logits.argmax(axis=1)
    best = logits[np.arange(len(logits)), top]
    sums, means = np.empty(len(logits), np.float32), np.empty(len(logits), np.float32)
    weights = np.empty_like(logits[0])
    for index, row in enumerate(logits):
        np.subtract(row, best[index], out=weights)
        np.exp(weights, out=weights)
        sums[index] = weights.sum()
        means[index] = weights @ row / sums[index]
    normalisers = best + np.log(sums)
    return Reading(
        top_ids=top.astype(np.int32),
        top_probabilities=np.float32(1) / sums,
        entropies=np.maximum(normalisers - means, 0),  # H = log Z − Σ p · logit
        normalisers=normalisers,
    )


def ranks_of(logits: Floats, own: Floats) -> Ints:
    """Ranks [r, c] of c tokens whose logits are `own` [r, c] in rows [r, vocab].

    1 is the best; a rank is 1 + the number of tokens with a strictly greater logit.
    """
    counts = [[np.count_nonzero(row > mine) for mine in its] for row, its in zip(logits, own, strict=True)]
    return np.asarray(counts, dtype=np.int32).reshape(own.shape) + 1
