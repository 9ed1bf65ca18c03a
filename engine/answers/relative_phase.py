"""The product of a query and a key by place and distance."""

from dataclasses import dataclass

from engine.trace import Floats, Ints


@dataclass(frozen=True, eq=False)
class RelativePhase:
    """q · k (neither scaled nor masked) of the query at one position and the key before it, by place and distance."""

    turn: int
    position: int
    layer: int
    head: int
    kv_head: int
    key_position: int  # the position before, itself at position 0
    raw: float  # q · k as the model itself had it there
    again: float  # the same from the vectors turned back to position 0 and turned anew
    lengths: float  # |q| |k|
    places: Ints  # [s], of the key
    distances: Ints  # [d], of the query from it
    scores: Floats  # [d, s]
    within: float  # the largest difference inside a row: one distance at all places
    between: float  # between the lowest and the highest row mean
