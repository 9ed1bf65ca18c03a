"""The stream at one position, and what each part adds."""

from dataclasses import dataclass

from engine.trace import Floats


@dataclass(frozen=True, eq=False)
class Residual:
    """L layers, r = L + 1 rows of the stream: row l before layer l, row L after the last, before the final norm.

    The shares are of the logit of one token: the one that comes next, or the likeliest where none was chosen yet.
    """

    turn: int
    position: int
    norms: Floats  # [r], Euclidean
    attention_norms: Floats  # [L], of what attention adds
    feed_forward_norms: Floats  # [L]
    attention_cosines: Floats  # [L], with the stream that it is added to
    feed_forward_cosines: Floats  # [L]
    cosines: Floats  # [r, r], between rows of the stream
    normed_norm: float  # after the final norm
    target_id: int
    target_bytes: bytes
    target_chosen: bool  # it stands at the next position; else it is the model's best guess
    embedding_share: float  # of row 0, in the target's logit before its softcap, logit scale included
    attention_shares: Floats  # [L]
    feed_forward_shares: Floats  # [L]
    constant_share: float  # the final norm's bias and the head's
    uncapped: float  # the logit to which the shares add up
    logit: float  # the model's own; another number than `uncapped` only under a softcap
    softcap: float | None
    max_difference: float  # of the sum of the shares from `uncapped`
