"""Rows of logits summed up: who leads and how likely that is, how sure the row is, and where tokens stand.

A few rows at a time, all that is asked of them while they stay in the processor's cache: a product of a few rows with
the output head costs little more than this does, so further passes over the whole table through memory would double it.
"""

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
    ranks: Ints  # [r, c], of the tokens asked for


def read(logits: torch.Tensor, own: Floats) -> Reading:
    """Read rows [r, vocab] float32 of finite logits on the CPU; `own` [r, c] are the logits of c tokens to rank."""
    table = logits.numpy()
    top_ids, best, tops, means = (np.empty(len(table), kind) for kind in (np.int32, *(3 * [np.float32])))
    ranks = np.empty(own.shape, np.int32)
    held = torch.empty((_TOGETHER, table.shape[1]))
    for start in range(0, len(table), _TOGETHER):
        rows = table[start : start + _TOGETHER]
        probabilities = torch.softmax(logits[start : start + _TOGETHER], dim=1, out=held[: len(rows)]).numpy()
        for index, (row, chances) in enumerate(zip(rows, probabilities, strict=True), start):
            top = row.argmax()
            top_ids[index], best[index], tops[index] = top, row[top], chances[top]
            means[index] = chances @ row
            ranks[index] = rank_row(row, own[index])
    normalisers = best - np.log(tops)
    return Reading(
        top_ids=top_ids,
        top_probabilities=tops,
        entropies=np.maximum(normalisers - means, 0),  # H = log Z − Σ p · logit
        normalisers=normalisers,
        ranks=ranks,
    )


def rank_row(row: Floats, own: Floats) -> list[int]:
    """Ranks of logits `own` [c] in a row [vocab], 1 is the best."""
    return [numerics.rank_of(row, mine) for mine in own]
