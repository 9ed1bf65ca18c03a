"""One head among the newest positions."""

from dataclasses import dataclass

from engine.trace import Floats


@dataclass(frozen=True, eq=False)
class AttentionMatrix:
    """Weights of one head among the n newest positions, `first` … `last`."""

    turn: int
    layer: int
    head: int
    first: int
    last: int
    weights: Floats  # [n, n], row: the position that looks, column: the one looked at; 0 where masked
    outside: Floats  # [n], what each row gives to positions before `first`; with it each row sums to 1
    positions: int  # of the context in all, n where nothing was capped
