"""Ranks and the best of logits on numpy, safe where logits are −inf."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating]


def rank(logits: Array, token_id: int) -> int:
    """1 = best: one more than the number of strictly greater logits. `logits` is one row [vocab]."""
    return rank_of(logits, logits[token_id])


def rank_of(logits: Array, logit: float) -> int:
    """The rank of a value among the logits of a row [vocab], counted likewise."""
    return int(np.count_nonzero(logits > logit)) + 1


def top_k(values: Array, k: int) -> npt.NDArray[np.int64]:
    """Indices of the k greatest values of a row, best first, ties by lower index; −inf entries are left out."""
    k = min(k, values.shape[-1])
    # argpartition finds the set in linear time; ties at its border go to the lower index through the stable sort.
    border = np.partition(values, -k)[-k]
    inside = np.flatnonzero(values >= border)
    best = inside[np.argsort(-values[inside], kind="stable")][:k]
    return best[values[best] > -np.inf]
