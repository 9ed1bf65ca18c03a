"""What each layer would say at one position."""

from dataclasses import dataclass

from engine.trace import Floats, Ints


@dataclass(frozen=True, eq=False)
class Lens:
    """One position through r = L + 1 rows: row 0 enters the first layer, row L the end of the last layer.

    c tokens are followed: the one that comes next (where it is known), the best end-of-sequence token, those asked
    for, and the latest of those that led at some row.
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
