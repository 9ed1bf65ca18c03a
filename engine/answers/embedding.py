"""One row of the embedding among all of them."""

from dataclasses import dataclass

from engine.trace import Floats, Ints


@dataclass(frozen=True, eq=False)
class Embedding:
    """The row of the token at one position, among the `rows` of the table, and n positions' norms around it."""

    turn: int
    position: int
    token_id: int
    token_bytes: bytes
    rows: int
    hidden: int
    norm: float  # Euclidean
    shorter: int  # rows with a smaller norm
    smallest: float
    smallest_id: int
    smallest_bytes: bytes
    median: float
    largest: float
    largest_id: int
    largest_bytes: bytes
    empty_rows: int  # of norm 0: they have no direction and are nobody's neighbours
    typical_cosine: float  # median over all other rows, NaN where this row is empty
    neighbour_ids: Ints  # [k], by cosine, this row left out
    neighbour_bytes: tuple[bytes, ...]  # [k]
    neighbour_cosines: Floats  # [k]
    neighbour_norms: Floats  # [k]
    positions: Ints  # [n], rising
    position_bytes: tuple[bytes, ...]  # [n]
    position_norms: Floats  # [n]
    length: int  # positions of the turn
    tied: bool  # the output head reads the very same storage
    table_bytes: int
    head_cosine: float | None  # with the head's row of the same token; None where the head has another shape
    scale: float | None  # what the model multiplies a row by; None where the first layer gets something else
    learned_positions: bool  # a row of a second table is added
