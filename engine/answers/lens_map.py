"""What each layer would say at several positions."""

from dataclasses import dataclass

from engine.trace import Floats, Ints


@dataclass(frozen=True, eq=False)
class LensMap:
    """r = L + 1 rows at n positions from `first` on; row 0 enters the first layer, row L the end of the last layer."""

    turn: int
    first: int
    token_bytes: tuple[bytes, ...]  # [n], the tokens that stand there
    top_ids: Ints  # [r, n]
    top_bytes: tuple[tuple[bytes, ...], ...]  # [r][n]
    top_probabilities: Floats  # [r, n]
    next_ids: Ints  # [n], the token that really comes next; -1 where none was chosen yet
    next_ranks: Ints  # [r, n], its rank, 1 = best; 0 where none was chosen yet
