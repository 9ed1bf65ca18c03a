"""Log-probabilities and entropy reckoned a second way, on numpy in float64, to hold the engine's own against."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating]


def log_softmax(logits: Array) -> npt.NDArray[np.float64]:
    """Natural log-probabilities over the last axis; −inf stays −inf."""
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    normaliser = np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    result: npt.NDArray[np.float64] = shifted - normaliser
    return result


def entropy(log_probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Shannon entropy in nats over the last axis; a token with log-probability −inf adds 0."""
    finite = np.where(np.isneginf(log_probabilities), 0.0, log_probabilities)
    result: npt.NDArray[np.float64] = -(np.exp(log_probabilities) * finite).sum(axis=-1)
    return result
