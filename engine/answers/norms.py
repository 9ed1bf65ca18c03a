"""Lengths of the stream at several positions."""

from dataclasses import dataclass

from engine.trace import Floats, Ints


@dataclass(frozen=True, eq=False)
class Norms:
    """n positions: the last ones fed, and position 0, whose stream is often by far the longest. r = L + 1 rows."""

    turn: int
    positions: Ints  # [n], rising
    token_bytes: tuple[bytes, ...]  # [n]
    stream: Floats  # [r, n], row L is what the final norm reads
    normed: Floats  # [n], after the final norm
