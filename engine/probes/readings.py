"""Rows of logits summed up: how likely the leader is, how sure the row, and where tokens stand.

Row by row, all that is asked of a row while it stays in the processor's cache: a product of a few rows with the output
head costs little more than this does, so further passes over the whole table through memory would double it.
"""

from dataclasses import dataclass

import numpy as np

from engine.trace import Floats, Ints


@dataclass(frozen=True, eq=False)
class Reading:
    """r rows of logits, c tokens in each."""

    top_probabilities: Floats  # [r]
    entropies: Floats  # [r], nats
    normalisers: Floats  # [r], log of the sum of exp(logit)
    ranks: Ints  # [r, c], 1 is the best: 1 + the number of tokens with a strictly greater logit


def read(logits: Floats, top_ids: Ints, own: Floats) -> Reading:
    """What rows [r, vocab] of finite logits say; `top_ids` [r] is their argmax, `own` [r, c] the logits of c tokens."""
    best = logits[np.arange(len(logits)), top_ids]
    sums, means = np.empty(len(logits), np.float32), np.empty(len(logits), np.float32)
    ranks = np.empty(own.shape, np.int32)
    weights = np.empty_like(logits[0])
    for index, row in enumerate(logits):
        np.subtract(row, best[index], out=weights)
        np.exp(weights, out=weights)
        sums[index] = weights.sum()
        means[index] = weights @ row / sums[index]
        ranks[index] = [1 + np.count_nonzero(row > mine) for mine in own[index]]
    normalisers = best + np.log(sums)
    return Reading(
        top_probabilities=np.float32(1) / sums,
        entropies=np.maximum(normalisers - means, 0),  # H = log Z − Σ p · logit
        normalisers=normalisers,
        ranks=ranks,
    )
