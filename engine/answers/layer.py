"""One layer at one position, operation by operation."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.trace import Floats, Shape


@dataclass(frozen=True, eq=False)
class Operation:
    """One operation at one position. Numbers are of our own result, unless said otherwise."""

    name: str
    stage: str
    form: str  # which formula; `values` are the numbers and names in it
    values: Mapping[str, float | int | str]
    shape: Shape  # [heads, head_dim], [heads, positions], or one axis
    norm: float  # Euclidean, over all its numbers
    low: float
    high: float
    difference: float | None  # max|ours − model| ÷ max|model|; None where the model keeps it to itself
    ours: Floats  # the first numbers, row by row: where a row is short they run on into the next head's
    model: Floats | None


@dataclass(frozen=True, eq=False)
class LayerAt:
    """One of L layers at one position."""

    turn: int
    position: int
    layer: int
    operations: tuple[Operation, ...]  # in order; the last one is the stream after the layer
    largest: float  # difference of any operation, relative; NaN where one is
    worst: str  # the name of that operation
    whole: float  # of the stream after the layer, relative
    expected: float
    dtype: str
    heads: int
    kv_heads: int
    head_dim: int
    stream: Floats  # [L], the norm of the stream before each layer, the model's own
