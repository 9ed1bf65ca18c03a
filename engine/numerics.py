"""Probabilities, entropy and ranks of logits on numpy, safe where logits are −inf."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating]


def log_softmax(logits: Array) -> npt.NDArray[np.float64]:
    """Natural log-probabilities over the last axis, in float64; −inf stays −inf.

    Raises ValueError where a row has no finite logit: such a row has no distribution.
    """
    wide = np.asarray(logits, dtype=np.float64)
    highest = wide.max(axis=-1, keepdims=True)
    if not np.isfinite(highest).all():
        raise ValueError("a row of logits has no finite entry, or one that is NaN or +inf")
    shifted = wide - highest
    normaliser = np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    result: npt.NDArray[np.float64] = shifted - normaliser
    return result


def entropy(log_probabilities: Array) -> npt.NDArray[np.float64]:
    """Shannon entropy in nats over the last axis; a token with log-probability −inf adds 0."""
    wide = np.asarray(log_probabilities, dtype=np.float64)
    finite = np.where(np.isneginf(wide), 0.0, wide)
    result: npt.NDArray[np.float64] = -(np.exp(wide) * finite).sum(axis=-1)
    return result


def rank(logits: Array, token_id: int) -> int:
    """1 = best: one more than the number of strictly greater logits. `logits` is one row [vocab]."""
    return int(np.count_nonzero(logits > logits[token_id])) + 1


def top_k(values: Array, k: int) -> npt.NDArray[np.int64]:
    """Indices of the k greatest values of a row, best first, ties by lower index; −inf entries are left out."""
    k = min(k, values.shape[-1])
    # argpartition finds the set in linear time; ties at its border go to the lower index through the stable sort.
    border = np.partition(values, -k)[-k]
    inside = np.flatnonzero(values >= border)
    best = inside[np.argsort(-values[inside], kind="stable")][:k]
    return best[values[best] > -np.inf]
