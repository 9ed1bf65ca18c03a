"""A table of learned positions."""

from dataclasses import dataclass

from engine.trace import Floats, Ints


@dataclass(frozen=True, eq=False)
class Positions:
    """n positions' norms, and the cosines between m of them; all of them where there are few, else evenly spread."""

    turn: int
    position: int
    count: int  # positions that the model learned
    norm: float  # of the row of the position in sight
    token_norm: float  # of its token's row
    cosine: float  # between the two
    sum_norm: float  # of their sum, which is what the first layer reads
    curve: Ints  # [n], rising
    norms: Floats  # [n]
    places: Ints  # [m], rising, the position in sight among them
    cosines: Floats  # [m, m]
