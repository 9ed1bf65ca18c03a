"""A table of learned positions."""

from dataclasses import dataclass

from engine.trace import Floats, Ints


@dataclass(frozen=True, eq=False)
class Positions:
    """n positions' norms, and the cosines between m of them; all of them where there are few, else evenly spread."""

    turn: int
    position: int  # the place in the turn
    count: int  # positions that the model learned
    norm: float  # of the row of the position that was told
    token_norm: float  # of its token's row
    cosine: float  # between the two
    sum_norm: float  # of their sum, which is what the first layer reads
    curve: Ints  # [n], rising
    norms: Floats  # [n]
    places: Ints  # [m], rising, the position that was told among them
    cosines: Floats  # [m, m]
    ahead: int = 0  # the position that the model was told of the token, less `position`: not 0 in a sliding window

    @property
    def told(self) -> int:
        """The position that the model was told: the row of the table."""
        return self.position + self.ahead
