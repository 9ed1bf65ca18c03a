"""Two texts in one batch, filled up in several ways."""

from dataclasses import dataclass
from typing import Literal

from engine.trace import Floats, Ints

Way = Literal["mask", "columns", "no_mask", "right_read", "right_last"]


@dataclass(frozen=True, eq=False)
class Tried:
    """One way, for both rows: the logits after each text beside those of the text alone, without a batch."""

    way: Way
    max_differences: Floats  # [2], largest |Δlogit|; NaN where the model gave NaN
    best_ids: Ints  # [2]
    best_bytes: tuple[bytes, bytes]
    alone_probabilities: Floats  # [2], of the token that was best alone


@dataclass(frozen=True, eq=False)
class Padding:
    """Row 0 is the run's context (its newest tokens), row 1 the text beside it; w columns, p of them filling."""

    turn: int
    whole: int  # tokens of the run's context, of which row 0 has the newest
    second: str  # the text that row 1 begins
    padded_row: int  # the row that is the shorter one
    pad_id: int
    pad_bytes: bytes
    token_ids: Ints  # [2, w], filled up on the left
    token_bytes: tuple[tuple[bytes, ...], tuple[bytes, ...]]  # [2][w]
    attention_mask: Ints  # [2, w]
    positions_by_mask: Ints  # [2, w]
    positions_by_column: Ints  # [2, w]
    positions: Literal["learned", "rotary", "other"]  # how the model is told where a token stands
    alone_ids: Ints  # [2], the best token after each text alone
    alone_bytes: tuple[bytes, bytes]
    alone_probabilities: Floats  # [2]
    tried: tuple[Tried, ...]

    @property
    def pads(self) -> int:
        """Columns of filling in the shorter row."""
        return int((self.attention_mask[self.padded_row] == 0).sum())
